#!/usr/bin/env bash
# Runs an engine of the tests in a container, in the foreground, on loopback. The container is removed when this is told to end,
# and when whoever started it dies.
# Usage: run.sh kafka PORT CONTROLLER_PORT
#        run.sh postgres PORT [NAME=VALUE ...]
#        ROOT_ACCESS_KEY=... ROOT_SECRET_KEY=... run.sh s3 PORT FOLDER
set -euo pipefail
cd "$(dirname "$0")"
. ./names.sh

readonly ENGINE="$1" PROGRAM="../../target/containers/build/debug/wakelog-test-containers"
shift
if [ ! -x "$PROGRAM" ]; then
  echo "containers: there is no program to run them with: run scripts/containers/install.sh" >&2
  exit 1
fi
case "$ENGINE" in
  kafka) image="$WAKELOG_TEST_KAFKA_IMAGE" ;;
  postgres) image="$WAKELOG_TEST_POSTGRES_IMAGE" ;;
  s3) image="$WAKELOG_TEST_S3_IMAGE" ;;
  *)
    echo "containers: there is no engine $ENGINE" >&2
    exit 2
    ;;
esac
exec setpriv --pdeathsig TERM "$PROGRAM" "$ENGINE" "$image" "$@"
