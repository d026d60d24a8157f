# Sourced: runs the parts of a script and tells how long each took.

parts_taken=()

# part NAME COMMAND...: runs the command; a failure prints the minutes so far and ends the script.
part() {
  local name=$1 started=$SECONDS status=0
  shift
  printf '\n== %s\n' "$name" >&2
  "$@" || status=$?
  parts_taken+=("$(printf '%-12s %5.1f min' "$name" "$(minutes $((SECONDS - started)))")")
  if [ "$status" -ne 0 ]; then
    printf '== %s failed (exit %s)\n' "$name" "$status" >&2
    minutes_of_parts
    exit "$status"
  fi
}

minutes() { awk -v seconds="$1" 'BEGIN { printf "%.1f", seconds / 60 }'; }

minutes_of_parts() {
  printf '\nminutes of each part:\n'
  printf '  %s\n' "${parts_taken[@]}"
  printf '  %-12s %5.1f min\n' total "$(minutes "$SECONDS")"
}
