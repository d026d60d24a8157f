//! A proxy before the S3 server that does to requests and answers what a test says.
//!
//! It reads heads and the lengths in them, and nothing else. What it hands on are the very bytes that came, so that signatures
//! stay good: services sign for the proxy's address, and the server does not care which one that is.

use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};

use crate::support::process::free_port;

/// The largest head that anybody sends here.
const MOST_HEAD_BYTES: usize = 64 * 1024;

/// What happens to requests, or to their answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Nothing.
    None,
    /// Every answer comes so much later.
    Slow(Duration),
    /// Every request is refused with 503 `SlowDown`.
    SlowDown,
    /// Every write is refused with 409 `OperationAborted`.
    Conflict,
    /// Every write is refused with 403 `AccessDenied`.
    ReadOnly,
    /// Writes happen; their connection ends without an answer.
    LoseAnswers,
    /// The same, and whoever looks whether they happened is refused with 503.
    LoseAnswersAndLooks,
    /// The last step of an upload in parts happens, and its connection ends without an answer.
    LoseCompletions,
    /// Half of an object comes, and the connection ends.
    CutBodies,
    /// Half of an object comes, and the head says that this is all.
    ShortBodies,
}

impl Fault {
    fn concerns(self, request: &Message) -> bool {
        let method = request.method();
        let is_write = matches!(method, "PUT" | "POST" | "DELETE");
        match self {
            Self::None => false,
            Self::Slow(_) | Self::SlowDown => true,
            Self::Conflict | Self::ReadOnly | Self::LoseAnswers => is_write,
            Self::LoseAnswersAndLooks => is_write || method == "HEAD",
            Self::LoseCompletions => method == "POST" && request.target().contains("uploadId="),
            Self::CutBodies | Self::ShortBodies => method == "GET" && !request.is_list(),
        }
    }
}

/// The proxy. Ends with the runtime of the test.
pub struct S3Proxy {
    port: u16,
    plan: Arc<Mutex<Plan>>,
}

struct Plan {
    fault: Fault,
    /// How many requests it meets; then nothing fails any more.
    left: u64,
    met: u64,
}

impl S3Proxy {
    /// A proxy before `server_port` that hands everything on.
    pub async fn before(server_port: u16) -> Self {
        let port = free_port();
        let listener = TcpListener::bind(("127.0.0.1", port)).await.expect("a port");
        let plan = Arc::new(Mutex::new(Plan {
            fault: Fault::None,
            left: 0,
            met: 0,
        }));
        let shared = plan.clone();
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let plan = shared.clone();
                // A connection that breaks is the client's business.
                tokio::spawn(async move { serve(client, server_port, &plan).await.ok() });
            }
        });
        Self { port, plan }
    }

    /// Where it listens.
    pub fn endpoint(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// From now on, until something else is set.
    pub fn set(&self, fault: Fault) {
        self.set_for(fault, u64::MAX);
    }

    /// For the next so many requests that it concerns.
    pub fn set_for(&self, fault: Fault, requests: u64) {
        *self.plan.lock().expect("not poisoned") = Plan {
            fault,
            left: requests,
            met: 0,
        };
    }

    /// How many requests have met what was set last.
    pub fn met(&self) -> u64 {
        self.plan.lock().expect("not poisoned").met
    }
}

/// What happens to this request.
fn fault_of(plan: &Mutex<Plan>, request: &Message) -> Fault {
    let mut plan = plan.lock().expect("not poisoned");
    if plan.left == 0 || !plan.fault.concerns(request) {
        return Fault::None;
    }
    plan.left -= 1;
    plan.met += 1;
    plan.fault
}

async fn serve(client: TcpStream, server_port: u16, plan: &Mutex<Plan>) -> io::Result<()> {
    client.set_nodelay(true)?;
    let mut client = BufReader::new(client);
    while let Some(request) = Message::read_request(&mut client).await? {
        let is_head = request.method() == "HEAD";
        let fault = fault_of(plan, &request);
        let answer = match fault {
            Fault::SlowDown => refusal(503, "SlowDown", is_head),
            Fault::LoseAnswersAndLooks if is_head => refusal(503, "SlowDown", is_head),
            Fault::Conflict => refusal(409, "OperationAborted", is_head),
            Fault::ReadOnly => refusal(403, "AccessDenied", is_head),
            _ => ask(server_port, &request).await?,
        };
        let half = answer.body.len() / 2;
        match fault {
            Fault::LoseAnswers | Fault::LoseCompletions => return Ok(()),
            Fault::LoseAnswersAndLooks if !is_head => return Ok(()),
            Fault::CutBodies => {
                client.write_all(&answer.head).await?;
                client.write_all(&answer.body[..half]).await?;
                return client.shutdown().await;
            }
            Fault::ShortBodies => {
                client.write_all(&answer.head_for(half)).await?;
                client.write_all(&answer.body[..half]).await?;
                continue;
            }
            Fault::Slow(delay) => tokio::time::sleep(delay).await,
            _ => {}
        }
        client.write_all(&answer.head).await?;
        client.write_all(&answer.body).await?;
    }
    Ok(())
}

/// Hands a request on, over a connection of its own, and takes the whole answer.
async fn ask(server_port: u16, request: &Message) -> io::Result<Message> {
    let server = TcpStream::connect(("127.0.0.1", server_port)).await?;
    server.set_nodelay(true)?;
    let mut server = BufReader::new(server);
    server.write_all(&request.head).await?;
    server.write_all(&request.body).await?;
    Message::read_answer(&mut server, request.method() == "HEAD").await
}

fn refusal(status: u16, code: &str, is_head: bool) -> Message {
    let mut body = Vec::new();
    if !is_head {
        let text = "<Message>a test asked for this</Message>";
        body = format!("<?xml version=\"1.0\"?><Error><Code>{code}</Code>{text}</Error>").into_bytes();
    }
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status} {code}\r\nContent-Type: application/xml\r\nContent-Length: {length}\r\n\r\n"
    );
    Message {
        head: head.into_bytes(),
        body,
    }
}

/// A request or an answer, as it came.
struct Message {
    head: Vec<u8>,
    body: Vec<u8>,
}

impl Message {
    /// `None` at the end of the connection.
    async fn read_request(client: &mut BufReader<TcpStream>) -> io::Result<Option<Self>> {
        let mut request = Self::read_head(client).await?;
        if request.head.is_empty() {
            return Ok(None);
        }
        if request.header("expect").is_some() {
            client.write_all(b"HTTP/1.1 100 Continue\r\n\r\n").await?;
        }
        request.read_body(client).await?;
        Ok(Some(request))
    }

    async fn read_answer(server: &mut BufReader<TcpStream>, of_head: bool) -> io::Result<Self> {
        loop {
            let mut answer = Self::read_head(server).await?;
            let status = answer.text().split(' ').nth(1).unwrap_or_default().to_owned();
            match status.as_str() {
                "" => return Err(io::ErrorKind::UnexpectedEof.into()),
                "100" => continue,
                "204" | "304" => return Ok(answer),
                _ if of_head => return Ok(answer),
                _ => answer.read_body(server).await?,
            }
            return Ok(answer);
        }
    }

    async fn read_head(peer: &mut BufReader<TcpStream>) -> io::Result<Self> {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let read = peer.read_until(b'\n', &mut head).await?;
            if (read == 0 && !head.is_empty()) || head.len() > MOST_HEAD_BYTES {
                return Err(io::ErrorKind::InvalidData.into());
            }
            if read == 0 {
                break;
            }
        }
        let body = Vec::new();
        Ok(Self { head, body })
    }

    async fn read_body(&mut self, peer: &mut BufReader<TcpStream>) -> io::Result<()> {
        if self.header("transfer-encoding").is_some() {
            return self.read_chunks(peer).await;
        }
        let length = self.header("content-length").unwrap_or("0").parse();
        self.body = vec![0; length.map_err(|_| io::ErrorKind::InvalidData)?];
        peer.read_exact(&mut self.body).await?;
        Ok(())
    }

    async fn read_chunks(&mut self, peer: &mut BufReader<TcpStream>) -> io::Result<()> {
        loop {
            let start = self.body.len();
            peer.read_until(b'\n', &mut self.body).await?;
            let line = String::from_utf8_lossy(&self.body[start..]).into_owned();
            let size = line.trim_end().split(';').next().unwrap_or_default();
            let size = usize::from_str_radix(size, 16).map_err(|_| io::ErrorKind::InvalidData)?;
            let end = self.body.len();
            self.body.resize(end + size + 2, 0);
            peer.read_exact(&mut self.body[end..]).await?;
            if size == 0 {
                return Ok(());
            }
        }
    }

    fn text(&self) -> &str {
        std::str::from_utf8(&self.head).unwrap_or_default()
    }

    fn method(&self) -> &str {
        self.text().split(' ').next().unwrap_or_default()
    }

    fn target(&self) -> &str {
        self.text().split(' ').nth(1).unwrap_or_default()
    }

    /// Whether it asks for names and not for an object.
    fn is_list(&self) -> bool {
        self.target().contains("list-type")
    }

    fn header(&self, name: &str) -> Option<&str> {
        self.text().lines().find_map(|line| {
            let (found, value) = line.split_once(':')?;
            found.eq_ignore_ascii_case(name).then_some(value.trim())
        })
    }

    /// The same head, for a body of another length.
    fn head_for(&self, length: usize) -> Vec<u8> {
        let is_length = |line: &&str| line.to_ascii_lowercase().starts_with("content-length:");
        let kept: Vec<&str> = self
            .text()
            .trim_end()
            .lines()
            .filter(|line| !is_length(line))
            .collect();
        format!("{}\r\nContent-Length: {length}\r\n\r\n", kept.join("\r\n")).into_bytes()
    }
}
