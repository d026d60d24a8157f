#!/usr/bin/env bash
# Replaces two processes of every service by those of another version, one after the other, in the order of docs/operations.md, while
# writers append. Exit code 0: nothing that was acknowledged is missing, and no writer or reader had to be started again.
# Usage: upgrade.sh OLD_WAKELOG_BINARY NEW_WAKELOG_BINARY
set -euo pipefail
WAKELOG=$(realpath "${1:?usage: upgrade.sh OLD NEW}")
NEW=$(realpath "${2:?usage: upgrade.sh OLD NEW}")
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"
readonly WRITERS=3

# Lines without end until the file `stop` is there; what was handed to the writer is kept.
feed() {
  local number="$1" line=0
  until [ -e "$DIR/stop" ]; do
    line=$((line + 1))
    printf '{"writer":%d,"line":%d}\n' "$number" "$line" | tee -a "$DIR/written-$number"
    sleep 0.05
  done
}

start_writers() {
  local number id
  mkdir -p "$DIR/sessions"
  for number in $(seq "$WRITERS"); do
    printf '{"session":%d}\n' "$number" >"$DIR/first"
    id=$("$WAKELOG" import "$DIR/first" --json | json_text session_id)
    cp "$DIR/first" "$DIR/written-$number"
    echo "$id" >"$DIR/id-$number"
    (
      set -o pipefail
      feed "$number" | "$WAKELOG" append "$id" >"$DIR/writer-$number.log" 2>&1
    ) &
    PIDS["writer-$number"]=$!
  done
}

# Written lines must grow on after each step: a writer that hangs would make the comparison easy.
expect_progress() {
  local number before
  for number in $(seq "$WRITERS"); do
    before=$(wc -l <"$DIR/written-$number")
    within 60 has_more "$DIR/written-$number" "$before" || fail "writer $number hangs: $(tail -n 3 "$DIR/writer-$number.log")"
    kill -0 "${PIDS[writer-$number]}" 2>/dev/null || fail "writer $number has ended: $(tail -n 3 "$DIR/writer-$number.log")"
  done
}
has_more() { [ "$(wc -l <"$1")" -gt "$2" ]; }

replace() {
  local kind="$1" number="$2"
  stop_service "$kind" "$number"
  start_services "$NEW" "$number" "$kind"
  expect_progress
  "$WAKELOG" export "$(cat "$DIR/id-1")" --out "$DIR/export" --force >>"$DIR/clients.log" 2>&1 ||
    fail "an export beside $kind $number: $(tail -n 3 "$DIR/clients.log")"
}

configure
start_engines
create_database wakelog
"$WAKELOG" migrate
for number in 0 1; do start_services "$WAKELOG" "$number" "${KINDS[@]}"; done
start_writers
expect_progress

say "the schema is brought up to date under the running old services"
before=$(psql_in wakelog -c 'SELECT max(version) FROM _sqlx_migrations')
"$NEW" migrate
after=$(psql_in wakelog -c 'SELECT max(version) FROM _sqlx_migrations')
say "schema $before became $after"
expect_progress
if [ "$before" != "$after" ]; then
  code=0
  timeout 60 "$WAKELOG" persist --http-listen "127.0.0.1:$((PORTS + 59))" >"$DIR/refused.log" 2>&1 || code=$?
  [ "$code" -eq 5 ] || fail "an old service on a new schema ended with $code"
  say "an old service that starts now says: $(grep -v INFO "$DIR/refused.log" | tail -n 2 | tr '\n' ' ')"
fi

for kind in persist archive reconstruct ingest; do
  for number in 0 1; do
    replace "$kind" "$number"
    say "$kind $number is new"
  done
done

touch "$DIR/stop"
for number in $(seq "$WRITERS"); do
  wait "${PIDS[writer-$number]}" || fail "writer $number ended with an error: $(tail -n 3 "$DIR/writer-$number.log")"
  unset "PIDS[writer-$number]"
  cp "$DIR/written-$number" "$DIR/sessions/$(cat "$DIR/id-$number")"
done
WAKELOG=$NEW
compare_exports exports
compare_resumes resumes
"$WAKELOG" verify
say "$(cat "$DIR"/sessions/* | wc -l) lines were written meanwhile; done in $SECONDS s"
