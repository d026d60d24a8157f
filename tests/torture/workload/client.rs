//! Calls that go on to the next server, for as long as a user would try.

use std::time::{Duration, Instant};

use tonic::Code;
use wakelog_client::{Connection, Error};
use wakelog_proto::v1::RefusalReason;

/// How long one call may take before the next server is asked.
const CALL: Duration = Duration::from_secs(20);

/// How long a call is tried again: as a writer does.
const GIVE_UP: Duration = Duration::from_secs(120);

/// Where sessions are served, and where entries are taken.
#[derive(Debug, Clone)]
pub struct Servers {
    pub sessions: Vec<String>,
    pub relays: Vec<String>,
    pub token: String,
}

/// A client with a connection to one of the servers.
pub struct Client {
    servers: Servers,
    turn: usize,
    give_up_after: Duration,
    connection: Option<Connection>,
}

/// Why a call did not succeed.
#[derive(Debug)]
pub enum Trouble {
    /// A server refused, and trying again would not help.
    Refused(Error),
    /// Nobody answered well in time.
    GaveUp(String),
}

impl std::fmt::Display for Trouble {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Refused(error) => write!(formatter, "{error}"),
            Self::GaveUp(last) => write!(formatter, "no good answer, last: {last}"),
        }
    }
}

impl Client {
    /// One that begins with the server, and the relay, of this turn.
    pub fn new(servers: Servers, turn: usize) -> Self {
        Self {
            servers,
            turn,
            give_up_after: GIVE_UP,
            connection: None,
        }
    }

    /// The same with another bound.
    pub fn giving_up_after(self, give_up_after: Duration) -> Self {
        Self {
            give_up_after,
            ..self
        }
    }

    /// Asks until somebody answers, or refuses for good.
    pub async fn ask<T, F>(&mut self, call: impl Fn(Connection) -> F) -> Result<T, Trouble>
    where
        F: Future<Output = Result<T, Error>>,
    {
        let since = Instant::now();
        let mut pause = Duration::from_millis(50);
        loop {
            let answer = tokio::time::timeout(CALL, async { call(self.connected().await?).await });
            let trouble = match answer.await {
                Ok(Ok(answer)) => return Ok(answer),
                Ok(Err(error)) if !may_pass(&error) => return Err(Trouble::Refused(error)),
                Ok(Err(error)) => error.to_string(),
                Err(_) => format!("no answer within {CALL:?}"),
            };
            if since.elapsed() > self.give_up_after {
                return Err(Trouble::GaveUp(trouble));
            }
            self.connection = None;
            self.turn += 1;
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(Duration::from_secs(1));
        }
    }

    /// The connection, made if there is none.
    pub async fn connected(&mut self) -> Result<Connection, Error> {
        if let Some(connection) = &self.connection {
            return Ok(connection.clone());
        }
        let sessions = turned(&self.servers.sessions, self.turn);
        let relays = turned(&self.servers.relays, self.turn);
        let connected = Connection::connect_any(&sessions, Some(self.servers.token.clone())).await?;
        let connection = connected.with_relays(&relays)?;
        self.connection = Some(connection.clone());
        Ok(connection)
    }
}

fn turned(all: &[String], places: usize) -> String {
    let mut turned = all.to_vec();
    turned.rotate_left(places % all.len());
    turned.join(",")
}

/// Whether another try may get another answer.
pub fn may_pass(error: &Error) -> bool {
    match error {
        Error::Refused { code, .. } => match code {
            Code::Unavailable | Code::ResourceExhausted | Code::Cancelled | Code::DeadlineExceeded => true,
            // What a broken connection is reported as, if no service of ours said it.
            Code::Unknown | Code::Internal | Code::Ok => {
                matches!(error.refusal_reason(), None | Some(RefusalReason::Unspecified))
            }
            _ => false,
        },
        Error::Lost { .. } | Error::Unreachable { .. } | Error::CutShort { .. } => true,
        _ => false,
    }
}
