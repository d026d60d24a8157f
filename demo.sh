#!/usr/bin/env bash
# Sets up, builds and runs the demo: a recorded agent session loses its writer and comes back byte for byte.
# Usage: ./demo.sh [DATA_DIR]
set -euo pipefail
cd "$(dirname "$0")"

say() { printf 'demo: %s\n' "$*" >&2; }

# On a terminal cargo shows how far it is; elsewhere a line a minute says that it goes on.
build() {
  if [ -t 2 ]; then
    cargo build --locked -p wakelog-cli
    return
  fi
  local started=$SECONDS told=0 minutes
  cargo build --locked --quiet -p wakelog-cli &
  build_pid=$!
  trap 'kill "$build_pid" 2>/dev/null || true' EXIT
  while kill -0 "$build_pid" 2>/dev/null; do
    sleep 1
    minutes=$(((SECONDS - started) / 60))
    if [ "$minutes" -gt "$told" ]; then
      told=$minutes
      say "still building, $minutes min"
    fi
  done
  wait "$build_pid"
  trap - EXIT
}

./scripts/setup.sh
say "building; the first build takes ten to twenty minutes on two cores, later ones are short"
build
exec cargo run --locked --quiet -p wakelog-cli -- demo --data-dir "${1:-./wakelog-data}"
