# Sourced. The images that the tests run: the official ones, unless variables name others.
# shellcheck shell=bash
export WAKELOG_TEST_KAFKA_IMAGE="${WAKELOG_TEST_KAFKA_IMAGE:-apache/kafka:4.2.0}"
export WAKELOG_TEST_POSTGRES_IMAGE="${WAKELOG_TEST_POSTGRES_IMAGE:-postgres:15}"
export WAKELOG_TEST_S3_IMAGE="${WAKELOG_TEST_S3_IMAGE:-versity/versitygw:v1.8.0}"
