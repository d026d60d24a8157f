//! The durable emit lane: what a program needs to write a session and to get its file back.
//!
//! | module | decision |
//! |---|---|
//! | [`connection`] | how a server is reached, and which token goes with which call |
//! | [`writer`] | what is kept until it is acknowledged, when it is sent again, and when that ends |
//! | [`receive`] | when a received body may be used |
//! | [`retry`] | how long to wait before the next try |
//! | [`error`] | which answers are final |
//!
//! ```no_run
//! # async fn example() -> Result<(), wakelog_client::Error> {
//! use wakelog_client::{Connection, Writer, WriterOptions, new_nonce};
//! use wakelog_proto::v1::{AttachWriterRequest, OpenSessionRequest};
//!
//! let connection = Connection::connect("http://127.0.0.1:7420", Some("token".to_owned())).await?;
//! let mut sessions = connection.sessions();
//! let session = sessions.open_session(OpenSessionRequest::default()).await?.into_inner().session_id;
//! let nonce = new_nonce();
//! let request = AttachWriterRequest {
//!     session_id: session,
//!     writer_nonce: nonce.as_bytes().to_vec().into(),
//!     ..Default::default()
//! };
//! let grant = sessions.attach_writer(request).await?.into_inner().lifetime.unwrap_or_default();
//! let mut writer = Writer::open(connection.relays(), grant, nonce, WriterOptions::default()).await?;
//! writer.append("{\"type\":\"message\"}\n".into(), false).await?;
//! writer.drain().await?;
//! # Ok(())
//! # }
//! ```
//!
//! An agent that keeps its session file tees each write, with the bytes that it has written:
//!
//! ```no_run
//! # use std::io::Write as _;
//! # use wakelog_client::Writer;
//! /// One line of the session file, here and upstream.
//! async fn commit(file: &mut std::fs::File, writer: &mut Writer, line: &[u8]) -> std::io::Result<()> {
//!     file.write_all(line)?;
//!     let teed = writer.append(line.to_vec().into(), false).await; // a checkpoint (`true`) where the file is rewritten
//!     teed.map(drop).map_err(std::io::Error::other)
//! }
//! ```
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]

pub mod connection;
pub mod error;
pub mod receive;
pub mod retry;
pub mod writer;

pub use connection::{Bearer, Connection, Relays, Sessions};
pub use error::Error;
pub use receive::{ReceivedBody, receive_body};
pub use retry::Backoff;
pub use writer::{Acked, Writer, WriterOptions, new_nonce};
