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
