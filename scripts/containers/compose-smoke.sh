#!/usr/bin/env bash
# Starts deploy/compose.yaml as it is, in the host's network (deploy/compose.host.yaml) and on images that can be built without pulling
# any; imports a session, kills the reconstructor under it, resumes, compares, and takes everything down again. Everything listens on
# 127.0.0.1. The image of Wakelog is that of deploy/Dockerfile with the binary that is named. With --three-brokers: the variant of
# deploy/compose.three-brokers.yaml, and a broker is killed with the reconstructor and stays away.
# An engine of the checkout's own is stopped too. Prints the seconds of each step; exit code 0: the session came back byte for byte.
# Usage: compose-smoke.sh WAKELOG_BINARY [--three-brokers]
set -euo pipefail
BINARY=$(realpath "${1:?usage: compose-smoke.sh WAKELOG_BINARY [--three-brokers]}")
readonly BINARY VARIANT="${2:-}"
cd "$(dirname "$0")/../.."
. scripts/engines/versions.sh

readonly NAME="wakelog-smoke-$$"
FILES=(-f deploy/compose.yaml -f deploy/compose.host.yaml)
SERVICES=(kafka postgres s3 ingest reconstruct persist archive)
PORTS=(KAFKA KAFKA_CONTROLLER POSTGRES S3 INGEST INGEST_HTTP RECONSTRUCT RECONSTRUCT_HTTP PERSIST_HTTP ARCHIVE_HTTP)
case "$VARIANT" in
  --three-brokers)
    FILES=(-f deploy/compose.yaml -f deploy/compose.three-brokers.yaml -f deploy/compose.host.yaml
      -f scripts/containers/compose.three-brokers.host.yaml)
    SERVICES+=(kafka-2 kafka-3 ingest-2 reconstruct-2 persist-2 archive-2)
    PORTS+=(KAFKA_2 KAFKA_2_CONTROLLER KAFKA_3 KAFKA_3_CONTROLLER INGEST_2 INGEST_2_HTTP RECONSTRUCT_2 RECONSTRUCT_2_HTTP
      PERSIST_2_HTTP ARCHIVE_2_HTTP)
    ;;
  "") ;;
  *)
    echo "compose-smoke: there is no $VARIANT" >&2
    exit 2
    ;;
esac
readonly FILES SERVICES PORTS
readonly FILE=tests/fixtures/omp/omp-18.3.4/compaction-session.jsonl
DIR=$(mktemp -d -t wakelog-smoke-XXXXXX)
readonly DIR
export WAKELOG_IMAGE=wakelog-test/wakelog:smoke KAFKA_IMAGE="wakelog-test/kafka:$KAFKA_VERSION"
export POSTGRES_IMAGE="wakelog-test/postgres:$POSTGRESQL_MAJOR" VERSITYGW_IMAGE="wakelog-test/versitygw:$VERSITYGW_VERSION"
# Its folder of data is root's there.
export KAFKA_USER=0

as_root() {
  if [ "$(id -u)" -eq 0 ]; then "$@"; else sudo "$@"; fi
}

say() { printf 'compose-smoke: %s\n' "$*" >&2; }

fail() {
  say "FAILED: $*"
  compose ps >&2 || true
  compose logs --tail=15 >&2 || true
  exit 1
}

step() {
  local name="$1" started=$EPOCHREALTIME
  shift
  "$@"
  say "$(awk -v name="$name" -v from="$started" -v to="$EPOCHREALTIME" 'BEGIN { printf "%-32s %6.1f s", name, to - from }')"
}

install_compose() {
  if docker compose version >/dev/null 2>&1 || command -v docker-compose >/dev/null; then return 0; fi
  as_root apt-get update -qq
  as_root env DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends docker-compose >/dev/null
}

compose() {
  local command=(docker-compose)
  if docker compose version >/dev/null 2>&1; then command=(docker compose); fi
  "${command[@]}" --project-name "$NAME" --env-file "$DIR/.env" "${FILES[@]}" "$@"
}

clean_up() {
  compose down --volumes --timeout 30 >/dev/null 2>&1 || say "containers are left: project $NAME"
  scripts/containers/engine.sh down || say "the engine is left"
  as_root rm -rf "$DIR"
}

is_free() { ! grep -q "$(printf ':%04X ' "$1")" /proc/net/tcp /proc/net/tcp6; }

# Below the ports that the system gives to connections, unless SMOKE_PORTS says where to begin.
choose_ports() {
  local port="${SMOKE_PORTS:-$((20000 + RANDOM % 12000))}" name
  for name in "${PORTS[@]}"; do
    until is_free "$port"; do port=$((port + 1)); done
    export "${name}_PORT=$port"
    port=$((port + 1))
  done
}

# As somebody who is not root, whoever runs this.
make_secrets() {
  deploy/make-secrets.sh "$DIR/secrets" "$DIR/.env" >/dev/null
  if [ "$(id -u)" -eq 0 ]; then
    sed -i 's/^\(WAKELOG_[UG]ID\)=.*/\1=10002/' "$DIR/.env"
    chown -R 10002:10002 "$DIR/secrets"
    chmod 711 "$DIR"
  fi
  # The image of the tests reads it as the user postgres; the folder around it is closed.
  chmod 644 "$DIR/secrets/postgres-password"
  mkdir -p "$DIR/data"
  chmod 777 "$DIR/data"
  cp "$FILE" "$DIR/data/session.jsonl"
  chmod 644 "$DIR/data/session.jsonl"
}

health_of() { docker inspect --format '{{.State.Health.Status}}' "$(compose ps -q "$1")" 2>/dev/null; }

wait_healthy() {
  local service="$1"
  for _ in $(seq 240); do
    if [ "$(health_of "$service")" = healthy ]; then return 0; fi
    sleep 0.5
  done
  fail "$service is not healthy"
}

wait_all_healthy() {
  local service
  for service in "${SERVICES[@]}"; do wait_healthy "$service"; done
}

client() { compose run --rm -T -v "$DIR/data:/data" client "$@"; }

# From outside, as a fault would: Docker starts it again, as the restart policy wants.
kill_reconstructor() {
  local container pid
  container=$(compose ps -q reconstruct)
  # What `docker kill` ends is not started again.
  if [ "$VARIANT" = --three-brokers ]; then docker kill "$(compose ps -q kafka-2)" >/dev/null; fi
  pid=$(docker inspect --format '{{.State.Pid}}' "$container")
  as_root kill -KILL "$pid"
  for _ in $(seq 120); do
    if [ "$(docker inspect --format '{{.RestartCount}}' "$container")" -ge 1 ] && [ "$(health_of reconstruct)" = healthy ]; then return 0; fi
    sleep 0.5
  done
  fail "the reconstructor did not come back"
}

import() {
  client import /data/session.jsonl --json >"$DIR/import.json" || fail "the import"
  SESSION=$(sed -n 's/.*"session_id":"\([^"]*\)".*/\1/p' "$DIR/import.json")
  client append "$SESSION" /data/session.jsonl >/dev/null || fail "the append"
}

resume() {
  client resume "$SESSION" --out /data/resumed.jsonl >/dev/null || fail "the resume"
  cat "$FILE" "$FILE" | cmp - "$DIR/data/resumed.jsonl" || fail "the session is not what was written"
  client append "$SESSION" /data/session.jsonl >/dev/null || fail "the append after it"
  client export "$SESSION" --out /data/exported.jsonl >/dev/null || fail "the export"
  cat "$FILE" "$FILE" "$FILE" | cmp - "$DIR/data/exported.jsonl" || fail "the session is not what was written since"
}

admin() { compose run --rm -T admin "$@"; }

look_at_everything() {
  admin doctor || fail "doctor"
  admin verify || fail "verify"
  admin segments verify || fail "segments verify"
}

trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
step "engine" scripts/containers/engine.sh up
eval "$(scripts/containers/engine.sh env)"
install_compose
step "images of the engines" scripts/containers/images.sh
step "image of wakelog" env BASE=wakelog-test/rootfs:bookworm DOCKER_BUILDKIT=0 deploy/build-image.sh "$BINARY" "$WAKELOG_IMAGE" \
  --quiet --network none >/dev/null
choose_ports
make_secrets
step "up" compose up -d
step "all healthy" wait_all_healthy
step "import and append" import
step "reconstructor killed, healthy" kill_reconstructor
step "resume and compare" resume
step "doctor, verify" look_at_everything
step "down" compose down --volumes --timeout 30
say "done in $SECONDS s"
