#!/usr/bin/env bash
# Loses the database and restores an older dump of it: what was folded since is folded again from the topic, and every session is
# archived again. Exit code 0: every export, resume and append was right, and the archive that came of it is enough for a rebuild.
# Usage: restored-postgres.sh WAKELOG_BINARY
set -euo pipefail
WAKELOG=$(realpath "${1:?usage: restored-postgres.sh WAKELOG_BINARY}")
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

# Every partition says how far it is behind, and none is.
has_caught_up() {
  page "$(pages_port persist 0)" /metrics | awk -v partitions="$WAKELOG_PARTITIONS" '
    /^wakelog_persister_lag_records[{]/ { count++; behind += $2 }
    /^wakelog_persister_stopped_partitions/ { behind += $2 }
    END { exit !(count == partitions && behind == 0) }'
}

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
# Until the persister has caught up the database lacks what was opened since.
start_services "$WAKELOG" 0 persist
within 120 has_caught_up || fail "the persister does not catch up: $(page "$(pages_port persist 0)" /metrics | grep '_persister_lag')"
start_services "$WAKELOG" 0 ingest reconstruct archive
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
