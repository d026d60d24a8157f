#!/usr/bin/env bash
# Runs an S3 server (VersityGW on a folder) in the foreground, on loopback, with one bucket. Its process is the one that was
# started, so that signals reach it; it dies with whoever started it.
# Usage: ROOT_ACCESS_KEY=... ROOT_SECRET_KEY=... s3.sh DIR PORT BUCKET
set -euo pipefail
cd "$(dirname "$0")"
. ./versions.sh

readonly DIR="$1" PORT="$2" BUCKET="$3"
readonly SERVER="../../target/engines/versitygw-$VERSITYGW_VERSION/versitygw"
if [ ! -x "$SERVER" ]; then
  echo "s3: there is no VersityGW $VERSITYGW_VERSION here: run scripts/engines/install.sh" >&2
  exit 1
fi
mkdir -p "$DIR/data/$BUCKET"
exec setpriv --pdeathsig KILL "$SERVER" --port "127.0.0.1:$PORT" posix "$DIR/data"
