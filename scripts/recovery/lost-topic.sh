#!/usr/bin/env bash
# Loses the topic (with its broker's disk) and follows the steps of docs/operations.md: what the database and the archive have is read
# out through a topic that stands in for the lost one, and brought into a new pipeline as new sessions. Exit code 0: each of them
# is what its session was, and the histories are too.
# Usage: lost-topic.sh WAKELOG_BINARY
set -euo pipefail
WAKELOG=$(realpath "${1:?usage: lost-topic.sh WAKELOG_BINARY}")
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

lose_kafka() {
  kill_hard kafka
  rm -rf "$DIR/kafka"
  start_kafka
}

# A service makes no topic in place of one that was folded.
expect_refusal_of_service() {
  local code=0
  timeout 60 "$WAKELOG" reconstruct --listen "127.0.0.1:$(grpc_port reconstruct 1)" \
    --http-listen "127.0.0.1:$(pages_port reconstruct 1)" >"$DIR/refused.log" 2>&1 || code=$?
  [ "$code" -eq 5 ] || fail "a service on a lost topic ended with $code: $(tail -n 3 "$DIR/refused.log")"
  tail -n 2 "$DIR/refused.log" >&2
}

expect_refusal_of_replay() {
  local code=0
  "$WAKELOG" replay --from-archive --into "$(url_of wakelog_from_archive)" 2>&1 | tee "$DIR/replay.log" >&2 || code=$?
  [ "$code" -ne 0 ] || fail "a database was built from an archive whose log is another one"
}

histories() {
  local folder="$DIR/$1" id
  mkdir -p "$folder"
  for id in $(session_ids); do
    "$WAKELOG" history "$id" --out "$folder/$id" >>"$DIR/clients.log" 2>&1 || fail "history of $id: $(tail -n 3 "$DIR/clients.log")"
  done
}

begin_with_sessions
wait_covered wakelog
is_pruned wakelog || fail "nothing was pruned: the archive had nothing alone"
compare_exports before
histories histories-before

say "the topic is lost"
stop_services
lose_kafka
expect_refusal_of_service

say "an empty topic stands in for it: a reconstructor alone reads the sessions out"
kafka_tool org.apache.kafka.tools.TopicCommand --bootstrap-server "$WAKELOG_BROKERS" --create --topic "$WAKELOG_TOPIC" \
  --partitions "$WAKELOG_PARTITIONS" --replication-factor 1 >>"$DIR/kafka-tools.log" 2>&1
create_database wakelog_from_archive
expect_refusal_of_replay
start_services "$WAKELOG" 0 reconstruct
compare_exports read-out
histories histories-read-out
diff -r "$DIR/histories-before" "$DIR/histories-read-out" || fail "a history is not what it was"
"$WAKELOG" sessions ls --limit 0 --json >"$DIR/sessions.json"
[ "$(wc -l <"$DIR/sessions.json")" -eq "$(session_ids | wc -l)" ] || fail "sessions ls does not list them all"
stop_services

say "a new pipeline: a topic of another name, a new database, a prefix of its own in the bucket"
create_database wakelog_anew
export WAKELOG_TOPIC=wakelog.transcript.2 WAKELOG_GROUP=wakelog-2 WAKELOG_S3_PREFIX=second
WAKELOG_DATABASE_URL=$(url_of wakelog_anew)
"$WAKELOG" migrate
start_services "$WAKELOG" 0 "${KINDS[@]}"
mkdir "$DIR/anew"
for old in $(session_ids); do
  new=$("$WAKELOG" import "$DIR/read-out/$old" --request-id "$old" --label "was=$old" --json | json_text session_id)
  echo "$new" >"$DIR/new-id-of-$old"
done
wait_covered wakelog_anew
for old in $(session_ids); do
  "$WAKELOG" resume "$(cat "$DIR/new-id-of-$old")" --out "$DIR/anew/$old" >>"$DIR/clients.log" 2>&1 ||
    fail "resume of what was $old: $(tail -n 3 "$DIR/clients.log")"
  cmp "$DIR/anew/$old" "$DIR/sessions/$old" || fail "$old is not what was written"
done
say "$(session_ids | wc -l) resumes of new sessions are what was written, byte for byte"
"$WAKELOG" verify
stop_services
say "done in $SECONDS s"
