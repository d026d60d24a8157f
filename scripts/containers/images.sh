#!/usr/bin/env bash
# Builds images of the engines, on machines where none can be pulled: one root file system of the distribution's packages, which
# all images share, and what each of them adds. They take the variables and arguments that the official images take. With the
# path of a binary: also wakelog/wakelog:dev. Does nothing that is done already. Prints the seconds of each step.
# Needs an engine (engine.sh up) and what scripts/engines/install.sh installs.
# Usage: images.sh [WAKELOG_BINARY]
set -euo pipefail
cd "$(dirname "$0")"
. ../engines/versions.sh

readonly BINARY="${1:+$(realpath "$1")}"
readonly SUITE="bookworm"
readonly PACKAGES="openjdk-17-jre-headless postgresql-$POSTGRESQL_MAJOR"
# Needed by none of the programs that run; PostgreSQL works without its compiler.
readonly LEFT_OUT='perl|llvm|libz3|font|locales|libc-l10n'
readonly ROOTFS_IMAGE="wakelog-test/rootfs:$SUITE"
readonly ENGINES="../../target/engines"
readonly CACHE="../../target/containers"
readonly LOG="$CACHE/images.log"
readonly ROOTFS_TAR="$CACHE/rootfs-$SUITE-$POSTGRESQL_MAJOR.tar.zst"

as_root() {
  if [ "$(id -u)" -eq 0 ]; then "$@"; else sudo "$@"; fi
}

step() {
  local name=$1 started=$EPOCHREALTIME
  shift
  "$@"
  printf 'images: %-28s %6.1f s\n' "$name" "$(awk -v from="$started" -v to="$EPOCHREALTIME" 'BEGIN { print to - from }')" >&2
}

# DEBIAN_MIRROR, or the mirror that the machine's apt is set up for, if it has this suite.
mirror() {
  local uri
  if [ -n "${DEBIAN_MIRROR:-}" ]; then
    echo "$DEBIAN_MIRROR"
    return 0
  fi
  # shellcheck disable=SC2016
  uri=$(apt-get indextargets --format '$(REPO_URI)' "Codename: $SUITE" 'Component: main' 'Created-By: Packages' | head -n 1)
  if [ -z "$uri" ]; then
    echo "images: apt knows no mirror of $SUITE: set DEBIAN_MIRROR to one" >&2
    exit 1
  fi
  echo "$uri"
}

make_rootfs_tar() {
  [ -e "$ROOTFS_TAR" ] && return 0
  if ! command -v debootstrap >/dev/null && [ ! -x /usr/sbin/debootstrap ]; then
    as_root apt-get update -qq
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends debootstrap >/dev/null
  fi
  local root="$CACHE/rootfs" from
  from=$(mirror)
  remove_root "$root"
  as_root mkdir -p "$root/etc/dpkg/dpkg.cfg.d"
  # It is thrown away if the machine stops meanwhile.
  echo "force-unsafe-io" | as_root tee "$root/etc/dpkg/dpkg.cfg.d/unsafe-io" >/dev/null
  {
    as_root env PATH="$PATH:/usr/sbin:/sbin" \
      debootstrap --variant=minbase --include=ca-certificates "$SUITE" "$root" "$from"
    as_root chroot "$root" apt-get update
    unpack_packages "$root"
  } >"$LOG" 2>&1
  as_root tar -C "$root" --one-file-system --exclude='./var/cache/apt/*' --exclude='./var/lib/apt/lists/*' \
    --exclude='./usr/share/doc/*' --exclude='./usr/share/locale/*' --exclude='./dev/*' -c . | zstd -q -1 -T0 >"$ROOTFS_TAR.part"
  mv "$ROOTFS_TAR.part" "$ROOTFS_TAR"
  remove_root "$root"
}

# Unpacked, not installed: what the packages' scripts set up (a cluster, alternatives, certificates for Java) takes longer than all
# the rest, and the images do without it.
unpack_packages() {
  local root=$1 packages
  # shellcheck disable=SC2086
  packages=$(as_root chroot "$root" apt-get install --simulate --no-install-recommends $PACKAGES |
    awk -v left_out="$LEFT_OUT" '/^Inst/ && $2 !~ left_out { print $2 }' | tr '\n' ' ')
  as_root mkdir "$root/packages"
  as_root chroot "$root" sh -c "cd /packages && apt-get download --quiet $packages"
  # Folders like /bin are links here, and are folders in some packages.
  for package in "$root"/packages/*.deb; do
    dpkg-deb --fsys-tarfile "$package" | as_root tar -x --keep-directory-symlink -C "$root"
  done
  as_root rm -rf "$root/packages" "$root/usr/lib/postgresql/$POSTGRESQL_MAJOR/lib/bitcode"
  as_root rm -f "$root/usr/lib/postgresql/$POSTGRESQL_MAJOR/lib/"llvmjit*
  # shellcheck disable=SC2016
  as_root chroot "$root" sh -c 'ln -s /usr/lib/jvm/java-17-openjdk-*/bin/java /usr/local/bin/java'
  as_root chroot "$root" useradd --system --user-group --home-dir /var/lib/postgresql postgres
  as_root chroot "$root" ldconfig
}

# debootstrap mounts /proc and /sys there; one that was killed leaves them mounted.
remove_root() {
  local root
  root=$(realpath "$1")
  awk -v root="$root/" 'index($2, root) == 1 { print $2 }' /proc/mounts | sort -r |
    while read -r folder; do as_root umount "$folder"; done
  as_root rm -rf --one-file-system "$root"
}

is_there() { docker image inspect "$1" >/dev/null 2>&1; }

import_rootfs() {
  is_there "$ROOTFS_IMAGE" || zstd -dc "$ROOTFS_TAR" | docker import --change 'ENV LANG=C.UTF-8' \
    --change 'ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin' - "$ROOTFS_IMAGE" >/dev/null
}

# build NAME VERSION DOCKERFILE TAR_ARGS...: an image of a Dockerfile of images/ and the files that tar is told to take. One that
# was made of the same version, root file system and files of images/ is left as it is.
build() {
  local name=$1 version=$2 dockerfile=$3 rootfs made_of
  shift 3
  rootfs=$(docker image inspect --format '{{.Id}}' "$ROOTFS_IMAGE")
  made_of=$({ echo "$version $rootfs"; cat images/*; } | sha256sum | cut -d ' ' -f 1)
  if [ "$(docker image inspect --format '{{.Config.Labels.made_of}}' "$name" 2>/dev/null)" = "$made_of" ]; then return 0; fi
  # By the old builder: the new one is a plug-in that not every installation has.
  tar -c --dereference -C images . "$@" |
    DOCKER_BUILDKIT=0 docker build --quiet --build-arg "ROOTFS=$ROOTFS_IMAGE" --label "made_of=$made_of" \
      --file "$dockerfile" --tag "$name" - >"$LOG" 2>&1
}

say_why() {
  local status=$?
  [ "$status" -eq 0 ] || tail -n 20 "$LOG" >&3
}

mkdir -p "$CACHE"
: >"$LOG"
exec 3>&2
trap say_why EXIT
if ! is_there "$ROOTFS_IMAGE"; then
  step "root file system" make_rootfs_tar
  step "$ROOTFS_IMAGE" import_rootfs
fi
kafka="wakelog-test/kafka:$KAFKA_VERSION"
step "$kafka" build "$kafka" "$KAFKA_VERSION" kafka.Dockerfile \
  --transform "s,^kafka-$KAFKA_VERSION,jars," -C "../$ENGINES" "kafka-$KAFKA_VERSION"
postgres="wakelog-test/postgres:$POSTGRESQL_MAJOR"
step "$postgres" build "$postgres" "$POSTGRESQL_MAJOR" postgres.Dockerfile
versitygw="wakelog-test/versitygw:$VERSITYGW_VERSION"
step "$versitygw" build "$versitygw" "$VERSITYGW_VERSION" versitygw.Dockerfile \
  -C "../$ENGINES/versitygw-$VERSITYGW_VERSION" versitygw
if [ -n "$BINARY" ]; then
  wakelog="wakelog/wakelog:dev"
  step "$wakelog" build "$wakelog" "$(sha256sum "$BINARY")" wakelog.Dockerfile \
    --transform "s,^$(basename "$BINARY")\$,wakelog," -C "$(dirname "$BINARY")" "$(basename "$BINARY")"
fi
