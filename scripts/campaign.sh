#!/usr/bin/env bash
# More seeds of the seeded fault tests than CI runs. Usage: scripts/campaign.sh [SEEDS]
# A failing seed is printed; WAKELOG_TEST_SEED=N replays it.
set -euo pipefail
cd "$(dirname "$0")/.."

export WAKELOG_TEST_SEEDS="${1:-20}"
cargo test --locked --workspace --test stream_level --no-run --quiet
for test in acked_is_durable_over_kill_9_of_everything acked_is_durable_over_a_death_at_every_step_of_writing; do
  cargo test --locked --workspace --test stream_level "$test" -- --nocapture
done
