#!/usr/bin/env bash
# Puts the engines of the native stack where the tests and benchmarks look for them: Apache Kafka's jars and VersityGW, an S3
# server, under target/engines, PostgreSQL from the distribution's packages. Does nothing that is done already. Prints their
# versions.
set -euo pipefail
cd "$(dirname "$0")"
. ./versions.sh

readonly TARGET="../../target/engines"

as_root() {
  if [ "$(id -u)" -eq 0 ]; then "$@"; else sudo "$@"; fi
}

missing_packages() {
  command -v java >/dev/null || echo openjdk-17-jre-headless
  [ -d "$TARGET/kafka-$KAFKA_VERSION" ] || command -v mvn >/dev/null || echo maven
  command -v setpriv >/dev/null || echo util-linux
  [ -x "$POSTGRESQL_BIN/initdb" ] || echo "postgresql-$POSTGRESQL_MAJOR"
  # Not an engine: what users read objects with, and so do the tests.
  command -v zstd >/dev/null || echo zstd
  # For listeners that want TLS.
  command -v openssl >/dev/null || echo openssl
}

install_packages() {
  local packages
  packages=$(missing_packages | tr '\n' ' ')
  [ -z "${packages// /}" ] && return 0
  if ! command -v apt-get >/dev/null; then
    printf 'engines: please install: %s\n' "$packages" >&2
    exit 1
  fi
  printf 'engines: installing %s\n' "$packages" >&2
  # The package would make and start a server of its own.
  if [ ! -e /etc/postgresql-common/createcluster.conf ]; then
    as_root mkdir -p /etc/postgresql-common/createcluster.d
    echo "create_main_cluster = false" | as_root tee /etc/postgresql-common/createcluster.d/wakelog.conf >/dev/null
  fi
  as_root apt-get update -qq
  # shellcheck disable=SC2086
  as_root env DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends $packages >/dev/null
}

# Into a folder of another name first: what is half copied is never taken for the whole.
install_kafka() {
  local home="$TARGET/kafka-$KAFKA_VERSION"
  [ -d "$home" ] && return 0
  rm -rf "$home.part"
  mkdir -p "$home.part"
  mvn -q -B -f pom.xml "-Dkafka.version=$KAFKA_VERSION" dependency:copy-dependencies \
    "-DoutputDirectory=$(cd "$home.part" && pwd)" -DincludeScope=runtime
  mv "$home.part" "$home"
}

# Built from its released source; Go fetches the toolchain that it asks for, if the installed one is older.
install_s3() {
  local home="$TARGET/versitygw-$VERSITYGW_VERSION" go
  [ -d "$home" ] && return 0
  go=$(command -v go || echo /usr/local/go/bin/go)
  if [ ! -x "$go" ]; then
    echo "engines: please install Go 1.21 or newer" >&2
    exit 1
  fi
  rm -rf "$home.part"
  mkdir -p "$home.part"
  GOBIN="$(cd "$home.part" && pwd)" "$go" install "github.com/versity/versitygw/cmd/versitygw@v$VERSITYGW_VERSION"
  mv "$home.part" "$home"
}

install_packages
install_kafka
install_s3
printf 'engines: Apache Kafka %s, %s, VersityGW %s, %s\n' "$KAFKA_VERSION" "$("$POSTGRESQL_BIN/postgres" --version)" \
  "$VERSITYGW_VERSION" "$(java -version 2>&1 | head -n 1)"
