# Sourced. The versions of the engines that the native stack runs.
# shellcheck shell=bash disable=SC2034
readonly KAFKA_VERSION="4.4.0"
readonly POSTGRESQL_MAJOR="15"
readonly VERSITYGW_VERSION="1.8.0"

# The version above, or, where the distribution has none of it, the newest that is installed and not older.
postgresql_bin() {
  local version
  if [ ! -x "/usr/lib/postgresql/$POSTGRESQL_MAJOR/bin/initdb" ]; then
    for version in $(ls /usr/lib/postgresql 2>/dev/null | sort -rn); do
      if [ "$version" -ge "$POSTGRESQL_MAJOR" ] && [ -x "/usr/lib/postgresql/$version/bin/initdb" ]; then
        echo "/usr/lib/postgresql/$version/bin"
        return
      fi
    done
  fi
  echo "/usr/lib/postgresql/$POSTGRESQL_MAJOR/bin"
}
POSTGRESQL_BIN=$(postgresql_bin)
readonly POSTGRESQL_BIN
