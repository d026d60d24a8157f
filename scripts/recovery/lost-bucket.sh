#!/usr/bin/env bash
# Loses the bucket twice and follows the steps of docs/operations.md: once with a whole topic, where nothing is lost, once without
# the topic's head, where the entries are lost that were in the bucket alone: they are named, and every other session is whole.
# Exit code 0: it was so.
# Usage: lost-bucket.sh WAKELOG_BINARY
set -euo pipefail
WAKELOG=$(realpath "${1:?usage: lost-bucket.sh WAKELOG_BINARY}")
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

# An empty bucket of the same name is what is put in its place.
lose_bucket() {
  kill_hard s3
  rm -rf "$DIR/s3"
  start_s3
}

# The archiver that runs, once it has something to cover.
says_so() { page "$(pages_port archive 0)" /readyz | grep -q 'another bucket, or it has lost objects'; }

# It must not archive into a bucket that lacks what its database has recorded.
expect_refusal_of_archiver() {
  local code=0
  timeout 60 "$WAKELOG" archive --http-listen "127.0.0.1:$(pages_port archive 1)" >"$DIR/refused.log" 2>&1 || code=$?
  [ "$code" -eq 5 ] || fail "an archiver on an empty bucket ended with $code: $(tail -n 3 "$DIR/refused.log")"
  tail -n 2 "$DIR/refused.log" >&2
}

begin_with_sessions
wait_covered wakelog
is_pruned wakelog || fail "nothing was pruned: the bucket had nothing alone"
compare_exports before

say "the bucket is lost, the topic has everything"
lose_bucket
append_to_all first
within 120 says_so || fail "the running archiver does not notice: $(page "$(pages_port archive 0)" /readyz | tail -n 1)"
page "$(pages_port archive 0)" /readyz | tail -n 1 >&2
is_ready "$(pages_port reconstruct 0)" || fail "the reconstructor is not ready"
expect_refusal_of_archiver
stop_services
create_database wakelog_again
WAKELOG_DATABASE_URL=$(url_of wakelog_again)
"$WAKELOG" replay --into "$WAKELOG_DATABASE_URL"
start_services "$WAKELOG" 0 "${KINDS[@]}"
compare_exports again
wait_covered wakelog_again
"$WAKELOG" segments verify
"$WAKELOG" verify

say "the bucket is lost, and the topic has lost its head"
eat_head
lose_bucket
append_to_all second
stop_service archive 0
expect_refusal_of_archiver
"$WAKELOG" segments begin-anew --yes
start_services "$WAKELOG" 0 archive
wait_covered wakelog_again
code=0
"$WAKELOG" segments verify --json >"$DIR/segments.json" || code=$?
[ "$code" -eq 6 ] || fail "segments verify ended with $code although segments are lost"
grep -q "$VALVE_SESSION" "$DIR/segments.json" || fail "segments verify does not name $VALVE_SESSION"
code=0
"$WAKELOG" export "$VALVE_SESSION" --out "$DIR/lost" >>"$DIR/clients.log" 2>&1 || code=$?
if [ "$code" -eq 0 ] || [ -e "$DIR/lost" ]; then fail "a body with lost entries was handed out"; fi
say "the session with lost entries is named, and its export is an error: $(tail -n 1 "$DIR/clients.log")"
compare_exports others "$VALVE_SESSION"

say "the new bucket is as good as the old one: the database is lost"
lose_postgres
stop_services
start_postgres
create_database wakelog_from_archive
WAKELOG_DATABASE_URL=$(url_of wakelog_from_archive)
code=0
"$WAKELOG" replay --from-archive --into "$WAKELOG_DATABASE_URL" || code=$?
[ "$code" -eq 6 ] || fail "a replay without the lost segments ended with $code"
start_services "$WAKELOG" 0 "${KINDS[@]}"
compare_exports rebuilt "$VALVE_SESSION"

say "bucket, database and the topic's head are lost at once: what is left can't stand alone"
lose_bucket
lose_postgres
stop_service ingest 0
for kind in reconstruct persist archive; do kill_hard "$kind-0"; done
start_postgres
create_database wakelog_of_nothing
code=0
"$WAKELOG" replay --from-archive --into "$(url_of wakelog_of_nothing)" >"$DIR/nothing.log" 2>&1 || code=$?
tail -n 4 "$DIR/nothing.log" >&2
[ "$code" -eq 6 ] || fail "a replay of next to nothing ended with $code"
say "done in $SECONDS s"
