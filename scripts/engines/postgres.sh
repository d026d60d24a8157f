#!/usr/bin/env bash
# Runs a PostgreSQL server in the foreground, on loopback, fsync on. Its process is the one that was started, so that signals
# reach it; when whoever started it dies, it shuts down at once (SIGQUIT), so that it leaves no shared memory behind.
# Usage: postgres.sh DIR PORT [NAME=VALUE ...]
set -euo pipefail
cd "$(dirname "$0")"
. ./versions.sh

readonly DIR="$1" PORT="$2"
shift 2
if [ ! -x "$POSTGRESQL_BIN/initdb" ]; then
  echo "postgres: there is no PostgreSQL $POSTGRESQL_MAJOR or newer here: run scripts/engines/install.sh" >&2
  exit 1
fi
# The server refuses to run as root.
AS=(setpriv --pdeathsig QUIT)
if [ "$(id -u)" -eq 0 ]; then
  AS+=(--reuid=postgres --regid=postgres --init-groups)
fi

mkdir -p "$DIR"
[ "$(id -u)" -eq 0 ] && chown postgres "$DIR"
cd "$DIR"
if [ ! -e data/PG_VERSION ]; then
  rm -rf data
  "${AS[@]}" "$POSTGRESQL_BIN/initdb" -D data -U wakelog -A trust --no-instructions -E UTF8 --locale=C >&2
fi
settings=()
for setting in "$@"; do settings+=(-c "$setting"); done
exec "${AS[@]}" "$POSTGRESQL_BIN/postgres" -D data -h 127.0.0.1 -p "$PORT" -k "$DIR" \
  -c dynamic_shared_memory_type=mmap -c shared_buffers=256MB -c max_connections=200 -c log_min_messages=warning "${settings[@]}"
