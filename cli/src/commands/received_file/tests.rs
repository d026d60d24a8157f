use sha2::{Digest as _, Sha256};
use wakelog_proto::v1::ResumeBodyClose;

use super::*;

fn chunks(body: &'static [u8], claimed: &[u8]) -> impl Stream<Item = Result<ResumeBody, Status>> {
    let close = ResumeBodyClose {
        length: claimed.len() as u64,
        sha256: Sha256::digest(claimed).to_vec().into(),
        first_entry_seq: 1,
        last_entry_seq: 1,
    };
    let chunk = ResumeBody {
        session_body: body.into(),
        close: None,
    };
    futures::stream::iter([
        Ok(chunk),
        Ok(ResumeBody {
            session_body: Default::default(),
            close: Some(close),
        }),
    ])
}

fn names(folder: &Path) -> Vec<String> {
    std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect()
}

#[tokio::test]
async fn a_checked_body_gets_its_name() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.jsonl");
    let file = ReceivedFile::create(&path, false).unwrap();
    assert!(names(folder.path())[0].starts_with("s.jsonl.partial-"));
    file.receive(chunks(b"{}\r\n\0", b"{}\r\n\0"), &ProgressBar::hidden())
        .await
        .unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), b"{}\r\n\0");
    assert_eq!(names(folder.path()), ["s.jsonl"]);
}

#[tokio::test]
async fn a_body_that_does_not_fit_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.jsonl");
    let file = ReceivedFile::create(&path, false).unwrap();
    assert!(
        file.receive(chunks(b"{}", b"{\n"), &ProgressBar::hidden())
            .await
            .is_err()
    );
    assert!(names(folder.path()).is_empty());
}

#[tokio::test]
async fn a_file_that_is_there_is_replaced_only_on_purpose() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.jsonl");
    let early = ReceivedFile::create(&path, false).unwrap();
    std::fs::write(&path, "mine").unwrap();
    let bar = ProgressBar::hidden();
    let error = early.receive(chunks(b"{}", b"{}"), &bar).await.unwrap_err();
    assert_eq!(error.exit, wakelog_contract::Exit::Refused);
    assert!(ReceivedFile::create(&path, false).is_err());
    assert_eq!(std::fs::read(&path).unwrap(), b"mine");
    ReceivedFile::create(&path, true)
        .unwrap()
        .receive(chunks(b"{}", b"{}"), &bar)
        .await
        .unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), b"{}");
}
