#!/usr/bin/env bash
# More seeds and rounds of the fault tests than CI runs. Usage: scripts/campaign.sh [SEEDS [HANDOVERS]]
# A failing seed is printed; WAKELOG_TEST_SEED=N replays it.
set -euo pipefail
cd "$(dirname "$0")/.."

export WAKELOG_TEST_SEEDS="${1:-50}"
export WAKELOG_TEST_HANDOVERS="${2:-200}"

./scripts/setup.sh tests
run() { cargo test --locked --workspace --test "$1" "$2" -- --nocapture; }
run faults acked_is_durable_over_kill_9_of_each_service
run faults no_silent_gap_when_partitions_go_back_and_forth
run stream_level acked_is_durable_over_kill_9_of_everything
run stream_level acked_is_durable_over_a_death_at_every_step_of_writing
WAKELOG_TEST_SEEDS=10 run faults exactly_once_fold_over_a_persister_that_freezes_at_each_step
