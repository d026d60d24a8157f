#!/bin/bash
# Asks the service in this container whether it is ready; prints what keeps it from that. The image has no HTTP client.
# Usage: wakelog-ready [HOST:PORT], by default where WAKELOG_HTTP_LISTEN says that the pages are.
set -euo pipefail

readonly ADDRESS="${1:-${WAKELOG_HTTP_LISTEN:-127.0.0.1:7421}}"
host=${ADDRESS%:*}
[ "$host" != 0.0.0.0 ] || host=127.0.0.1

exec 3<>"/dev/tcp/$host/${ADDRESS##*:}"
printf 'GET /readyz HTTP/1.0\r\nHost: %s\r\n\r\n' "$ADDRESS" >&3
IFS=' ' read -r -t 4 _ code _ <&3
timeout 4 cat <&3 | tail -n +2 | sed '1,/^\r$/d'
[ "$code" = 200 ]
