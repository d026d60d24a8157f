#!/usr/bin/env bash
# Compares the reference pages with the code: docs/configuration.md names every key, docs/metrics.md every metric, neither names another
# one, and the dashboard shows only metrics that exist.
set -euo pipefail
cd "$(dirname "$0")/.."

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

# shellcheck disable=SC2016 # Backticks are the pages'.
grep -rhoE '"wakelog_(ingest|persister|archiver|reconstructor|store|stream|archive|up|build)_[a-z_]+"' --include='*.rs' \
  ingest persister archiver reconstructor cli libs --exclude-dir=tests --exclude-dir=target | tr -d '"' | sort -u >"$dir/metrics-in-code"
grep -oE '^\| `wakelog_[a-z_]+`' docs/metrics.md | tr -d '|` ' | sort -u >"$dir/metrics-in-docs"
grep -oE 'wakelog_[a-z_]+' deploy/grafana-dashboard.json | sed -E '/_seconds_(bucket|sum|count)$/s/_(bucket|sum|count)$//' | sort -u >"$dir/metrics-shown"
grep -oE '^        "[a-z0-9_]+",$|key\("[a-z0-9_]+"' cli/src/config/keys.rs | grep -oE '[a-z0-9_]+"' | tr -d '"' | sort -u >"$dir/keys-in-code"
grep -oE '^\| (`[a-z0-9_]+`|table `kafka`)' docs/configuration.md | grep -v kafka | tr -d '|` ' | sort -u >"$dir/keys-in-docs"

failed=0
compare() {
  diff -u --label "$1" --label "$2" "$dir/$1" "$dir/$2" || failed=1
}
compare metrics-in-code metrics-in-docs
compare keys-in-code keys-in-docs
if comm -23 "$dir/metrics-shown" "$dir/metrics-in-code" | grep .; then
  echo "reference: the dashboard shows what does not exist" >&2
  failed=1
fi
[ "$failed" -eq 0 ] || exit 1
echo "reference: $(wc -l <"$dir/keys-in-docs") keys, $(wc -l <"$dir/metrics-in-docs") metrics, $(wc -l <"$dir/metrics-shown") of them on the dashboard"
