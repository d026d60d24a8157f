use super::*;

/// An answer with these requests, each with its versions.
fn answer(known: &[(i16, i16, i16)]) -> Vec<u8> {
    let mut body = NUMBER.to_vec();
    body.extend([0, 0]);
    body.extend((known.len() as i32).to_be_bytes());
    for (request, oldest, newest) in known {
        body.extend(
            [*request, *oldest, *newest]
                .into_iter()
                .flat_map(i16::to_be_bytes),
        );
    }
    let mut answer = (body.len() as u32).to_be_bytes().to_vec();
    answer.extend(body);
    answer
}

fn all() -> Vec<(i16, i16, i16)> {
    NEEDED
        .iter()
        .map(|(request, version, _)| (*request, 0, *version))
        .collect()
}

#[test]
fn a_broker_is_told_from_one_that_is_too_old() {
    assert_eq!(judge(&answer(&all())), Found::Broker);
    for (missing, (_, _, name)) in NEEDED.iter().enumerate() {
        let mut known = all();
        known.remove(missing);
        assert_eq!(judge(&answer(&known)), Found::TooOld((*name).to_owned()));
    }
    let mut old = all();
    old[0].2 = 2;
    assert_eq!(judge(&answer(&old)), Found::TooOld(NEEDED[0].2.to_owned()));
}

#[test]
fn what_is_no_broker_is_named() {
    for (bytes, found) in [
        (&b"HTTP/1.1 400 Bad Request\r\n"[..], HTTP),
        (&[0x15, 3, 3, 0, 2, 2, 10], TLS),
        (b"E\0\0\0\x8bSFATAL\0", POSTGRES),
        (b"", CLOSES),
        (b"SSH-2.0-x\r\n", UNKNOWN),
        (b"\0\0\0\x02wa", UNKNOWN),
    ] {
        assert_eq!(judge(bytes), Found::Other(found), "{bytes:?}");
    }
    let cut = answer(&all());
    assert_eq!(judge(&cut[..cut.len() - 3]), Found::Other(UNKNOWN));
}

#[test]
fn addresses_are_those_of_the_client_library() {
    let options = Options::new("a:1, PLAINTEXT://b:2,c,[::1]:3,[::1]", "t");
    let found: Vec<String> = addresses(&options).collect();
    assert_eq!(found, ["a:1", "b:2", "c:9092", "[::1]:3", "[::1]:9092"]);
}
