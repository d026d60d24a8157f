use super::*;
use bytes::Bytes;
use wakelog_proto::v1::ResumeBodyClose;

const BODY: &[u8] = b"{\"a\":1}\r\n\0\xff\n";

fn chunk(bytes: &'static [u8]) -> Result<ResumeBody, Status> {
    Ok(ResumeBody {
        session_body: Bytes::from_static(bytes),
        close: None,
    })
}

fn close(length: u64, body: &[u8]) -> Result<ResumeBody, Status> {
    let sha256 = Bytes::copy_from_slice(&Sha256::digest(body));
    let close = ResumeBodyClose {
        length,
        sha256,
        first_entry_seq: 3,
        last_entry_seq: 9,
    };
    Ok(ResumeBody {
        session_body: Bytes::new(),
        close: Some(close),
    })
}

async fn receive(chunks: Vec<Result<ResumeBody, Status>>) -> (Result<ReceivedBody, Error>, Vec<u8>) {
    let mut sink = Vec::new();
    let result = receive_body(futures::stream::iter(chunks), &mut sink).await;
    (result, sink)
}

#[tokio::test]
async fn a_body_that_fits_its_close_is_handed_out() {
    let (result, sink) = receive(vec![
        chunk(&BODY[..5]),
        chunk(&BODY[5..]),
        close(BODY.len() as u64, BODY),
    ])
    .await;
    let body = result.unwrap();
    assert_eq!(
        (body.length, body.first_entry_seq, body.last_entry_seq),
        (BODY.len() as u64, 3, 9)
    );
    assert_eq!(sink, BODY);
}

#[tokio::test]
async fn a_body_without_its_close_is_an_error() {
    let (result, _) = receive(vec![chunk(BODY)]).await;
    assert!(matches!(result, Err(Error::CutShort { received }) if received == BODY.len() as u64));
}

#[tokio::test]
async fn another_length_is_an_error() {
    let (result, _) = receive(vec![chunk(&BODY[..5]), close(BODY.len() as u64, BODY)]).await;
    assert!(matches!(result, Err(Error::LengthMismatch { received: 5, .. })));
}

#[tokio::test]
async fn a_flipped_bit_is_an_error() {
    let (result, _) = receive(vec![chunk(b"abc"), close(3, b"abd")]).await;
    assert!(matches!(result, Err(Error::DigestMismatch { .. })));
}

#[tokio::test]
async fn a_status_in_place_of_the_close_is_an_error() {
    let (result, _) = receive(vec![chunk(BODY), Err(Status::failed_precondition("superseded"))]).await;
    assert!(matches!(
        result,
        Err(Error::Refused {
            code: tonic::Code::FailedPrecondition,
            ..
        })
    ));
}

#[tokio::test]
async fn a_status_after_the_close_is_an_error() {
    let (result, _) = receive(vec![
        chunk(b"abc"),
        close(3, b"abc"),
        Err(Status::internal("late")),
    ])
    .await;
    assert!(matches!(result, Err(Error::Refused { .. })));
}

#[tokio::test]
async fn bytes_after_the_close_are_an_error() {
    let (result, _) = receive(vec![close(0, b""), chunk(b"abc")]).await;
    assert!(matches!(result, Err(Error::Protocol(_))));
}
