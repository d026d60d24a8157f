#!/usr/bin/env bash
# Adds partitions to the topic while two processes of every service run: sessions that are there stay where they are and go on, new
# ones come onto the new partitions too. Prints after how many seconds the new partitions had owners. Exit code 0: every session is whole.
# Usage: more-partitions.sh WAKELOG_BINARY
set -euo pipefail
WAKELOG=$(realpath "${1:?usage: more-partitions.sh WAKELOG_BINARY}")
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"
readonly AFTERWARDS=12

owned() {
  local number
  for number in 0 1; do page "$(pages_port persist "$number")" /metrics; done |
    awk '/^wakelog_persister_owned_partitions/ { sum += $2 } END { print sum + 0 }'
}
owns_all() { [ "$(owned)" -eq "$AFTERWARDS" ]; }

pins() { psql_in wakelog -c 'SELECT session_id, partition FROM session_pins ORDER BY 1'; }

# How many sessions are on partitions that were not there before.
on_new_partitions() { psql_in wakelog -c "SELECT count(*) FROM agent_sessions JOIN session_pins USING (session_id) WHERE session_pins.partition >= $WAKELOG_PARTITIONS"; }
opens_on_a_new_one() {
  local id
  id=$("$WAKELOG" import tests/fixtures/omp/omp-18.3.4/fresh-session.jsonl --json | json_text session_id)
  cp tests/fixtures/omp/omp-18.3.4/fresh-session.jsonl "$DIR/sessions/$id"
  [ "$(on_new_partitions)" -gt 0 ]
}

configure
start_engines
create_database wakelog
"$WAKELOG" migrate
for number in 0 1; do start_services "$WAKELOG" "$number" "${KINDS[@]}"; done
write_sessions
pins >"$DIR/pins-before"

kafka_tool org.apache.kafka.tools.TopicCommand --bootstrap-server "$WAKELOG_BROKERS" --alter --topic "$WAKELOG_TOPIC" \
  --partitions "$AFTERWARDS" >>"$DIR/kafka-tools.log" 2>&1
since=$SECONDS
within 120 owns_all || fail "persisters own $(owned) of $AFTERWARDS partitions"
say "persisters own all $AFTERWARDS partitions after $((SECONDS - since)) s"
within 240 opens_on_a_new_one || fail "no session is on a new partition"
say "a session is on a new partition after $((SECONDS - since)) s"
append_to_all after
pins | while read -r pin; do grep -qxF "$pin" "$DIR/pins-before" || echo "$pin"; done >"$DIR/pins-new"
while read -r pin; do pins | grep -qxF "$pin" || fail "session $pin has moved"; done <"$DIR/pins-before"
say "$(wc -l <"$DIR/pins-before") sessions are where they were, $(wc -l <"$DIR/pins-new") were opened since"
compare_exports exports
compare_resumes resumes
"$WAKELOG" verify
for number in 0 1; do page "$(pages_port archive "$number")" /metrics; done | grep '^wakelog_archiver_covered_offset' >&2
say "done in $SECONDS s"
