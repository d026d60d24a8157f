#!/usr/bin/env bash
# Measures Wakelog on a real Kafka, a real PostgreSQL and a real S3 server, started here on free loopback ports in a temporary
# folder and stopped at the end whatever happens. Writes docs/bench.md and docs/bench/.
# Usage: bench/run.sh [arguments of `wakelog bench`; default: all --out docs]
# With BROKERS=3 the log is three brokers, each record on three and acknowledged by two at least:
#   BROKERS=3 bench/run.sh commits --out docs/three-brokers
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
postgres=$(free_port) s3=$(free_port)
readonly BROKERS="${BROKERS:-1}"
brokers=() controllers=() voters="" addresses=""
for ((n = 1; n <= BROKERS; n++)); do
  brokers+=("$(free_port)") controllers+=("$(free_port)")
  voters+="${voters:+,}$n@127.0.0.1:${controllers[-1]}"
  addresses+="${addresses:+,}127.0.0.1:${brokers[-1]}"
done
cluster=()
if [ "$BROKERS" -gt 1 ]; then
  export KAFKA_CLUSTER_ID=d2FrZWxvZy1iZW5jaC0wMA
  cluster=("controller.quorum.voters=$voters" "offsets.topic.replication.factor=$BROKERS" "default.replication.factor=$BROKERS"
    min.insync.replicas=2)
fi
for ((n = 1; n <= BROKERS; n++)); do
  scripts/engines/kafka.sh "$DIR/kafka-$n" "${brokers[n - 1]}" "${controllers[n - 1]}" "node.id=$n" "${cluster[@]}" \
    >"$DIR/kafka-$n.log" 2>&1 &
  engines+=($!)
done
scripts/engines/postgres.sh "$DIR/postgres" "$postgres" >"$DIR/postgres.log" 2>&1 &
engines+=($!)
# Keys of this server alone; in the environment, since a command line can be seen by others.
secret=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
ROOT_ACCESS_KEY=bench ROOT_SECRET_KEY="$secret" scripts/engines/s3.sh "$DIR/s3" "$s3" wakelog >"$DIR/s3.log" 2>&1 &
engines+=($!)
for ((n = 1; n <= BROKERS; n++)); do
  wait_for "kafka-$n" "${brokers[n - 1]}" "${engines[n - 1]}"
done
wait_for postgres "$postgres" "${engines[BROKERS]}"
wait_for s3 "$s3" "${engines[BROKERS + 1]}"

if [ $# -eq 0 ]; then set -- all --out docs; fi
WAKELOG_S3_SECRET_KEY="$secret" target/release/wakelog bench "$@" --brokers "$addresses" --replication "$BROKERS" \
  --database-url "postgres://wakelog@127.0.0.1:$postgres/postgres" \
  --s3-endpoint "http://127.0.0.1:$s3" --s3-bucket wakelog --s3-access-key bench
