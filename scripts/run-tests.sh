#!/usr/bin/env bash
# Runs every test of the workspace, one test binary at a time, and keeps their output.
# Says at the end what failed and why: the logs of a fault test are long. With --summary: prints the counts of the last run.
set -euo pipefail
cd "$(dirname "$0")/.."

readonly LOG="target/test-output.log"

summary() {
  awk '/^test result:/ { passed += $4; failed += $6; ignored += $8 }
       END { printf "%d passed, %d failed, %d skipped\n", passed, failed, ignored; exit failed > 0 || passed == 0 }' "$LOG"
}

reasons() {
  awk '/^thread .* panicked at / { left = 5 } left-- > 0 { print substr($0, 1, 400) }' "$LOG"
}

if [ "${1:-}" = "--summary" ]; then
  summary
  exit
fi

mkdir -p target
status=0
cargo test --locked --workspace --no-fail-fast 2>&1 | tee "$LOG" | grep --line-buffered -vE '^(running 0 tests|test result: ok\. 0 passed|$)' || status=${PIPESTATUS[0]}
if [ "$status" -ne 0 ]; then
  printf '\nwhat failed:\n'
  reasons
fi
exit "$status"
