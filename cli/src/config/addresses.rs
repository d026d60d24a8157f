//! What a list of addresses looks like. Checked where it is read, so that what is wrong is told with where it came from.

use std::str::FromStr;

use wakelog_client::Connection;

/// Servers or relays, as URL,URL.
pub(super) struct Endpoints(pub(super) String);

impl FromStr for Endpoints {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match Connection::check_endpoints(text) {
            Ok(()) => Ok(Self(text.to_owned())),
            Err(wakelog_client::Error::Endpoint { reason, .. }) => Err(reason),
            Err(error) => Err(error.to_string()),
        }
    }
}

/// Brokers, as host:port,host:port.
pub(super) struct Brokers(pub(super) String);

impl FromStr for Brokers {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.split(',').all(is_broker) {
            true => Ok(Self(text.to_owned())),
            false => Err("a broker is host:port, several are separated by commas"),
        }
    }
}

/// librdkafka would take a port of its own, and tell what it can't read only in its log.
fn is_broker(text: &str) -> bool {
    // A security protocol may stand before it.
    let address = text
        .trim()
        .split_once("://")
        .map_or(text.trim(), |(_, address)| address);
    let Some((host, port)) = address.rsplit_once(':') else {
        return false;
    };
    let is_host = !host.is_empty() && !host.contains(|c: char| c.is_whitespace() || c == '/');
    is_host && port.parse::<u16>().is_ok_and(|port| port > 0)
}
