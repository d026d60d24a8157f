#!/bin/bash
# Runs a server; an empty PGDATA is initialised first. POSTGRES_USER, POSTGRES_PASSWORD or POSTGRES_PASSWORD_FILE, POSTGRES_DB,
# POSTGRES_INITDB_ARGS and POSTGRES_HOST_AUTH_METHOD are what they are in the image postgres. Arguments are the server's.
set -euo pipefail

case "${1:-}" in
  -*) set -- postgres "$@" ;;
  postgres) ;;
  *) exec "$@" ;;
esac

# The server refuses to run as root.
if [ "$(id -u)" -eq 0 ]; then
  mkdir -p "$PGDATA" /var/run/postgresql
  chown postgres "$PGDATA" /var/run/postgresql
  exec setpriv --reuid=postgres --regid=postgres --init-groups "$0" "$@"
fi

readonly NAME="${POSTGRES_USER:-postgres}"
readonly DATABASE="${POSTGRES_DB:-$NAME}"
readonly METHOD="${POSTGRES_HOST_AUTH_METHOD:-scram-sha-256}"

initialise() {
  local password="${POSTGRES_PASSWORD:-}"
  if [ -n "${POSTGRES_PASSWORD_FILE:-}" ]; then password=$(cat "$POSTGRES_PASSWORD_FILE"); fi
  if [ -z "$password" ] && [ "$METHOD" != trust ]; then
    echo "postgres: POSTGRES_PASSWORD is not set, and POSTGRES_HOST_AUTH_METHOD is not trust" >&2
    exit 1
  fi
  local password_file='' password_args=()
  if [ -n "$password" ]; then
    password_file=$(mktemp)
    printf '%s\n' "$password" >"$password_file"
    password_args=(--pwfile "$password_file")
  fi
  # shellcheck disable=SC2086
  initdb -D "$PGDATA" -U "$NAME" --auth-local=trust --auth-host="$METHOD" --no-instructions -E UTF8 --locale=C.UTF-8 \
    "${password_args[@]}" ${POSTGRES_INITDB_ARGS:-} >&2
  rm -f "$password_file"
  printf 'host all all all %s\n' "$METHOD" >>"$PGDATA/pg_hba.conf"
  printf "listen_addresses = '*'\n" >>"$PGDATA/postgresql.conf"
  if [ "$DATABASE" != postgres ]; then
    printf 'CREATE DATABASE "%s"\n' "$DATABASE" | postgres --single -D "$PGDATA" postgres >&2
  fi
}

[ -e "$PGDATA/PG_VERSION" ] || initialise
exec "$@"
