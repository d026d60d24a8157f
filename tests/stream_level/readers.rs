//! Accounts that may see a session of somebody else, and do no more than that.

use wakelog_proto::v1::session_record::Record;
use wakelog_proto::v1::{AccessChanged, RefusalReason};

use crate::poisoned_topic::topic::Topic;
use crate::support::refusal::refused;
use crate::support::session::{describe, erase};
use crate::support::stack::Stack;
use crate::support::subject::Subject;
use crate::support::within;

/// Invariant opaque-absence: only the owner erases a session. Who may read it is told so, for everybody else there is none.
#[tokio::test(flavor = "multi_thread")]
async fn opaque_absence_and_only_the_owner_erases() {
    const ANN: &str = "the-token-of-ann-0001";
    const BOB: &str = "the-token-of-bob-0002";
    const EVE: &str = "the-token-of-eve-0003";
    let mut stack = Stack::start_with_accounts(&[("ann", ANN), ("bob", BOB), ("eve", EVE)]).await;
    let ann = stack.connect_as(Some(ANN)).await;
    let bob = stack.connect_as(Some(BOB)).await;
    let eve = stack.connect_as(Some(EVE)).await;
    let mut subject = Subject::open(&ann, "anns").await;
    let access = Record::AccessChanged(AccessChanged {
        account: "bob".to_owned(),
        role: 1,
    });
    let topic = Topic::of(&stack);
    topic
        .put_record(subject.partition, &subject.session, access)
        .await;
    within("bob may read it", async {
        while describe(&bob, &subject.session).await.is_err() {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    })
    .await;

    let session = subject.session.clone();
    let unknown = uuid::Uuid::new_v4().to_string();
    refused(
        "a reader",
        erase(&bob, &session).await,
        RefusalReason::TokenForeign,
    );
    for asked in [&session, &unknown] {
        let answer = erase(&eve, asked).await;
        refused("a stranger", answer, RefusalReason::SessionNotFound);
    }
    subject.goes_on(&ann, 0, "erasures of others").await;

    erase(&ann, &session).await.expect("its owner erases it");
    for (who, connection) in [("the reader", &bob), ("the stranger", &eve)] {
        let answer = erase(connection, &session).await;
        refused(who, answer, RefusalReason::SessionNotFound);
    }
    erase(&ann, &session).await.expect("the owner may ask again");
    let answer = erase(&ann, &unknown).await;
    refused("unknown", answer, RefusalReason::SessionNotFound);
    assert!(stack.stop().success(), "{}", stack.log());
    assert_eq!(stack.verify_counting(), 0);
}
