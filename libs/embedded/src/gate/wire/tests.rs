use super::*;

#[test]
fn startup_has_its_length_the_version_and_both_names() {
    let message = startup("u", "db");
    assert_eq!(&message[..4], u32::try_from(message.len()).unwrap().to_be_bytes());
    assert_eq!(&message[4..], b"\x00\x03\x00\x00user\0u\0database\0db\0\0");
}

#[test]
fn a_refusal_reads_back() {
    let message = too_many_connections("no place");
    assert_eq!(message[0], b'E');
    let length = u32::from_be_bytes(message[1..5].try_into().unwrap());
    assert_eq!(body_length(length).unwrap(), message.len() - 5);
    assert_eq!(error_message(&message[5..]), "no place");
}

#[test]
fn a_length_that_can_not_be_is_an_error() {
    assert!(body_length(3).is_err());
    assert!(body_length(u32::MAX).is_err());
    assert_eq!(body_length(4).unwrap(), 0);
}

#[test]
fn first_packets_are_sorted() {
    assert_eq!(greeting(&[4, 210, 22, 47]).unwrap(), Greeting::Encryption);
    assert_eq!(greeting(&[4, 210, 22, 48]).unwrap(), Greeting::Encryption);
    assert_eq!(greeting(&[4, 210, 22, 46, 0, 0]).unwrap(), Greeting::Cancel);
    assert_eq!(greeting(&startup("u", "db")[4..]).unwrap(), Greeting::Startup);
    assert_eq!(
        greeting(b"\0\x03\0\0user\0u\0options\0\0\0").unwrap(),
        Greeting::Startup
    );
}

#[test]
fn what_pglite_can_not_read_is_no_start_up_packet() {
    for body in [
        &b""[..],
        b"\0\x03\0",
        b"\0\x02\0\0user\0u\0\0",
        b"\0\x03\0\0user\0u\0",
        b"\0\x03\0\0user\0\0\0",
        b"\0\x03\0\0user\0\xff\0\0",
        b"\0\x03\0\0user\0u\0odd\0\0",
        b"HTTP",
    ] {
        assert!(greeting(body).is_err(), "{body:?}");
    }
    assert!(startup_length(7).is_err());
    assert!(startup_length(u32::from_be_bytes(*b"GET ")).is_err());
}

#[test]
fn frames_are_followed_in_pieces_of_any_size() {
    let mut stream = message(b'Q', b"select 1\0");
    stream.extend(terminate());
    stream.extend(message(b'd', &[0; 300]));
    for piece in [1, 2, 3, 5, 7, 100, stream.len()] {
        let mut frames = Frames::default();
        for bytes in stream.chunks(piece) {
            frames.check(bytes).unwrap();
        }
        assert_eq!((frames.header_length, frames.body_left), (0, 0), "{piece}");
        frames.check(b"Q\0\0\0").unwrap();
        assert!(frames.check(b"\x03").is_err());
    }
}

#[test]
fn what_can_not_be_a_message_is_noticed() {
    assert!(Frames::default().check(b"\0\0\0\0\x08").is_err());
    assert!(Frames::default().check(b"Q\x08\0\0\0").is_err());
    assert!(Frames::default().check(b"Q\x07\xff\xff\xff").is_ok());
}
