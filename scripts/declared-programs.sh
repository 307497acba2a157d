#!/usr/bin/env bash
# declared-programs.sh DIRECTORY: makes the directory anew, with links to every program of python/bufferscope/programs.txt that
# is there. With nothing else in PATH, tests find that a program is not listed here instead of on a fresh machine.
set -euo pipefail
# shellcheck source=scripts/programs.sh
. "${BASH_SOURCE%/*}/programs.sh"

readonly directory="$1"

rm -rf "$directory"
mkdir -p "$directory"
while read -r names _; do
    if path=$(PATH=$PATH:/usr/sbin:/sbin path_of "$names"); then ln -s "$path" "$directory/${path##*/}"; fi
done < <(listed anyone)
