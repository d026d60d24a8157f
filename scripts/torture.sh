#!/usr/bin/env bash
# Tortures a native stack of three brokers with several seeds, one after the other, and adds up what was found.
# Usage: scripts/torture.sh [SEEDS [SECONDS [FIRST_SEED]]]
# A run that is not good keeps logs and data below target/torture; its seed is printed, and
# `cargo test --locked --workspace --test torture -- run --seed N --seconds S` runs it again.
set -euo pipefail
cd "$(dirname "$0")/.."

readonly SEEDS="${1:-5}" SECONDS_EACH="${2:-300}" FIRST="${3:-1}"
readonly OUT="$PWD/target/torture"

./scripts/setup.sh tests
mkdir -p "$OUT"
torture() { cargo test --quiet --locked --workspace --test torture -- "$@"; }

reports=() status=0
for ((seed = FIRST; seed < FIRST + SEEDS; seed++)); do
  report="$OUT/seed-$seed.json"
  rm -f "$report"
  torture run --seed "$seed" --seconds "$SECONDS_EACH" --report "$report" --keep "$OUT" || status=1
  # A run that broke off has no report.
  if [ -e "$report" ]; then reports+=("$report"); fi
done
if [ "${#reports[@]}" -gt 0 ]; then
  torture sum "${reports[@]}" || status=1
fi
exit "$status"
