//! What no writer and no caller should send: each gets its typed answer, and nothing is disturbed.
//!
//! | module | what is wrong |
//! |---|---|
//! | `tokens` | who writes |
//! | `entries` | a frame by itself |
//! | `parts` | a stream of parts by itself |
//! | `order` | an entry after those before it |
//! | `absence` | a session that is not there for the caller, or holds nothing |
//! | `requests` | a request about sessions, by itself |
//! | `content` | nothing: bytes that others would touch |

mod absence;
mod content;
mod entries;
mod order;
mod parts;
mod requests;
mod tokens;

use wakelog_client::Connection;
use wakelog_proto::v1::{CommitConversationFrameRequest, Refusal, RefusalReason};

use crate::support::bystander::Bystander;
use crate::support::refusal::refused;
use crate::support::relay::{commit, post};
use crate::support::stack::Stack;
use crate::support::subject::Subject;

/// A stack, a session that is mistreated, and one on the same partition that must not notice.
struct Scene {
    stack: Stack,
    connection: Connection,
    subject: Subject,
    bystander: Bystander,
}

impl Scene {
    async fn start() -> Self {
        let stack = Stack::start().await;
        let connection = stack.connect().await;
        let subject = Subject::open(&connection, "subject").await;
        let bystander = Bystander::open_on(&connection, "bystander", subject.partition).await;
        Self {
            stack,
            connection,
            subject,
            bystander,
        }
    }

    /// Neither session has noticed anything, and nothing got into the log that had to be put aside.
    async fn undisturbed(&mut self, context: &str) {
        self.subject.goes_on(&self.connection, 0, context).await;
        self.bystander.goes_on(&self.connection, context).await;
    }

    /// The bystander still goes on, the stack stops well, and the log says what the hot tail says.
    async fn end(mut self) {
        self.bystander.goes_on(&self.connection, "at the end").await;
        assert!(
            self.stack.stop().success(),
            "a drained stop ends well\n{}",
            self.stack.log()
        );
        assert_eq!(
            self.stack.verify_counting(),
            0,
            "what was refused was not published"
        );
    }

    /// Both unary calls refuse the subject's frame for this reason.
    async fn refuses(
        &self,
        what: &str,
        frame: &CommitConversationFrameRequest,
        reason: RefusalReason,
    ) -> Refusal {
        let token = Some(self.subject.token());
        let posted = refused(what, post(&self.connection, token, frame).await, reason);
        let committed = refused(what, commit(&self.connection, token, frame).await, reason);
        assert_eq!(posted, committed, "{what}: both calls answer the same");
        committed
    }
}
