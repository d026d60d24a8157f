use wakelog_model::limits::PART_SIZE;
use wakelog_model::{Digest16, LifetimeId, SessionId, decode_part, entry_digest};

use super::*;

fn head() -> EntryHead {
    let identity = Identity {
        session: SessionId::for_request("ada", "r"),
        lifetime: LifetimeId([7; 16]),
        generation: 3,
        partition: 2,
    };
    EntryHead {
        identity,
        nonce: WriterNonce([1; 16]),
        seq: 9,
        checkpoint: true,
    }
}

async fn encoded(
    number: u32,
    last: bool,
    content: Bytes,
    digester: EntryDigester,
) -> (EntryPart, EntryDigester) {
    let (value, digester) = encode(
        head(),
        PlainPart {
            number,
            last,
            content,
        },
        digester,
    )
    .await
    .unwrap();
    let record = SessionRecord::decode(value).unwrap();
    let Some(Record::EntryPart(part)) = record.record else {
        panic!("not a part");
    };
    (part, digester)
}

#[tokio::test]
async fn parts_decode_to_the_bytes_they_came_from() {
    let first = Bytes::from(
        (0..PART_SIZE)
            .map(|index| (index * 7 % 251) as u8)
            .collect::<Vec<_>>(),
    );
    let rest = Bytes::from_static(b"\0\xff\n");
    let (one, digester) = encoded(0, false, first.clone(), EntryDigester::default()).await;
    assert_eq!((one.part_count, one.entry_digest.len(), one.last), (0, 0, false));
    let (two, _) = encoded(1, true, rest.clone(), digester).await;
    assert_eq!((two.part, two.part_count, two.last), (1, 2, true));
    let digests = [part_digest(&first), part_digest(&rest)];
    assert_eq!(Digest16::from_slice(&two.entry_digest), entry_digest(&digests));
    for (part, plain) in [(one, first), (two, rest)] {
        let digest = Digest16::from_slice(&part.part_digest).unwrap();
        let decoded = decode_part(part.encoding, &part.body, part.plain_length as usize, digest).unwrap();
        assert_eq!(decoded, plain);
        assert_eq!(
            (part.lifetime_seq, part.generation, part.checkpoint),
            (9, 3, true)
        );
        assert_eq!(&part.lifetime_id[..], &[7; 16]);
        assert_eq!(&part.writer_nonce[..], &[1; 16]);
    }
}

#[tokio::test]
async fn digesting_a_repeat_gives_the_same_entry_digest() {
    let content = Bytes::from(vec![b'x'; PART_SIZE]);
    let (part, _) = encoded(0, true, content.clone(), EntryDigester::default()).await;
    let digester = digest(content, EntryDigester::default()).await.unwrap();
    assert_eq!(Digest16::from_slice(&part.entry_digest), digester.finish());
    assert_eq!(part.part_count, digester.part_count());
}
