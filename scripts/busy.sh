#!/usr/bin/env bash
# busy.sh NUMBER COMMAND [ARGUMENT]...: runs a command together with NUMBER processes that only take CPU time from it.
set -euo pipefail

readonly number="$1"
shift

spinning=()
stop() { kill "${spinning[@]}" 2>/dev/null || true; }
trap stop EXIT
for ((n = 0; n < number; n++)); do
    while :; do :; done &
    spinning+=($!)
done
"$@"
