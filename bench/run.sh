#!/usr/bin/env bash
# Measures Wakelog on a real Kafka, a real PostgreSQL and a real S3 server, started here on free loopback ports in a temporary
# folder and stopped at the end whatever happens. Writes docs/bench.md and docs/bench/.
# Usage: bench/run.sh [arguments of `wakelog bench`; default: all --out docs]
set -euo pipefail
cd "$(dirname "$0")/.."

DIR=$(mktemp -d)
readonly DIR
engines=()

# The engines die with this shell too, if it is killed.
stop() {
  for pid in "${engines[@]}"; do kill "$pid" 2>/dev/null || true; done
  for pid in "${engines[@]}"; do wait "$pid" 2>/dev/null || true; done
  rm -rf "$DIR"
}
trap stop EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

is_open() { (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }

free_port() {
  local port
  while :; do
    port=$((20000 + RANDOM % 12000))
    is_open "$port" || break
  done
  echo "$port"
}

wait_for() {
  local name="$1" port="$2" pid="$3"
  for _ in $(seq 600); do
    is_open "$port" && return 0
    kill -0 "$pid" 2>/dev/null || break
    sleep 0.1
  done
  printf 'bench: %s did not start:\n' "$name" >&2
  tail -n 20 "$DIR/$name.log" >&2
  exit 1
}

scripts/engines/install.sh >&2
# SKIP_BUILD=1 takes the binary that is there.
[ -n "${SKIP_BUILD:-}" ] || cargo build --release --locked --no-default-features -p wakelog-cli --quiet

# PostgreSQL runs as another user, who has to get into the folder.
chmod 711 "$DIR"
kafka=$(free_port) controller=$(free_port) postgres=$(free_port) s3=$(free_port)
scripts/engines/kafka.sh "$DIR/kafka" "$kafka" "$controller" >"$DIR/kafka.log" 2>&1 &
engines+=($!)
scripts/engines/postgres.sh "$DIR/postgres" "$postgres" >"$DIR/postgres.log" 2>&1 &
engines+=($!)
# Keys of this server alone; in the environment, since a command line can be seen by others.
secret=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
ROOT_ACCESS_KEY=bench ROOT_SECRET_KEY="$secret" scripts/engines/s3.sh "$DIR/s3" "$s3" wakelog >"$DIR/s3.log" 2>&1 &
engines+=($!)
wait_for kafka "$kafka" "${engines[0]}"
wait_for postgres "$postgres" "${engines[1]}"
wait_for s3 "$s3" "${engines[2]}"

if [ $# -eq 0 ]; then set -- all --out docs; fi
WAKELOG_S3_SECRET_KEY="$secret" target/release/wakelog bench "$@" --brokers "127.0.0.1:$kafka" \
  --database-url "postgres://wakelog@127.0.0.1:$postgres/postgres" \
  --s3-endpoint "http://127.0.0.1:$s3" --s3-bucket wakelog --s3-access-key bench
