#!/usr/bin/env bash
# Sets up, builds and runs the demo: a recorded agent session loses its writer and comes back byte for byte.
# Usage: ./demo.sh [DATA_DIR]
set -euo pipefail
cd "$(dirname "$0")"
./scripts/setup.sh
exec cargo run --locked --quiet -p wakelog-cli -- demo --data-dir "${1:-./wakelog-data}"
