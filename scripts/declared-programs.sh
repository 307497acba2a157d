#!/usr/bin/env bash
# declared-programs.sh DIRECTORY: recreates the directory with links to every installed program of
# python/bufferscope/programs.txt. With nothing else in PATH, tests reveal an unlisted program here, not on a fresh machine.
set -euo pipefail
# shellcheck source=scripts/programs.sh
. "${BASH_SOURCE%/*}/programs.sh"

readonly directory="$1"

rm -rf "$directory"
mkdir -p "$directory"
while read -r names _; do
    if path=$(PATH=$PATH:/usr/sbin:/sbin path_of "$names"); then ln -s "$path" "$directory/${path##*/}"; fi
done < <(listed anyone)
