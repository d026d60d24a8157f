# Sourced. The versions of the engines that the native stack runs.
# shellcheck shell=bash disable=SC2034
readonly KAFKA_VERSION="4.4.0"
readonly POSTGRESQL_MAJOR="15"
readonly POSTGRESQL_BIN="/usr/lib/postgresql/$POSTGRESQL_MAJOR/bin"
