#!/usr/bin/env bash
# Runs an Apache Kafka broker (KRaft) in the foreground, on loopback. Its process is the one that was started, so that signals
# reach it; it dies with whoever started it. Alone it is a cluster of one node. With others, the settings of its node override
# those of one, KAFKA_CLUSTER_ID is that of all, and KAFKA_HOSTS_FILE may say where it finds the others.
# Usage: kafka.sh DIR PORT CONTROLLER_PORT [NAME=VALUE ...]
set -euo pipefail
cd "$(dirname "$0")"
. ./versions.sh

readonly DIR="$1" PORT="$2" CONTROLLER_PORT="$3"
shift 3
readonly JARS="../../target/engines/kafka-$KAFKA_VERSION"
if [ ! -d "$JARS" ]; then
  echo "kafka: there is no Apache Kafka $KAFKA_VERSION here: run scripts/engines/install.sh" >&2
  exit 1
fi
JAVA=(java)
if [ -n "${KAFKA_HOSTS_FILE:-}" ]; then
  JAVA+=("-Djdk.net.hosts.file=$KAFKA_HOSTS_FILE")
fi
JAVA+=("-Dorg.slf4j.simpleLogger.defaultLogLevel=${KAFKA_LOG:-warn}" -cp "$JARS/*")

mkdir -p "$DIR"
cat >"$DIR/server.properties" <<END
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:$CONTROLLER_PORT
listeners=PLAINTEXT://127.0.0.1:$PORT,CONTROLLER://127.0.0.1:$CONTROLLER_PORT
advertised.listeners=PLAINTEXT://127.0.0.1:$PORT
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT
log.dirs=$DIR/data
offsets.topic.replication.factor=1
offsets.topic.num.partitions=8
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
group.initial.rebalance.delay.ms=0
auto.create.topics.enable=false
END
printf '%s\n' "$@" >>"$DIR/server.properties"

if [ ! -e "$DIR/data/meta.properties" ]; then
  id="${KAFKA_CLUSTER_ID:-$("${JAVA[@]}" kafka.tools.StorageTool random-uuid)}"
  "${JAVA[@]}" kafka.tools.StorageTool format -t "$id" -c "$DIR/server.properties" >&2
fi
exec setpriv --pdeathsig KILL "${JAVA[@]}" "-Xmx${KAFKA_HEAP_MB:-768}m" -XX:+UseSerialGC -XX:TieredStopAtLevel=4 kafka.Kafka "$DIR/server.properties"
