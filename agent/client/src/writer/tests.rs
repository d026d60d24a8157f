use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio_stream::StreamExt as _;
use tokio_stream::wrappers::{ReceiverStream, TcpListenerStream};
use tonic::{Request, Response, Status, Streaming};
use wakelog_contract::refuse;
use wakelog_model::limits::PART_SIZE;
use wakelog_proto::v1::commit_conversation_parts_request::Message as RequestMessage;
use wakelog_proto::v1::commit_conversation_parts_response::Message as ResponseMessage;
use wakelog_proto::v1::relay_service_server::{RelayService, RelayServiceServer};
use wakelog_proto::v1::{
    CommitConversationFrameRequest, CommitConversationFrameResponse, CommitConversationPartsRequest,
    CommitConversationPartsResponse, RefusalReason,
};

use super::*;
use crate::Connection;

/// What the relay does with one stream.
#[derive(Clone)]
enum Script {
    /// Acknowledges every entry.
    AckAll,
    /// Acknowledges entries up to this one, takes the rest without an answer, and breaks off after so many complete ones.
    AckUpToThenBreak { ack: u64, entries: usize },
    /// Refuses the stream.
    Refuse(Status),
    /// Takes this many complete entries, then refuses.
    TakeThenRefuse { entries: usize, status: Status },
}

#[derive(Default)]
struct Seen {
    streams: Vec<Vec<u64>>,
    tokens: Vec<String>,
    entries: BTreeMap<u64, Vec<u8>>,
}

#[derive(Clone)]
struct Relay {
    scripts: Arc<Mutex<Vec<Script>>>,
    seen: Arc<Mutex<Seen>>,
    entries_limit: u32,
}

fn accepted(entries: u32) -> CommitConversationPartsResponse {
    let accepted = StreamAccepted {
        max_unacked_entries: entries,
        max_unacked_bytes: 32 * 1024 * 1024,
        max_entry_bytes: 64 * 1024 * 1024,
        applied_entry_seq: 0,
    };
    CommitConversationPartsResponse {
        message: Some(ResponseMessage::Accepted(accepted)),
    }
}

fn acked(entry_seq: u64) -> CommitConversationPartsResponse {
    let acked = EntriesAcked {
        entry_seq,
        ack_level: AckLevel::Log.into(),
    };
    CommitConversationPartsResponse {
        message: Some(ResponseMessage::Acked(acked)),
    }
}

#[tonic::async_trait]
impl RelayService for Relay {
    async fn commit_conversation_frame(
        &self,
        _request: Request<CommitConversationFrameRequest>,
    ) -> Result<Response<CommitConversationFrameResponse>, Status> {
        Err(Status::unimplemented("not here"))
    }

    type CommitConversationPartsStream = ReceiverStream<Result<CommitConversationPartsResponse, Status>>;

    async fn commit_conversation_parts(
        &self,
        request: Request<Streaming<CommitConversationPartsRequest>>,
    ) -> Result<Response<Self::CommitConversationPartsStream>, Status> {
        let token = request
            .metadata()
            .get("authorization")
            .unwrap()
            .to_str()
            .unwrap()
            .to_owned();
        let script = {
            let mut scripts = self.scripts.lock().unwrap();
            if scripts.len() > 1 {
                scripts.remove(0)
            } else {
                scripts[0].clone()
            }
        };
        let index = {
            let mut seen = self.seen.lock().unwrap();
            seen.tokens.push(token);
            seen.streams.push(Vec::new());
            seen.streams.len() - 1
        };
        if let Script::Refuse(status) = script {
            return Err(status);
        }
        let (responses, receiver) = tokio::sync::mpsc::channel(4);
        let seen = self.seen.clone();
        let limit = self.entries_limit;
        tokio::spawn(async move {
            let mut requests = request.into_inner();
            responses.send(Ok(accepted(limit))).await.unwrap();
            let mut open = Vec::new();
            let mut complete = 0;
            while let Some(Ok(message)) = requests.next().await {
                let Some(RequestMessage::Part(part)) = message.message else {
                    continue;
                };
                assert!(part.last || part.content.len() == PART_SIZE);
                open.extend_from_slice(&part.content);
                if !part.last {
                    continue;
                }
                complete += 1;
                {
                    let mut seen = seen.lock().unwrap();
                    seen.streams[index].push(part.entry_seq);
                    let entry = std::mem::take(&mut open);
                    let before = seen.entries.insert(part.entry_seq, entry.clone());
                    assert!(
                        before.is_none_or(|before| before == entry),
                        "other bytes when sent again"
                    );
                }
                match &script {
                    Script::AckAll => _ = responses.send(Ok(acked(part.entry_seq))).await,
                    Script::AckUpToThenBreak { ack, entries } => {
                        if part.entry_seq <= *ack {
                            _ = responses.send(Ok(acked(part.entry_seq))).await;
                        }
                        if complete == *entries {
                            return;
                        }
                    }
                    Script::TakeThenRefuse { entries, status } => {
                        if complete == *entries {
                            _ = responses.send(Err(status.clone())).await;
                            return;
                        }
                    }
                    Script::Refuse(_) => unreachable!(),
                }
            }
        });
        Ok(Response::new(ReceiverStream::new(receiver)))
    }
}

struct Renewals {
    away: bool,
}

type NoStream<T> = tokio_stream::Empty<Result<T, Status>>;

mod sessions;

async fn serve(scripts: Vec<Script>, entries_limit: u32) -> (Connection, Arc<Mutex<Seen>>) {
    serve_with(scripts, entries_limit, false).await
}

async fn serve_with(
    scripts: Vec<Script>,
    entries_limit: u32,
    renewals_are_away: bool,
) -> (Connection, Arc<Mutex<Seen>>) {
    let relay = Relay {
        scripts: Arc::new(Mutex::new(scripts)),
        seen: Arc::default(),
        entries_limit,
    };
    let seen = relay.seen.clone();
    let listener = tokio::net::TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], 0)))
        .await
        .unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    let server = tonic::transport::Server::builder()
        .add_service(RelayServiceServer::new(relay))
        .add_service(sessions::server(renewals_are_away))
        .serve_with_incoming(TcpListenerStream::new(listener));
    tokio::spawn(server);
    (Connection::connect(&endpoint, None).await.unwrap(), seen)
}

fn fast() -> WriterOptions {
    WriterOptions {
        first_delay: Duration::from_millis(1),
        longest_delay: Duration::from_millis(5),
        give_up_after: Duration::from_millis(500),
        silence: Duration::from_secs(5),
        ..WriterOptions::default()
    }
}

async fn writer(connection: &Connection) -> Result<Writer, Error> {
    let grant = LifetimeGrant {
        token: "first".into(),
        ..Default::default()
    };
    Writer::open(connection.relays(), grant, new_nonce(), fast()).await
}

fn entry(number: u64) -> Bytes {
    format!("{{\"entry\":{number}}}\n").into()
}

#[tokio::test]
async fn entries_are_sent_in_order_and_drained() {
    let (connection, seen) = serve(vec![Script::AckAll], 256).await;
    let mut writer = writer(&connection).await.unwrap();
    for number in 1..=600 {
        assert_eq!(writer.append(entry(number), false).await.unwrap(), number);
    }
    assert_eq!(writer.drain().await.unwrap().entry_seq, 600);
    assert_eq!(seen.lock().unwrap().streams, [(1..=600).collect::<Vec<_>>()]);
}

#[tokio::test]
async fn what_was_not_acknowledged_is_sent_again_after_a_break() {
    let script = vec![Script::AckUpToThenBreak { ack: 3, entries: 7 }, Script::AckAll];
    let (connection, seen) = serve(script, 256).await;
    let mut writer = writer(&connection).await.unwrap();
    for number in 1..=20 {
        writer.append(entry(number), false).await.unwrap();
    }
    writer.drain().await.unwrap();
    let seen = seen.lock().unwrap();
    assert_eq!(seen.streams[0], (1..=7).collect::<Vec<_>>());
    assert_eq!(seen.streams[1], (4..=20).collect::<Vec<_>>());
    assert!(seen.entries.iter().all(|(number, bytes)| entry(*number) == bytes));
}

#[tokio::test]
async fn a_gap_is_filled_from_what_is_held() {
    let gap = refuse(RefusalReason::Gap, "entry 3 is expected")
        .expected(3)
        .build();
    let script = vec![
        Script::TakeThenRefuse {
            entries: 5,
            status: gap,
        },
        Script::AckAll,
    ];
    let (connection, seen) = serve(script, 256).await;
    let mut writer = writer(&connection).await.unwrap();
    for number in 1..=5 {
        writer.append(entry(number), false).await.unwrap();
    }
    writer.drain().await.unwrap();
    assert_eq!(seen.lock().unwrap().streams[1], [3, 4, 5]);
}

#[tokio::test]
async fn a_gap_below_what_was_acknowledged_is_final() {
    let gap = refuse(RefusalReason::Gap, "entry 2 is expected")
        .expected(2)
        .build();
    let script = vec![
        Script::AckUpToThenBreak { ack: 3, entries: 3 },
        Script::Refuse(gap),
    ];
    let (connection, seen) = serve(script, 256).await;
    let mut writer = writer(&connection).await.unwrap();
    for number in 1..=3 {
        writer.append(entry(number), false).await.unwrap();
    }
    writer.drain().await.unwrap();
    let refused = async {
        writer.append(entry(4), false).await?;
        writer.drain().await
    };
    let error = refused.await.unwrap_err();
    assert_eq!(error.refusal_reason(), Some(RefusalReason::Gap));
    assert_eq!(seen.lock().unwrap().streams.len(), 2);
}

#[tokio::test]
async fn a_final_refusal_is_not_tried_again_and_ends_the_writer() {
    let fenced = refuse(RefusalReason::Superseded, "superseded")
        .expected(7)
        .build();
    let script = vec![Script::TakeThenRefuse {
        entries: 1,
        status: fenced,
    }];
    let (connection, seen) = serve(script, 256).await;
    let mut writer = writer(&connection).await.unwrap();
    writer.append(entry(1), false).await.unwrap();
    let error = writer.drain().await.unwrap_err();
    assert_eq!(error.refusal_reason(), Some(RefusalReason::Superseded));
    assert!(matches!(
        writer.append(entry(2), false).await,
        Err(Error::WriterEnded { .. })
    ));
    assert_eq!(seen.lock().unwrap().streams.len(), 1);
}

#[tokio::test]
async fn an_expired_token_is_renewed_once() {
    let expired = refuse(RefusalReason::TokenExpired, "expired").build();
    let (connection, seen) = serve(vec![Script::Refuse(expired.clone()), Script::AckAll], 256).await;
    let mut renewed = writer(&connection).await.unwrap();
    renewed.append(entry(1), false).await.unwrap();
    renewed.drain().await.unwrap();
    assert_eq!(seen.lock().unwrap().tokens, ["Bearer first", "Bearer renewed"]);

    let (connection, seen) = serve(vec![Script::Refuse(expired)], 256).await;
    let error = writer(&connection).await.err().unwrap();
    assert_eq!(error.refusal_reason(), Some(RefusalReason::TokenExpired));
    assert_eq!(seen.lock().unwrap().streams.len(), 2);
}

/// A relay whose clock is ahead takes every token for an expired one; the next relay does not.
#[tokio::test]
async fn a_token_that_expires_at_once_is_taken_elsewhere() {
    let expired = refuse(RefusalReason::TokenExpired, "expired").build();
    let (ahead, refused) = serve(vec![Script::Refuse(expired)], 256).await;
    let (right, seen) = serve(vec![Script::AckAll], 256).await;
    let relays = format!("{},{}", ahead.endpoint(), right.endpoint());
    let connection = right.with_relays(&relays).unwrap();
    let mut renewed = writer(&connection).await.unwrap();
    renewed.append(entry(1), false).await.unwrap();
    renewed.drain().await.unwrap();
    assert_eq!(refused.lock().unwrap().streams.len(), 2);
    assert_eq!(seen.lock().unwrap().tokens, ["Bearer renewed"]);
}

/// One relay's clock is ahead while the other one starts again: that is waited for.
#[tokio::test]
async fn a_relay_that_is_ahead_does_not_end_a_writer_while_another_one_is_away() {
    let expired = refuse(RefusalReason::TokenExpired, "expired").build();
    let starting = refuse(RefusalReason::DependencyUnavailable, "it starts").build();
    let (ahead, _) = serve(vec![Script::Refuse(expired)], 256).await;
    let mut script = vec![Script::Refuse(starting); 5];
    script.push(Script::AckAll);
    let (right, seen) = serve(script, 256).await;
    let relays = format!("{},{}", right.endpoint(), ahead.endpoint());
    let connection = right.with_relays(&relays).unwrap();
    let mut renewed = writer(&connection).await.unwrap();
    renewed.append(entry(1), false).await.unwrap();
    renewed.drain().await.unwrap();
    assert_eq!(seen.lock().unwrap().tokens.last().unwrap(), "Bearer renewed");
}

/// A writer outlives the server that it was opened with: it renews its token at another one.
#[tokio::test]
async fn an_expired_token_is_renewed_where_there_is_somebody() {
    let expired = refuse(RefusalReason::TokenExpired, "expired").build();
    let (away, _) = serve_with(vec![Script::AckAll], 256, true).await;
    let (there, seen) = serve(
        vec![
            Script::Refuse(expired.clone()),
            Script::Refuse(expired),
            Script::AckAll,
        ],
        256,
    )
    .await;
    let servers = format!("{},{}", away.endpoint(), there.endpoint());
    let connection = Connection::connect_any(&servers, None).await.unwrap();
    let connection = connection.with_relays(there.endpoint()).unwrap();
    let mut renewed = writer(&connection).await.unwrap();
    renewed.append(entry(1), false).await.unwrap();
    renewed.drain().await.unwrap();
    assert_eq!(seen.lock().unwrap().tokens.last().unwrap(), "Bearer renewed");
}

#[tokio::test]
async fn the_tries_end() {
    let away = refuse(RefusalReason::DependencyUnavailable, "the log is away").build();
    let (connection, _) = serve(vec![Script::Refuse(away)], 256).await;
    let error = writer(&connection).await.err().unwrap();
    assert!(matches!(error, Error::GaveUp { reason, .. } if reason.contains("the log is away")));
}

#[tokio::test]
async fn no_more_than_allowed_is_unacknowledged() {
    let script = vec![Script::AckUpToThenBreak {
        ack: 0,
        entries: usize::MAX,
    }];
    let (connection, seen) = serve(script, 4).await;
    let mut writer = writer(&connection).await.unwrap();
    for number in 1..=4 {
        writer.append(entry(number), false).await.unwrap();
    }
    let fifth = tokio::time::timeout(Duration::from_millis(100), writer.append(entry(5), false)).await;
    assert!(fifth.is_err(), "the fifth entry has to wait");
    assert_eq!(writer.unacked_entries(), 4);
    assert_eq!(seen.lock().unwrap().streams[0], [1, 2, 3, 4]);
}

#[tokio::test]
async fn a_streamed_entry_is_read_again_after_a_break() {
    let script = vec![Script::AckUpToThenBreak { ack: 1, entries: 2 }, Script::AckAll];
    let (connection, seen) = serve(script, 256).await;
    let mut writer = writer(&connection).await.unwrap();
    let body: Vec<u8> = (0..3 * PART_SIZE + 5).map(|index| (index % 253) as u8).collect();
    let source = body.clone();
    writer.append(entry(1), false).await.unwrap();
    let entry_seq = writer
        .append_stream(move || Ok(std::io::Cursor::new(source.clone())), true)
        .await
        .unwrap();
    assert_eq!(entry_seq, 2);
    writer.drain().await.unwrap();
    let seen = seen.lock().unwrap();
    assert_eq!(seen.streams, [vec![1, 2], vec![2]]);
    assert_eq!(seen.entries[&2], body);
}

#[tokio::test]
async fn an_empty_and_a_too_large_entry_are_refused_before_they_are_sent() {
    let (connection, _) = serve(vec![Script::AckAll], 256).await;
    let mut writer = writer(&connection).await.unwrap();
    assert!(matches!(
        writer.append(Bytes::new(), false).await,
        Err(Error::EmptyEntry)
    ));
    let large = Bytes::from(vec![b'x'; 64 * 1024 * 1024 + 1]);
    assert!(matches!(
        writer.append(large, false).await,
        Err(Error::TooLarge { .. })
    ));
    writer.append(entry(1), false).await.unwrap();
    assert_eq!(writer.drain().await.unwrap().entry_seq, 1);
}

/// acked-is-durable: what a broken relay did not acknowledge goes to the next one, with the same bytes, and back again.
#[tokio::test]
async fn a_writer_goes_to_the_next_relay_when_one_breaks_and_back() {
    let breaks = |ack| Script::AckUpToThenBreak { ack, entries: 3 };
    let (first, seen_first) = serve(vec![breaks(2), Script::AckAll], 10).await;
    let (second, seen_second) = serve(vec![breaks(4)], 10).await;
    let relays = format!("{},{}", first.endpoint(), second.endpoint());
    let connection = first.with_relays(&relays).unwrap();
    let mut writer = writer(&connection).await.unwrap();
    for number in 1..=6 {
        writer.append(entry(number), false).await.unwrap();
    }
    assert_eq!(writer.drain().await.unwrap().entry_seq, 6);
    let (first, second) = (seen_first.lock().unwrap(), seen_second.lock().unwrap());
    assert_eq!(first.streams.len(), 2, "the first relay is used again");
    assert_eq!(second.streams.len(), 1);
    assert_eq!(
        second.streams[0][0], 3,
        "the second gets what was not acknowledged"
    );
    assert_eq!(first.streams[1][0], 5, "and so does the first, again");
    for (number, bytes) in first.entries.iter().chain(second.entries.iter()) {
        assert_eq!(bytes, &entry(*number));
    }
}

/// A relay that can't be reached is no reason to give up while another one can.
#[tokio::test]
async fn a_relay_that_is_away_is_passed_over() {
    let (connection, seen) = serve(vec![Script::AckAll], 10).await;
    let relays = format!("http://127.0.0.1:1,{}", connection.endpoint());
    let connection = connection.with_relays(&relays).unwrap();
    let mut writer = writer(&connection).await.unwrap();
    writer.append(entry(1), false).await.unwrap();
    assert_eq!(writer.drain().await.unwrap().entry_seq, 1);
    assert_eq!(seen.lock().unwrap().streams, [[1]]);
}
