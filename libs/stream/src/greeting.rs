//! What listens at the brokers' addresses, asked without the client library: that one says of everything that is no broker
//! only that no broker answered, and of a broker that is too old not before the first publish.
//!
//! The question is the one that every client of Kafka begins with: which requests are known, in which versions. It comes before
//! any authentication.

use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::error::Error;
use crate::options::Options;

#[cfg(test)]
mod tests;

/// How long each step of asking one address may take.
const PATIENCE: Duration = Duration::from_secs(2);

/// Where a broker listens unless told otherwise.
const USUAL_PORT: &str = "9092";

/// "Which requests do you know?", in the version that the oldest brokers know: its length, its number (18), its version, a
/// number to recognise the answer by, and no name.
const QUESTION: [u8; 14] = [0, 0, 0, 10, 0, 18, 0, 0, b'w', b'a', b'k', b'e', 0xff, 0xff];
const NUMBER: [u8; 4] = *b"wake";

/// What ends the head of a request in the protocol that is most often found in a broker's place.
const END_OF_HEAD: &[u8] = b"\r\n\r\n";

/// The longest answer that a broker gives.
const MOST_BYTES: usize = 64 * 1024;

/// What is needed of a broker: the number of a request, a version of it, and a name.
const NEEDED: [(i16, i16, &str); 5] = [
    (0, 3, "records of today's format (Produce 3)"),
    (1, 4, "reading them (Fetch 4)"),
    (2, 1, "where a partition ends (ListOffsets 1)"),
    (11, 0, "consumer groups (JoinGroup 0)"),
    (22, 0, "producers that write once (InitProducerId 0)"),
];

/// What is at an address.
#[derive(Debug, PartialEq, Eq)]
enum Found {
    /// Nobody.
    Nobody,
    /// A broker that has what is needed.
    Broker,
    /// A broker that lacks this.
    TooOld(String),
    /// No broker, or none that can be understood.
    Other(&'static str),
}

/// Says so if a broker is too old. The first address that a broker answers from speaks for all: a cluster has one version.
pub(crate) async fn check_version(options: &Options) -> Result<(), Error> {
    for address in addresses(options) {
        match look_at(&address).await {
            Found::Broker => return Ok(()),
            Found::TooOld(lacks) => return Err(Error::BrokerTooOld { address, lacks }),
            Found::Nobody | Found::Other(_) => {}
        }
    }
    // The client library has found one all the same.
    Ok(())
}

/// Why the client library found no broker, as far as that can be seen.
pub(crate) async fn explain(options: &Options, error: Error) -> Error {
    let Error::Unreachable { reason, .. } = &error else {
        return error;
    };
    let reason = reason.clone();
    let mut other = None;
    for address in addresses(options) {
        match look_at(&address).await {
            Found::Broker => return Error::Unwelcome { reason },
            Found::TooOld(lacks) => return Error::BrokerTooOld { address, lacks },
            Found::Other(found) => other = other.or(Some(Error::NoBroker { address, found })),
            Found::Nobody => {}
        }
    }
    other.unwrap_or(error)
}

fn addresses(options: &Options) -> impl Iterator<Item = String> {
    let listed = options.brokers.split(',').map(str::trim);
    listed.filter(|address| !address.is_empty()).map(|address| {
        let address = address.rsplit("://").next().unwrap_or(address);
        let port = address.rsplit(':').next().unwrap_or_default();
        match address.contains(':') && !port.ends_with(']') {
            true => address.to_owned(),
            false => format!("{address}:{USUAL_PORT}"),
        }
    })
}

async fn look_at(address: &str) -> Found {
    let Ok(Ok(mut stream)) = timeout(PATIENCE, TcpStream::connect(address)).await else {
        return Found::Nobody;
    };
    if stream.write_all(&QUESTION).await.is_err() {
        return Found::Other(CLOSES);
    }
    let mut answer = Vec::new();
    match timeout(PATIENCE, read_answer(&mut stream, &mut answer)).await {
        Ok(()) => judge(&answer),
        // It may wait for the end of what it takes for the head of a request.
        Err(_) if answer.is_empty() => match stream.write_all(END_OF_HEAD).await {
            Ok(()) => {
                timeout(PATIENCE, read_answer(&mut stream, &mut answer))
                    .await
                    .ok();
                match answer.is_empty() {
                    true => Found::Other(SILENT),
                    false => judge(&answer),
                }
            }
            Err(_) => Found::Other(SILENT),
        },
        Err(_) => judge(&answer),
    }
}

/// Until all of it is there, or the connection ends.
async fn read_answer(stream: &mut TcpStream, answer: &mut Vec<u8>) {
    while answer.len() < MOST_BYTES && length_of(answer).is_none_or(|length| answer.len() < length) {
        match stream.read_buf(answer).await {
            Ok(1..) => {}
            Ok(0) | Err(_) => return,
        }
    }
}

/// The length of a broker's answer, with the length itself; only what a broker says has one.
fn length_of(answer: &[u8]) -> Option<usize> {
    let (length, rest) = answer.split_first_chunk()?;
    rest.starts_with(&NUMBER)
        .then(|| 4 + u32::from_be_bytes(*length) as usize)
}

const SILENT: &str = "it takes connections and gives no answer";
const CLOSES: &str = "it closes the connection without an answer, as a listener for TLS does";
const HTTP: &str = "an HTTP server answers there";
const TLS: &str = "it speaks TLS";
const POSTGRES: &str = "a PostgreSQL server answers there";
const UNKNOWN: &str = "its answer is not that of a broker";

fn judge(answer: &[u8]) -> Found {
    match answer {
        [] => Found::Other(CLOSES),
        [b'H', b'T', b'T', b'P', ..] => Found::Other(HTTP),
        // An alert of any version.
        [0x15, 3, ..] => Found::Other(TLS),
        // An error whose first field is its severity.
        [b'E', 0, _, _, _, b'S', ..] => Found::Other(POSTGRES),
        _ => match versions_of(answer) {
            Some(known) => match lacks(&known) {
                lacks if lacks.is_empty() => Found::Broker,
                lacks => Found::TooOld(lacks),
            },
            None => Found::Other(UNKNOWN),
        },
    }
}

/// The requests that a broker knows, each with its oldest and its newest version.
fn versions_of(answer: &[u8]) -> Option<Vec<(i16, i16, i16)>> {
    let rest = answer.get(4..)?.strip_prefix(&NUMBER)?;
    let (_error, rest) = rest.split_first_chunk::<2>()?;
    let (count, rest) = rest.split_first_chunk()?;
    let count = usize::try_from(i32::from_be_bytes(*count)).ok()?;
    let (entries, _) = rest.as_chunks::<6>();
    (entries.len() >= count).then(|| {
        let of = |entry: &[u8; 6]| {
            let [a, b, c, d, e, f] = *entry;
            let number = |high, low| i16::from_be_bytes([high, low]);
            (number(a, b), number(c, d), number(e, f))
        };
        entries.iter().take(count).map(of).collect()
    })
}

fn lacks(known: &[(i16, i16, i16)]) -> String {
    let is_known = |request: i16, version: i16| {
        let mut known = known.iter();
        known.any(|(number, _, newest)| *number == request && version <= *newest)
    };
    let lacking = NEEDED
        .iter()
        .filter(|(request, version, _)| !is_known(*request, *version));
    lacking.map(|(_, _, name)| *name).collect::<Vec<_>>().join(", ")
}
