#!/usr/bin/env bash
# Installs what a build of Wakelog needs beyond Rust: a C toolchain for librdkafka, zstd and SQLite.
# With `tests`: also the engines of the native stack, Apache Kafka and PostgreSQL, which tests start for themselves.
set -euo pipefail

readonly WANTED_RUST="1.95"

say() { printf 'setup: %s\n' "$*" >&2; }

as_root() {
  if [ "$(id -u)" -eq 0 ]; then "$@"; else sudo "$@"; fi
}

missing_packages() {
  command -v cc >/dev/null || echo gcc libc6-dev
  command -v c++ >/dev/null || echo g++
  command -v make >/dev/null || echo make
  command -v cmake >/dev/null || echo cmake
  command -v perl >/dev/null || echo perl
  command -v pkg-config >/dev/null || echo pkg-config
}

install_packages() {
  local packages
  packages=$(missing_packages | tr '\n' ' ')
  [ -z "${packages// /}" ] && return 0
  if ! command -v apt-get >/dev/null; then
    say "please install: $packages"
    exit 1
  fi
  say "installing $packages"
  as_root apt-get update -qq
  # shellcheck disable=SC2086
  as_root env DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends $packages >/dev/null
}

check_rust() {
  if ! command -v cargo >/dev/null; then
    say "Rust $WANTED_RUST or newer is needed, by rustup for example"
    exit 1
  fi
  local found
  found=$(rustc --version | awk '{print $2}')
  if [ "$(printf '%s\n%s\n' "$WANTED_RUST" "$found" | sort -V | head -n 1)" != "$WANTED_RUST" ]; then
    say "Rust $WANTED_RUST or newer is needed, found $found: rustup update"
    exit 1
  fi
}

install_packages
check_rust
if [ "${1:-}" = tests ]; then
  "$(dirname "$0")/engines/install.sh"
fi
