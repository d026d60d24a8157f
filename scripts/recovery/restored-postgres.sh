#!/usr/bin/env bash
# Loses the database and restores an older dump of it: what was folded since is folded again from the topic, and every session is
# archived again. Exit code 0: every export, resume and append was right, and the archive that came of it is enough for a rebuild.
# Usage: restored-postgres.sh WAKELOG_BINARY
set -euo pipefail
WAKELOG=$(realpath "${1:?usage: restored-postgres.sh WAKELOG_BINARY}")
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

begin_with_sessions
# Under load, as a backup is made: of one moment, progress and rows alike.
append_to_all meanwhile &
PIDS["appending"]=$!
"$POSTGRESQL_BIN/pg_dump" -h 127.0.0.1 -p "$POSTGRES_PORT" -U wakelog -Fc wakelog >"$DIR/backup"
wait "${PIDS["appending"]}"
unset 'PIDS[appending]'
append_to_all since
wait_covered wakelog
compare_exports before

say "the database is lost, an older backup is restored"
lose_postgres
stop_services
start_postgres
create_database wakelog
"$POSTGRESQL_BIN/pg_restore" -h 127.0.0.1 -p "$POSTGRES_PORT" -U wakelog -d wakelog --no-owner "$DIR/backup"
say "it has folded $(folded_offsets wakelog) records"
# What a dump says of states that are archived names row versions of the lost server.
"$WAKELOG" segments begin-anew --yes
start_services "$WAKELOG" 0 "${KINDS[@]}"
compare_exports restored
append_to_all afterwards
wait_covered wakelog
"$WAKELOG" verify
"$WAKELOG" segments verify

say "the archive is enough: the topic loses what is covered, and the database is lost"
eat_head
lose_postgres
stop_services
start_postgres
create_database wakelog_from_archive
WAKELOG_DATABASE_URL=$(url_of wakelog_from_archive)
"$WAKELOG" replay --from-archive --into "$WAKELOG_DATABASE_URL"
start_services "$WAKELOG" 0 "${KINDS[@]}"
compare_resumes resumed
stop_services
say "done in $SECONDS s"
