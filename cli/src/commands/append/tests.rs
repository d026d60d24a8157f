use super::*;

async fn lines(bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut reader = BufReader::with_capacity(3, bytes);
    let mut lines = Vec::new();
    while let Some(line) = next_line(&mut reader, 1024).await.unwrap() {
        lines.push(line.to_vec());
    }
    lines
}

#[tokio::test]
async fn every_byte_is_kept_and_only_newlines_split() {
    let cases: [&[&[u8]]; 8] = [
        &[b"{}\r\n", b"{}\r\n"],
        &[b"\xef\xbb\xbf{}\n", b"x\n"],
        &["a\u{2028}b\u{85}c\n".as_bytes(), b"d\n"],
        &[b"a\0b\n"],
        &[b"\xff\xfe\x80\n", b"\xc3\n", b"\x28\n"],
        &[b"\r"],
        &[b"\n", b"\n", b" \n"],
        &[b"first\n", b"without newline"],
    ];
    for case in cases {
        let all = case.concat();
        assert_eq!(
            lines(&all).await,
            case.iter().map(|line| line.to_vec()).collect::<Vec<_>>()
        );
    }
    assert!(lines(b"").await.is_empty());
}

#[tokio::test]
async fn a_line_beyond_the_limit_is_refused() {
    let mut exact = BufReader::new(b"1234\n".as_slice());
    assert_eq!(next_line(&mut exact, 5).await.unwrap().unwrap(), "1234\n");
    let mut long = BufReader::new(b"12345\n".as_slice());
    assert_eq!(next_line(&mut long, 5).await.unwrap_err().exit, Exit::Refused);
}
