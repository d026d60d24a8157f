#!/usr/bin/env bash
# Makes the image of a binary that is built already, with a context that holds nothing else. BASE, if set, is the image below it.
# Further arguments go to `docker build`.
# Usage: build-image.sh BINARY [TAG [ARGUMENT ...]]
set -euo pipefail

BINARY=$(realpath "${1:?usage: build-image.sh BINARY [TAG [ARGUMENT ...]]}")
readonly BINARY TAG="${2:-wakelog/wakelog}"
shift $(($# < 2 ? $# : 2))
cd "$(dirname "$0")/.."

context=$(mktemp -d)
trap 'rm -rf "$context"' EXIT
mkdir "$context/deploy"
install -m 755 "$BINARY" "$context/wakelog"
install -m 755 deploy/ready.sh "$context/deploy/ready.sh"
docker build --file deploy/Dockerfile --target prebuilt --tag "$TAG" ${BASE:+--build-arg "BASE=$BASE"} "$@" "$context"
