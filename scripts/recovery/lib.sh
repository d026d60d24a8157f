# Sourced by the recovery scripts: engines and services of their own on loopback, sessions with known bytes, and the comparison.
# RECOVERY_PORTS is the first of 60 ports, or of the 60 after them, if one of them is in use, and so on ten times (default: one that is
# drawn below those that the system gives to connections). Everything is below a temporary folder that goes with the script, unless
# RECOVERY_KEEP is set.
# shellcheck shell=bash

cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1
. scripts/engines/versions.sh

# Listeners and connections alike, those that wait for their end as well.
are_free() {
  awk -v first="$1" '{ split($2, address, ":"); used[address[2]] }
    END { for (port = first; port < first + 60; port++) if (sprintf("%04X", port) in used) exit 1 }' /proc/net/tcp /proc/net/tcp6
}

free_ports() {
  local first
  for first in $(seq "$1" 60 $(($1 + 540))); do
    if are_free "$first"; then echo "$first" && return; fi
  done
  echo "no 60 ports are free from $1 on" >&2
  return 1
}

PORTS=$(free_ports "${RECOVERY_PORTS:-$((20000 + RANDOM % 190 * 60))}")
readonly PORTS
readonly KAFKA_PORT=$PORTS CONTROLLER_PORT=$((PORTS + 1)) POSTGRES_PORT=$((PORTS + 2)) S3_PORT=$((PORTS + 3))
# Kinds of services; number 0 and 1 of each have ports of their own: gRPC, and the pages one above.
readonly KINDS=(ingest reconstruct persist archive)

DIR=$(mktemp -d -t deploy-recovery-XXXXXX)
readonly DIR
declare -A PIDS=()

say() { printf '%s: %s\n' "$(basename "$0" .sh)" "$*" >&2; }

fail() {
  say "FAILED: $*"
  exit 1
}

clean_up() {
  local name
  for name in "${!PIDS[@]}"; do kill -KILL "${PIDS[$name]}" 2>/dev/null || true; done
  for name in "${!PIDS[@]}"; do wait "${PIDS[$name]}" 2>/dev/null || true; done
  if [ -n "${RECOVERY_KEEP:-}" ]; then say "kept: $DIR"; else rm -rf "$DIR"; fi
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# Tries a command until it succeeds, twice a second, for so many seconds.
within() {
  local seconds="$1"
  shift
  for _ in $(seq $((seconds * 2))); do
    if "$@" >/dev/null 2>&1; then return 0; fi
    sleep 0.5
  done
  return 1
}

is_open() { (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }

# What a page says, its head included.
page() {
  local port="$1" path="$2"
  (
    exec 3<>"/dev/tcp/127.0.0.1/$port" || exit 1
    printf 'GET %s HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n' "$path" >&3
    cat <&3
  ) 2>/dev/null
}

is_ready() { page "$1" /readyz | head -n 1 | grep -q ' 200 '; }

# start_engine NAME PORT COMMAND...: again if it ended at once, for so long that a port that a connection had is free again.
start_engine() {
  local name="$1" port="$2"
  shift 2
  for _ in $(seq 40); do
    "$@" >>"$DIR/$name.log" 2>&1 &
    PIDS[$name]=$!
    for _ in $(seq 120); do
      kill -0 "${PIDS[$name]}" 2>/dev/null || break
      if is_open "$port" && kill -0 "${PIDS[$name]}" 2>/dev/null; then return 0; fi
      sleep 0.5
    done
    sleep 2
  done
  fail "$name did not start: $(tail -n 5 "$DIR/$name.log")"
}

start_kafka() {
  start_engine kafka "$KAFKA_PORT" scripts/engines/kafka.sh "$DIR/kafka" "$KAFKA_PORT" "$CONTROLLER_PORT"
}

start_postgres() {
  start_engine postgres "$POSTGRES_PORT" scripts/engines/postgres.sh "$DIR/postgres" "$POSTGRES_PORT"
  within 60 psql_in postgres -c 'SELECT 1' || fail "PostgreSQL does not answer: $(tail -n 5 "$DIR/postgres.log")"
}

# Its keys stand in the environment: a command line can be seen by others.
start_s3() {
  export ROOT_ACCESS_KEY=$WAKELOG_S3_ACCESS_KEY ROOT_SECRET_KEY=$WAKELOG_S3_SECRET_KEY
  start_engine s3 "$S3_PORT" scripts/engines/s3.sh "$DIR/s3" "$S3_PORT" wakelog
}

start_engines() {
  # PostgreSQL runs as another user, who has to get into the folder.
  chmod 711 "$DIR"
  start_kafka
  start_postgres
  start_s3
}

# Ends a process of ours for good, as a lost machine would.
kill_hard() {
  kill -KILL "${PIDS[$1]}"
  wait "${PIDS[$1]}" 2>/dev/null || true
  unset "PIDS[$1]"
}

# The server's helpers go with it, and only then may its folder.
lose_postgres() {
  kill -QUIT "${PIDS[postgres]}"
  wait "${PIDS[postgres]}" 2>/dev/null || true
  unset 'PIDS[postgres]'
  rm -rf "$DIR/postgres"
}

psql_in() {
  local database="$1"
  shift
  "$POSTGRESQL_BIN/psql" -qAtX -h 127.0.0.1 -p "$POSTGRES_PORT" -U wakelog -v ON_ERROR_STOP=1 "$@" "$database"
}

create_database() { psql_in postgres -c "CREATE DATABASE $1"; }

url_of() { echo "postgres://wakelog@127.0.0.1:$POSTGRES_PORT/$1"; }

kafka_tool() {
  java -Dorg.slf4j.simpleLogger.defaultLogLevel=error -cp "target/engines/kafka-$KAFKA_VERSION/*" "$@"
}

configure() {
  export WAKELOG_BROKERS="127.0.0.1:$KAFKA_PORT" WAKELOG_TOPIC=wakelog.transcript WAKELOG_PARTITIONS=4
  export WAKELOG_S3_ENDPOINT="http://127.0.0.1:$S3_PORT" WAKELOG_S3_BUCKET=wakelog WAKELOG_S3_ACCESS_KEY=recovery
  WAKELOG_S3_SECRET_KEY=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
  export WAKELOG_S3_SECRET_KEY WAKELOG_DATABASE_URL
  WAKELOG_DATABASE_URL=$(url_of wakelog)
  export WAKELOG_TOKEN_KEY_FILE="$DIR/lifetime-token.key" WAKELOG_CALLER_TOKEN_FILE="$DIR/callers"
  (
    umask 077
    head -c 32 /dev/urandom >"$WAKELOG_TOKEN_KEY_FILE"
    echo "alice $(od -An -N24 -tx1 /dev/urandom | tr -d ' \n')" >"$WAKELOG_CALLER_TOKEN_FILE"
  )
  WAKELOG_SERVER="http://127.0.0.1:$(grpc_port reconstruct 0),http://127.0.0.1:$(grpc_port reconstruct 1)"
  WAKELOG_RELAY="http://127.0.0.1:$(grpc_port ingest 0),http://127.0.0.1:$(grpc_port ingest 1)"
  export WAKELOG_SERVER WAKELOG_RELAY
  export WAKELOG_TOKEN_FILE="$WAKELOG_CALLER_TOKEN_FILE" XDG_STATE_HOME="$DIR/state"
  # Small, so that a part of a small session moves to the archive.
  export WAKELOG_ARCHIVE_VALVE_BYTES=65536
}

grpc_port() {
  local kind="$1" number="$2" place
  for place in 0 1 2 3; do
    if [ "${KINDS[$place]}" = "$kind" ]; then
      echo $((PORTS + 10 + 20 * number + 2 * place))
      return
    fi
  done
}

pages_port() { echo $(($(grpc_port "$1" "$2") + 1)); }

# start_service BINARY KIND NUMBER
start_service() {
  local binary="$1" kind="$2" number="$3" listen=()
  case "$kind" in
  ingest | reconstruct) listen=(--listen "127.0.0.1:$(grpc_port "$kind" "$number")") ;;
  esac
  setpriv --pdeathsig KILL "$binary" "$kind" "${listen[@]}" --http-listen "127.0.0.1:$(pages_port "$kind" "$number")" \
    >>"$DIR/$kind-$number.log" 2>&1 &
  PIDS["$kind-$number"]=$!
}

wait_ready() {
  local kind="$1" number="$2"
  within 60 is_ready "$(pages_port "$kind" "$number")" ||
    fail "$kind $number is not ready: $(page "$(pages_port "$kind" "$number")" /readyz | tail -n 3; tail -n 5 "$DIR/$kind-$number.log")"
}

# start_services BINARY NUMBER KIND...
start_services() {
  local binary="$1" number="$2" kind
  shift 2
  for kind in "$@"; do start_service "$binary" "$kind" "$number"; done
  for kind in "$@"; do wait_ready "$kind" "$number"; done
}

# stop_service KIND NUMBER: asks it to drain, and wants it to end by itself.
stop_service() {
  local name="$1-$2" code=0
  kill -TERM "${PIDS[$name]}"
  wait "${PIDS[$name]}" || code=$?
  unset "PIDS[$name]"
  [ "$code" -eq 0 ] || fail "$name ended with $code: $(tail -n 5 "$DIR/$name.log")"
}

stop_services() {
  local kind
  for kind in "${KINDS[@]}"; do
    if [ -n "${PIDS[$kind-0]:-}" ]; then stop_service "$kind" 0; fi
  done
}

# Writes sessions of every recorded file, the name of each below $DIR/sessions, and what each must hold: at once for `append`,
# whose lines are entries of their own, and as one checkpoint for `import`.
write_sessions() {
  local file id number=0
  mkdir -p "$DIR/sessions"
  for file in tests/fixtures/omp/omp-*/*.jsonl tests/fixtures/omp/loader-cases/{02,04,10}-*.jsonl; do
    number=$((number + 1))
    id=$("$WAKELOG" import "$file" --label "number=$number" --json | json_text session_id)
    cp "$file" "$DIR/sessions/$id"
    if [ $((number % 3)) -eq 0 ]; then
      "$WAKELOG" append "$id" "$file" >>"$DIR/clients.log" 2>&1
      cat "$file" >>"$DIR/sessions/$id"
    fi
  done
  # Grows beyond the valve: its oldest entries are in the archive and in no table.
  id=$("$WAKELOG" import tests/fixtures/omp/omp-18.3.4/fresh-session.jsonl --label "number=valve" --json | json_text session_id)
  lines 300 >"$DIR/lines"
  "$WAKELOG" append "$id" "$DIR/lines" >>"$DIR/clients.log" 2>&1
  cat tests/fixtures/omp/omp-18.3.4/fresh-session.jsonl "$DIR/lines" >"$DIR/sessions/$id"
  VALVE_SESSION=$id
  say "$(find "$DIR/sessions" -type f | wc -l) sessions written"
}

# Lines that zstd can't make much smaller.
lines() {
  local number
  for number in $(seq "$1"); do printf '{"line":%d,"text":"%s"}\n' "$number" "$(head -c 900 /dev/urandom | base64 -w 0)"; done
}

# Appends a line to each session: its writer goes on in the state that was kept.
append_to_all() {
  local id
  for id in $(session_ids); do
    printf '{"more":"%s of %s"}\n' "$1" "$id" >"$DIR/more"
    "$WAKELOG" append "$id" "$DIR/more" >>"$DIR/clients.log" 2>&1 || fail "append to $id: $(tail -n 3 "$DIR/clients.log")"
    cat "$DIR/more" >>"$DIR/sessions/$id"
  done
}

# Engines, a database and the services of the binary, with sessions in them.
begin_with_sessions() {
  configure
  start_engines
  create_database wakelog
  "$WAKELOG" migrate
  start_services "$WAKELOG" 0 "${KINDS[@]}"
  write_sessions
}

session_ids() { ls "$DIR/sessions"; }

json_text() { sed -n "s/.*\"$1\":\"\([^\"]*\)\".*/\1/p" | head -n 1; }

# Reads every session by a command of the client (`export`, or `resume`, which binds, and so shows that the pipeline works and not the
# tables alone) into a folder, and compares each with what was written, byte for byte. Names of sessions after the folder are left out.
compare() {
  local command="$1" folder="$DIR/$2" id count=0 left_out
  shift 2
  left_out=" $* "
  mkdir -p "$folder"
  for id in $(session_ids); do
    case "$left_out" in *" $id "*) continue ;; esac
    "$WAKELOG" "$command" "$id" --out "$folder/$id" >>"$DIR/clients.log" 2>&1 ||
      fail "$command of $id: $(tail -n 3 "$DIR/clients.log")"
    cmp "$folder/$id" "$DIR/sessions/$id" || fail "$id is not what was written"
    count=$((count + 1))
  done
  say "$count ${command}s are what was written, byte for byte"
}
compare_exports() { compare export "$@"; }
compare_resumes() { compare resume "$@"; }

# What an archiver says that a rebuild would not need of all partitions, and what was folded.
covered_offsets() {
  page "$(pages_port archive 0)" /metrics | awk '/^wakelog_archiver_covered_offset\{/ { sum += $2 } END { print sum + 0 }'
}
folded_offsets() { psql_in "$1" -c 'SELECT sum(next_offset) FROM stream_progress'; }
is_covered() { [ "$(covered_offsets)" -ge "$(folded_offsets "$1")" ]; }

wait_covered() {
  within 120 is_covered "$1" || fail "the archive covers $(covered_offsets) of $(folded_offsets "$1") records"
  say "the archive covers all $(folded_offsets "$1") records"
}

# Whether the session's oldest entries have left the hot tail.
is_pruned() {
  [ "$(psql_in "$1" -c "SELECT count(*) FROM agent_session_archive_segments WHERE session_id = '$VALVE_SESSION' AND kind = 'safety_valve'")" -gt 0 ]
}

# Drops what is below the offsets that the archive covers from the topic, as retention does.
eat_head() {
  local file="$DIR/delete-records.json"
  page "$(pages_port archive 0)" /metrics | awk -v topic="$WAKELOG_TOPIC" '
    BEGIN { printf "{\"version\":1,\"partitions\":[" }
    /^wakelog_archiver_covered_offset\{/ {
      match($1, /"[0-9]+"/)
      printf "%s{\"topic\":\"%s\",\"partition\":%s,\"offset\":%d}", separator, topic, substr($1, RSTART + 1, RLENGTH - 2), $2
      separator = ","
    }
    END { print "]}" }' >"$file"
  kafka_tool org.apache.kafka.tools.DeleteRecordsCommand --bootstrap-server "$WAKELOG_BROKERS" --offset-json-file "$file" \
    >>"$DIR/kafka-tools.log" 2>&1 || fail "records were not deleted: $(tail -n 3 "$DIR/kafka-tools.log")"
}
