#!/usr/bin/env bash
# Checks licences, bans and sources of every dependency. Advisories need a database that not every CI can reach; where
# it can be reached: cargo deny check advisories.
set -euo pipefail
cd "$(dirname "$0")/.."

readonly DENY_VERSION="0.20.2"

if [ "$(cargo deny --version 2>/dev/null)" != "cargo-deny $DENY_VERSION" ]; then
  cargo install --quiet --locked --version "$DENY_VERSION" cargo-deny
fi
# A build fetches what its own platform needs, and no more.
cargo fetch --quiet --locked
cargo fetch --quiet --locked --manifest-path tests/containers/Cargo.toml
cargo deny --offline --log-level error check licenses bans sources
cargo deny --manifest-path tests/containers/Cargo.toml --config deny.toml --offline --log-level error check licenses bans sources
