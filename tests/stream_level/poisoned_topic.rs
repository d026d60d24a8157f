//! Records that no service of ours would publish, straight in the topic: each is put aside and counted, its partition goes
//! on, and a fold of the log still says what the hot tail says.
//!
//! | module | what is in the topic |
//! |---|---|
//! | `unreadable` | what is no record, or on the wrong partition |
//! | `parts` | parts that are not what they say, or are nobody's |
//! | `conflicts` | parts that contradict what was applied |
//! | `binds` | records that would change whose session it is |

mod binds;
mod conflicts;
mod parts;
pub(crate) mod topic;
mod unreadable;

use wakelog_client::Connection;

use crate::support::bystander::Bystander;
use crate::support::stack::Stack;
use crate::support::subject::Subject;
use topic::Topic;

/// A stack whose topic is poisoned, a session that is meant, and one on the same partition that must not notice.
struct Scene {
    stack: Stack,
    connection: Connection,
    topic: Topic,
    subject: Subject,
    bystander: Bystander,
    /// Records that must be in quarantine, over all partitions.
    quarantined: u64,
}

impl Scene {
    async fn start() -> Self {
        let stack = Stack::start().await;
        let connection = stack.connect().await;
        let topic = Topic::of(&stack);
        let subject = Subject::open(&connection, "subject").await;
        let bystander = Bystander::open_on(&connection, "bystander", subject.partition).await;
        Self {
            stack,
            connection,
            topic,
            subject,
            bystander,
            quarantined: 0,
        }
    }

    /// The partition goes on, and so does the subject, with this many records in quarantine under its key.
    async fn goes_on(&mut self, quarantined_of_subject: u64, context: &str) {
        self.bystander.goes_on(&self.connection, context).await;
        self.subject
            .goes_on(&self.connection, quarantined_of_subject, context)
            .await;
    }

    /// The bystander still goes on, the stack stops well, and the log says what the hot tail says: each bad record is in
    /// quarantine once.
    async fn end(mut self) {
        self.bystander.goes_on(&self.connection, "at the end").await;
        assert!(
            self.stack.stop().success(),
            "a drained stop ends well\n{}",
            self.stack.log()
        );
        assert_eq!(
            self.stack.verify_counting(),
            self.quarantined,
            "each bad record once"
        );
    }
}
