#!/usr/bin/env bash
# Loses the database twice and gets every session back by the steps of docs/operations.md: once from the topic alone, once from the
# archive and the rest of a topic that has lost its head. Exit code 0: every export, resume and append was right.
# Usage: lost-postgres.sh WAKELOG_BINARY
set -euo pipefail
WAKELOG=$(realpath "${1:?usage: lost-postgres.sh WAKELOG_BINARY}")
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

begin_with_sessions
wait_covered wakelog
compare_exports before

say "the database is lost, the topic has everything"
lose_postgres
stop_services
start_postgres
create_database wakelog_again
WAKELOG_DATABASE_URL=$(url_of wakelog_again)
"$WAKELOG" replay --into "$WAKELOG_DATABASE_URL"
start_services "$WAKELOG" 0 "${KINDS[@]}"
compare_exports again
append_to_all first
"$WAKELOG" verify
"$WAKELOG" segments verify

say "what the archive covers goes from the topic, more is written, the database is lost"
wait_covered wakelog_again
eat_head
append_to_all second
lose_postgres
stop_services
start_postgres
create_database wakelog_topic_alone
code=0
"$WAKELOG" replay --into "$(url_of wakelog_topic_alone)" || code=$?
[ "$code" -eq 6 ] || fail "a replay of a topic without its head ended with $code"
create_database wakelog_from_archive
WAKELOG_DATABASE_URL=$(url_of wakelog_from_archive)
"$WAKELOG" replay --from-archive --into "$WAKELOG_DATABASE_URL"
start_services "$WAKELOG" 0 "${KINDS[@]}"
compare_exports from-archive
append_to_all third
compare_resumes resumed
"$WAKELOG" segments verify
stop_services
say "done in $SECONDS s"
