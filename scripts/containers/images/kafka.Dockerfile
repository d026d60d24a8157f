# Apache Kafka: a broker that is configured by variables, as in the image apache/kafka.
ARG ROOTFS
FROM $ROOTFS
COPY jars/ /opt/kafka/libs/
COPY kafka-broker.sh /opt/kafka/bin/
USER nobody
ENTRYPOINT ["/opt/kafka/bin/kafka-broker.sh"]
