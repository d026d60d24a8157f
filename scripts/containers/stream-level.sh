#!/usr/bin/env bash
# Runs the stream-level suite once with its engines in containers of the images that images.sh builds, on an engine of this
# checkout's own where none answers (engine.sh); that engine is stopped at the end, also when tests fail. Prints the seconds of
# each part. The image variables of the tests (README) name other images; then images.sh is not run.
# Needs what scripts/engines/install.sh installs.
# Usage: stream-level.sh [FILTER ...]      tests whose name contains one of the filters; else all
set -euo pipefail
cd "$(dirname "$0")/../.."
. scripts/engines/versions.sh

took=()

part() {
  local name=$1 started=$SECONDS status=0
  shift
  "$@" || status=$?
  took+=("$(printf '%-8s %4d s' "$name" "$((SECONDS - started))")")
  return "$status"
}

finish() {
  local status=$?
  part "down" scripts/containers/engine.sh down || status=1
  printf 'containers: %s\n' "${took[@]}" >&2
  exit "$status"
}

use_images_of_our_own() {
  export WAKELOG_TEST_KAFKA_IMAGE="wakelog-test/kafka:$KAFKA_VERSION"
  export WAKELOG_TEST_POSTGRES_IMAGE="wakelog-test/postgres:$POSTGRESQL_MAJOR"
  export WAKELOG_TEST_S3_IMAGE="wakelog-test/versitygw:$VERSITYGW_VERSION"
  scripts/containers/images.sh
}

part "build" cargo build --locked --workspace --all-targets --quiet
trap finish EXIT
part "engine" scripts/containers/engine.sh up
eval "$(scripts/containers/engine.sh env)"
if [ -z "${WAKELOG_TEST_KAFKA_IMAGE:-}${WAKELOG_TEST_POSTGRES_IMAGE:-}${WAKELOG_TEST_S3_IMAGE:-}" ]; then
  part "images" use_images_of_our_own
fi
part "install" scripts/containers/install.sh
export WAKELOG_TEST_STACK=containers
part "tests" cargo test --locked --workspace --test stream_level -- "$@"
