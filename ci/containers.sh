#!/usr/bin/env bash
# Checks the program that runs engines in containers, which is no part of the workspace, and runs the stream-level suite on
# containers. Usage: ci/containers.sh [FILTER ...]
set -euo pipefail
cd "$(dirname "$0")/.."

readonly PROGRAM=(--manifest-path tests/containers/Cargo.toml)

cargo fmt "${PROGRAM[@]}" --check
cargo clippy "${PROGRAM[@]}" --target-dir target/containers/build --locked --all-targets --quiet -- -D warnings
scripts/containers/stream-level.sh "$@"
