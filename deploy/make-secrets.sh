#!/usr/bin/env bash
# Draws the secrets of one deployment into deploy/secrets, readable by you alone, and writes deploy/.env, by which the services run as
# you. What is there already stays.
# Usage: make-secrets.sh [FOLDER [ENV_FILE]]
set -euo pipefail
cd "$(dirname "$0")"
umask 077

readonly FOLDER="${1:-secrets}" ENV_FILE="${2:-.env}"

draw() { od -An -v -N"$1" -tx1 /dev/urandom | tr -d ' \n'; }

# keep NAME: takes standard input for the file, unless there is one.
keep() {
  if [ -e "$FOLDER/$1" ]; then
    cat >/dev/null
  else
    cat >"$FOLDER/$1.part"
    mv "$FOLDER/$1.part" "$FOLDER/$1"
  fi
}

mkdir -p "$FOLDER"
# Signs lifetime tokens; the same for every ingest and reconstruct.
head -c 32 /dev/urandom | keep lifetime-token.key
# Who may call: lines of `account token`. A client takes the token of the first line.
echo "local $(draw 32)" | keep callers
draw 24 | keep postgres-password
echo "*:*:*:wakelog:$(cat "$FOLDER/postgres-password")" | keep pgpass
draw 24 | keep s3-secret-key
cat <<END | keep wakelog.toml
s3_access_key = "wakelog"
s3_secret_key = "$(cat "$FOLDER/s3-secret-key")"
END

if [ ! -e "$ENV_FILE" ]; then
  printf 'COMPOSE_PROJECT_NAME=wakelog\nWAKELOG_UID=%s\nWAKELOG_GID=%s\nWAKELOG_SECRETS=%s\n' \
    "$(id -u)" "$(id -g)" "$(realpath "$FOLDER")" >"$ENV_FILE"
fi
echo "secrets are in $(realpath "$FOLDER")"
