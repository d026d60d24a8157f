#!/usr/bin/env bash
# Lints the proto files, checks them for breaking changes, and proves that the check can fail.
set -euo pipefail
cd "$(dirname "$0")/../proto"

readonly BUF_VERSION="1.75.0"
readonly TOOLS="${WAKELOG_TOOLS:-../target/tools}"

if ! [ -x "$TOOLS/node_modules/.bin/buf" ] || [ "$("$TOOLS/node_modules/.bin/buf" --version)" != "$BUF_VERSION" ]; then
  mkdir -p "$TOOLS"
  npm install --silent --no-fund --no-audit --prefix "$TOOLS" "@bufbuild/buf@$BUF_VERSION" >/dev/null
fi
buf=$(realpath "$TOOLS/node_modules/.bin/buf")

"$buf" lint
"$buf" breaking --against baseline.binpb

broken=$(mktemp -d)
trap 'rm -rf "$broken"' EXIT
cp -r buf.yaml wakelog "$broken/"
sed -i 's/TranscriptEntry transcript_entry = 7;/TranscriptEntry transcript_entry = 8;/' "$broken/wakelog/v1/agent.proto"
if (cd "$broken" && "$buf" breaking --against "$OLDPWD/baseline.binpb" >/dev/null 2>&1); then
  echo "proto: the breaking-change check let a renumbered field pass" >&2
  exit 1
fi
echo "proto: lint and breaking-change check passed (buf $BUF_VERSION)"
