//! An S3 server in this process on a folder, with a layer in front that can fail in many ways.

#![allow(dead_code, reason = "each test binary uses a part of it")]

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures::stream;
use http_body_util::{BodyExt as _, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::header::{HeaderName, HeaderValue};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use s3s::Body;
use s3s::auth::SimpleAuth;
use s3s::service::{S3Service, S3ServiceBuilder};
use tempfile::TempDir;
use tokio::net::TcpListener;
use wakelog_archive::{ObjectStore, Options, RetryPolicy};

pub(crate) const BUCKET: &str = "bucket";
pub(crate) const ACCESS_KEY: &str = "test-access";
pub(crate) const SECRET_KEY: &str = "test-secret";

/// Attempts of a request in these tests.
pub(crate) const ATTEMPTS: u32 = 4;

type Failed = Box<dyn std::error::Error + Send + Sync>;

/// What the layer in front does to a request.
#[derive(Debug, Clone)]
pub(crate) enum Fault {
    /// Answers itself with a status and an error code; nothing happens.
    Answer(u16, &'static str),
    /// Lets it happen and then answers with a status and an error code.
    AnswerAfter(u16, &'static str),
    /// Answers itself with a body.
    Body(Vec<u8>),
    /// Closes the connection; nothing happens.
    LoseRequest,
    /// Lets it happen and closes the connection.
    LoseAnswer,
    /// Never answers; nothing happens.
    Stall,
    /// Sends half of the answer's body and closes the connection.
    CutBody,
    /// Flips a bit of the answer's body.
    FlipBit,
    /// Puts a header into the answer; an empty value removes it.
    SetHeader(&'static str, String),
}

/// Which requests a fault meets, and how often.
#[derive(Debug)]
struct Rule {
    method: Method,
    /// What the path and the query have in them.
    within: &'static str,
    fault: Fault,
    times: usize,
}

/// The server. Its tasks end with the test's runtime.
pub(crate) struct Server {
    address: SocketAddr,
    folder: TempDir,
    shared: Arc<Shared>,
}

struct Shared {
    service: S3Service,
    rules: Mutex<Vec<Rule>>,
    seen: Mutex<Vec<String>>,
}

impl Server {
    pub(crate) async fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join(BUCKET)).unwrap();
        let files = s3s_fs::FileSystem::new(folder.path()).unwrap();
        let mut builder = S3ServiceBuilder::new(files);
        builder.set_auth(SimpleAuth::from_single(ACCESS_KEY, SECRET_KEY));
        let shared = Arc::new(Shared {
            service: builder.build(),
            rules: Mutex::default(),
            seen: Mutex::default(),
        });
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(accept(listener, Arc::clone(&shared)));
        Self {
            address,
            folder,
            shared,
        }
    }

    pub(crate) fn options(&self) -> Options {
        Options {
            endpoint: Some(format!("http://{}", self.address)),
            access_key: Some(ACCESS_KEY.to_owned()),
            secret_key: Some(SECRET_KEY.to_owned()),
            path_style: true,
            retry: RetryPolicy {
                initial: Duration::from_millis(1),
                max_interval: Duration::from_millis(5),
                max_elapsed: Duration::from_secs(60),
                max_attempts: ATTEMPTS,
            },
            ..Options::new("us-east-1", BUCKET)
        }
    }

    pub(crate) fn store(&self) -> ObjectStore {
        ObjectStore::new(self.options()).unwrap()
    }

    /// From now on, for so many requests; the first rule that fits counts.
    pub(crate) fn fail(&self, method: Method, within: &'static str, fault: Fault, times: usize) {
        lock(&self.shared.rules).push(Rule {
            method,
            within,
            fault,
            times,
        });
    }

    pub(crate) fn heal(&self) {
        lock(&self.shared.rules).clear();
    }

    /// Requests whose method, path and query have this in them.
    pub(crate) fn seen(&self, within: &str) -> usize {
        let seen = lock(&self.shared.seen);
        seen.iter().filter(|request| request.contains(within)).count()
    }

    /// The file of an object.
    pub(crate) fn file(&self, key: &str) -> PathBuf {
        self.folder.path().join(BUCKET).join(key)
    }

    /// Files of uploads that are neither complete nor given up.
    pub(crate) fn unfinished_uploads(&self) -> usize {
        let entries = std::fs::read_dir(self.folder.path()).unwrap();
        entries
            .filter(|entry| {
                let name = entry.as_ref().unwrap().file_name();
                name.to_string_lossy().contains("upload")
            })
            .count()
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    while let Ok((socket, _)) = listener.accept().await {
        let shared = Arc::clone(&shared);
        tokio::spawn(async move {
            let service = service_fn(move |request| answer(Arc::clone(&shared), request));
            // How a connection ends is the client's business.
            hyper::server::conn::http1::Builder::new()
                .serve_connection(TokioIo::new(socket), service)
                .await
                .ok();
        });
    }
}

async fn answer(shared: Arc<Shared>, request: Request<Incoming>) -> Result<Response<Body>, Failed> {
    let fault = take_fault(&shared, &request);
    let request = request.map(Body::from);
    match &fault {
        Some(Fault::Answer(status, code)) => return read_and_answer(request, *status, code).await,
        Some(Fault::Body(bytes)) => return Ok(Response::new(Body::from(bytes.clone()))),
        Some(Fault::LoseRequest) => return Err("the request is lost".into()),
        Some(Fault::Stall) => std::future::pending::<()>().await,
        _ => {}
    }
    let mut response = shared
        .service
        .call(request)
        .await
        .map_err(|error| format!("{error:?}"))?;
    match fault {
        Some(Fault::AnswerAfter(status, code)) => Ok(refusal(status, code)),
        Some(Fault::LoseAnswer) => {
            // Whatever the answer's body still has to do is done.
            response
                .into_body()
                .collect()
                .await
                .map_err(|error| format!("{error:?}"))?;
            Err("the answer is lost".into())
        }
        Some(Fault::CutBody) => {
            let (head, bytes) = whole(response).await?;
            let half = bytes.slice(..bytes.len() / 2);
            // Without a pause between the two the server would not even send the head.
            let cut = async {
                tokio::task::yield_now().await;
                Err(Failed::from("the body is cut"))
            };
            let first = async { Ok(Frame::data(half)) };
            let frames = stream::select(stream::once(first), stream::once(cut));
            let body = Body::http_body_unsync(StreamBody::new(Box::pin(frames)));
            Ok(Response::from_parts(head, body))
        }
        Some(Fault::FlipBit) => {
            let (head, bytes) = whole(response).await?;
            let mut bytes = bytes.to_vec();
            let middle = bytes.len() / 2;
            bytes[middle] ^= 4;
            Ok(Response::from_parts(head, Body::from(bytes)))
        }
        Some(Fault::SetHeader(name, value)) => {
            let name = HeaderName::from_static(name);
            response.headers_mut().remove(&name);
            if !value.is_empty() {
                response
                    .headers_mut()
                    .insert(name, HeaderValue::from_str(&value)?);
            }
            Ok(response)
        }
        _ => Ok(response),
    }
}

fn take_fault(shared: &Shared, request: &Request<Incoming>) -> Option<Fault> {
    let target = request.uri().to_string();
    lock(&shared.seen).push(format!("{} {target}", request.method()));
    let mut rules = lock(&shared.rules);
    let rule = rules
        .iter_mut()
        .find(|rule| rule.times > 0 && rule.method == *request.method() && target.contains(rule.within))?;
    rule.times -= 1;
    Some(rule.fault.clone())
}

/// A server that answers before it has read the request would make the client see a broken connection.
async fn read_and_answer(request: Request<Body>, status: u16, code: &str) -> Result<Response<Body>, Failed> {
    request
        .into_body()
        .collect()
        .await
        .map_err(|error| format!("{error:?}"))?;
    Ok(refusal(status, code))
}

fn refusal(status: u16, code: &str) -> Response<Body> {
    let text =
        format!("<?xml version=\"1.0\"?><Error><Code>{code}</Code><Message>asked for</Message></Error>");
    let mut response = Response::new(Body::from(text));
    *response.status_mut() = StatusCode::from_u16(status).unwrap();
    response
}

async fn whole(response: Response<Body>) -> Result<(hyper::http::response::Parts, Bytes), Failed> {
    let (head, body) = response.into_parts();
    let collected = body.collect().await.map_err(|error| format!("{error:?}"))?;
    Ok((head, collected.to_bytes()))
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Bytes that zstd can't make smaller, the same for the same seed.
pub(crate) fn noise(length: usize, mut seed: u64) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(length + 8);
    while bytes.len() < length {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        bytes.extend_from_slice(&seed.to_le_bytes());
    }
    bytes.truncate(length);
    bytes
}
