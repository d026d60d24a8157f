#!/usr/bin/env bash
# A Docker engine of this checkout's own, for machines where none runs: docker.io of the distribution, without a bridge, so that
# its containers have the host's network or none. Where an engine answers already (DOCKER_HOST, or docker's default), that one
# is used and left alone. An engine of its own needs root, or sudo.
#   engine.sh up     installs what is missing, starts the engine, waits until it answers
#   engine.sh env    prints the variable that leads to it: eval "$(scripts/containers/engine.sh env)"
#   engine.sh down   stops it, with its containers and mounts; its images stay, under target/containers
set -euo pipefail
cd "$(dirname "$0")/../.."

readonly HOME_FOLDER="$PWD/target/containers"
readonly DATA="$HOME_FOLDER/data"
readonly LOG="$HOME_FOLDER/dockerd.log"
# Its sockets are here: the path of a socket has 107 bytes at most, and that of a checkout may be longer.
RUN="/run/wakelog-containers-$(printf '%s' "$PWD" | cksum | cut -d ' ' -f 1)"
readonly RUN
readonly SOCKET="unix://$RUN/docker.sock"
readonly PID_FILE="$RUN/dockerd.pid"
readonly PATIENCE_SECONDS=60

say() { printf 'containers: %s\n' "$*" >&2; }

as_root() {
  if [ "$(id -u)" -eq 0 ]; then "$@"; else sudo "$@"; fi
}

# What the user has set may lead to an engine that is gone, or to none.
engine_of_the_user() {
  [ "${DOCKER_HOST:-}" != "$SOCKET" ] && command -v docker >/dev/null && docker version >/dev/null 2>&1
}

our_docker() { env -u DOCKER_CONTEXT DOCKER_HOST="$SOCKET" docker "$@"; }

is_process_of() {
  local pid_file=$1 name=$2 pid
  pid=$(as_root cat "$pid_file" 2>/dev/null) || return 1
  [ "$(cat "/proc/$pid/comm" 2>/dev/null)" = "$name" ]
}

runs() { is_process_of "$PID_FILE" dockerd; }

# A killed engine leaves its containerd, its containers and its mounts behind.
left_something() {
  is_process_of "$RUN/exec/containerd/containerd.pid" containerd || mounts | grep -q .
}

mounts() {
  awk -v data="$DATA/" -v run="$RUN/" 'index($2, data) == 1 || index($2, run) == 1 { print $2 }' /proc/mounts | sort -r
}

missing_packages() {
  command -v dockerd >/dev/null || [ -x /usr/sbin/dockerd ] || echo docker.io
  # Where the client is a package of its own.
  if ! command -v docker >/dev/null && apt-cache show docker-cli >/dev/null 2>&1; then echo docker-cli; fi
}

install_packages() {
  local packages
  packages=$(missing_packages | tr '\n' ' ')
  [ -z "${packages// /}" ] && return 0
  if ! command -v apt-get >/dev/null; then
    say "please install Docker"
    exit 1
  fi
  say "installing $packages"
  as_root apt-get update -qq
  # shellcheck disable=SC2086
  as_root env DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends $packages >/dev/null
}

start() {
  as_root rm -f "$PID_FILE"
  as_root mkdir -p "$RUN"
  mkdir -p "$HOME_FOLDER"
  # In a session of its own: what interrupts a script does not end the engine before the script has tidied up.
  as_root setsid "$(PATH="$PATH:/usr/sbin" command -v dockerd)" --host "$SOCKET" --group "$(id -gn)" --data-root "$DATA" \
    --exec-root "$RUN/exec" --pidfile "$PID_FILE" --bridge=none --iptables=false --ip6tables=false --ip-forward=false \
    --ip-masq=false --userland-proxy=false >"$LOG" 2>&1 </dev/null &
  local deadline=$((SECONDS + PATIENCE_SECONDS)) starter=$!
  until our_docker version >/dev/null 2>&1; do
    if [ "$SECONDS" -ge "$deadline" ] || ! kill -0 "$starter" 2>/dev/null; then
      say "the engine does not answer"
      tail -n 20 "$LOG" >&2
      exit 1
    fi
    sleep 0.1
  done
}

up() {
  if engine_of_the_user; then
    say "using the engine that answers already: Docker $(docker version --format '{{.Server.Version}}')"
    return
  fi
  install_packages
  runs || start
  say "Docker $(our_docker version --format '{{.Server.Version}}'), API $(our_docker version --format '{{.Server.APIVersion}}')"
}

print_env() {
  if engine_of_the_user; then
    printf 'export DOCKER_HOST=%q\n' "${DOCKER_HOST:-$(docker context inspect --format '{{.Endpoints.docker.Host}}')}"
    return
  fi
  printf 'export DOCKER_HOST=%q\n' "$SOCKET"
}

down() {
  if ! runs; then
    left_something || return 0
    start
  fi
  our_docker ps -aq | xargs -r env DOCKER_HOST="$SOCKET" docker rm --force --volumes >/dev/null || say "containers are left"
  local pid deadline=$((SECONDS + PATIENCE_SECONDS))
  pid=$(as_root cat "$PID_FILE")
  as_root kill -TERM "$pid"
  while [ -d "/proc/$pid" ]; do
    if [ "$SECONDS" -ge "$deadline" ]; then
      say "the engine does not stop"
      as_root kill -KILL "$pid"
      break
    fi
    sleep 0.1
  done
  mounts | while read -r folder; do as_root umount --lazy "$folder"; done
  as_root rm -rf "$RUN"
}

case "${1:-}" in
  up) up ;;
  env) print_env ;;
  down) down ;;
  *)
    echo "usage: engine.sh up|env|down" >&2
    exit 2
    ;;
esac
