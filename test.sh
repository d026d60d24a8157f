#!/usr/bin/env bash
# Installs what the tests need and runs all of them. Services are started by the tests themselves, on loopback ports and
# folders of their own, and stopped by them. Prints the minutes of each part.
set -euo pipefail
cd "$(dirname "$0")"
. scripts/timing.sh

part "set-up" ./scripts/setup.sh tests
part "build" cargo build --locked --workspace --all-targets --quiet
part "tests" ./scripts/run-tests.sh
minutes_of_parts
./scripts/run-tests.sh --summary
