#!/usr/bin/env bash
# Prepares the stream-level suite on containers: builds the program that runs an engine in a container (tests/containers), and
# pulls the images that the Docker engine does not have.
set -euo pipefail
cd "$(dirname "$0")/../.."
. scripts/containers/names.sh

cargo build --locked --quiet --manifest-path tests/containers/Cargo.toml --target-dir target/containers/build
for image in "$WAKELOG_TEST_KAFKA_IMAGE" "$WAKELOG_TEST_POSTGRES_IMAGE" "$WAKELOG_TEST_S3_IMAGE"; do
  docker image inspect "$image" >/dev/null 2>&1 || docker pull --quiet "$image"
done
