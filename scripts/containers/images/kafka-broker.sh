#!/bin/bash
# Runs a broker with the settings that variables hold: KAFKA_LOG_DIRS=x is log.dirs=x, `__` in a name stands for `_` and `___` for
# `-`. CLUSTER_ID, KAFKA_HEAP_OPTS, KAFKA_JVM_PERFORMANCE_OPTS and KAFKA_OPTS are what they are for Kafka's own scripts.
set -euo pipefail

readonly SETTINGS=/tmp/server.properties
readonly JAVA=(java -Dorg.slf4j.simpleLogger.defaultLogLevel=warn -cp '/opt/kafka/libs/*')

is_of_the_scripts() {
  case "$1" in
    KAFKA_HEAP_OPTS | KAFKA_JVM_PERFORMANCE_OPTS | KAFKA_OPTS | KAFKA_LOG4J_* | KAFKA_VERSION) return 0 ;;
    *) return 1 ;;
  esac
}

for variable in "${!KAFKA_@}"; do
  is_of_the_scripts "$variable" && continue
  name=$(sed 's/^kafka_//; s/___/-/g; s/__/\x01/g; s/_/./g; s/\x01/_/g' <<<"${variable,,}")
  printf '%s=%s\n' "$name" "${!variable}"
done >"$SETTINGS"

"${JAVA[@]}" kafka.tools.StorageTool format --ignore-formatted --cluster-id "${CLUSTER_ID:-d2FrZWxvZy1pbWFnZS0wMA}" \
  --config "$SETTINGS" >&2
# shellcheck disable=SC2086
exec "${JAVA[@]}" ${KAFKA_HEAP_OPTS:--Xmx1g} ${KAFKA_JVM_PERFORMANCE_OPTS:-} ${KAFKA_OPTS:-} kafka.Kafka "$SETTINGS"
