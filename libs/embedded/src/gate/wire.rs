//! The few messages of the Postgres protocol that the gate speaks itself.

use std::io;

const PROTOCOL_3: u32 = 3 << 16;
const CANCEL_REQUEST: u32 = 80_877_102;
const TLS_REQUEST: u32 = 80_877_103;
const GSS_REQUEST: u32 = 80_877_104;
const MAX_BODY: usize = 1024 * 1024;
/// As in PostgreSQL itself.
const MAX_STARTUP: usize = 10_000;
/// PGlite ends its accept loop at a message of 128 MiB or more.
const MAX_MESSAGE: u32 = 128 * 1024 * 1024 - 1;
const HEADER: usize = 5;

/// What a client's first packet asks for.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Greeting {
    Encryption,
    Cancel,
    Startup,
}

/// Sorts the body of a first packet. PGlite ends its accept loop at one that it can't read.
pub(super) fn greeting(body: &[u8]) -> io::Result<Greeting> {
    let Some((code, parameters)) = body.split_first_chunk() else {
        return Err(io::Error::other("a start-up packet without a code"));
    };
    match u32::from_be_bytes(*code) {
        TLS_REQUEST | GSS_REQUEST => Ok(Greeting::Encryption),
        CANCEL_REQUEST => Ok(Greeting::Cancel),
        PROTOCOL_3 if are_parameters(parameters) => Ok(Greeting::Startup),
        PROTOCOL_3 => Err(io::Error::other("a start-up packet with malformed parameters")),
        other => Err(io::Error::other(format!("a start-up packet with code {other}"))),
    }
}

/// Pairs of UTF-8 texts with a zero after each, and a zero at the end; PGlite wants names that are not empty.
fn are_parameters(bytes: &[u8]) -> bool {
    let Some(texts) = std::str::from_utf8(bytes)
        .ok()
        .and_then(|text| text.strip_suffix('\0'))
    else {
        return false;
    };
    let Some(texts) = texts.strip_suffix('\0') else {
        return false;
    };
    let texts: Vec<&str> = texts.split('\0').collect();
    texts.len().is_multiple_of(2) && texts.chunks_exact(2).all(|pair| is_parameter(pair[0], pair[1]))
}

fn is_parameter(name: &str, value: &str) -> bool {
    match name {
        "" => false,
        "user" | "database" => !value.is_empty(),
        _ => true,
    }
}

/// The body length of a first packet.
pub(super) fn startup_length(length: u32) -> io::Result<usize> {
    body_length(length).and_then(|length| match length {
        4..=MAX_STARTUP => Ok(length),
        _ => Err(io::Error::other(format!("a start-up packet of {length} bytes"))),
    })
}

/// Follows the messages of a client, to notice what can't be one.
#[derive(Debug, Default)]
pub(super) struct Frames {
    header: [u8; HEADER],
    header_length: usize,
    body_left: usize,
}

impl Frames {
    pub(super) fn check(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let of_body = self.body_left.min(bytes.len());
            self.body_left -= of_body;
            bytes = &bytes[of_body..];
            let of_header = (HEADER - self.header_length).min(bytes.len());
            self.header[self.header_length..self.header_length + of_header]
                .copy_from_slice(&bytes[..of_header]);
            self.header_length += of_header;
            bytes = &bytes[of_header..];
            if self.header_length == HEADER {
                self.body_left = message_body_length(self.header)?;
                self.header_length = 0;
            }
        }
        Ok(())
    }
}

fn message_body_length([kind, length @ ..]: [u8; HEADER]) -> io::Result<usize> {
    let length = u32::from_be_bytes(length);
    if !kind.is_ascii_alphabetic() || !(4..=MAX_MESSAGE).contains(&length) {
        return Err(io::Error::other(format!(
            "a message of kind {kind} and {length} bytes"
        )));
    }
    Ok(usize::try_from(length - 4).unwrap_or(usize::MAX))
}

pub(super) fn startup(user: &str, database: &str) -> Vec<u8> {
    let mut body = PROTOCOL_3.to_be_bytes().to_vec();
    for text in ["user", user, "database", database] {
        body.extend_from_slice(text.as_bytes());
        body.push(0);
    }
    body.push(0);
    with_length(&body)
}

pub(super) fn terminate() -> Vec<u8> {
    message(b'X', &[])
}

/// SQLSTATE 53300, which clients and pools know.
pub(super) fn too_many_connections(text: &str) -> Vec<u8> {
    let mut body = Vec::new();
    for (field, value) in [(b'S', "FATAL"), (b'V', "FATAL"), (b'C', "53300"), (b'M', text)] {
        body.push(field);
        body.extend_from_slice(value.as_bytes());
        body.push(0);
    }
    body.push(0);
    message(b'E', &body)
}

/// A message's own length counts its four bytes.
pub(super) fn body_length(length: u32) -> io::Result<usize> {
    usize::try_from(length)
        .ok()
        .and_then(|length| length.checked_sub(4))
        .filter(|length| *length <= MAX_BODY)
        .ok_or_else(|| io::Error::other(format!("a message of {length} bytes")))
}

/// The field `M` of an `ErrorResponse`.
pub(super) fn error_message(body: &[u8]) -> String {
    body.split(|byte| *byte == 0)
        .find_map(|field| field.strip_prefix(b"M"))
        .map_or_else(
            || "an error without a message".to_owned(),
            |text| String::from_utf8_lossy(text).into_owned(),
        )
}

fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    let mut message = vec![kind];
    message.extend_from_slice(&with_length(body));
    message
}

pub(super) fn with_length(body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len() + 4).unwrap_or(u32::MAX);
    let mut message = length.to_be_bytes().to_vec();
    message.extend_from_slice(body);
    message
}

#[cfg(test)]
mod tests;
