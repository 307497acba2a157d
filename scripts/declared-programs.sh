#!/usr/bin/env bash
# declared-programs.sh DIRECTORY: fills the directory with links to every installed program of
# python/bufferscope/base/programs.txt. With only these in PATH, tests find an unlisted program at once, not only on a
# fresh machine. A directory that is already correct stays unchanged, because other tests may be using it.
set -euo pipefail
# shellcheck source=scripts/programs.sh
. "${BASH_SOURCE%/*}/programs.sh"

readonly directory="$1"

mkdir -p "${directory%/*}"
fresh=$(mktemp -d "$directory.XXXXXX")
trap 'rm -rf "$fresh"' EXIT
chmod 755 "$fresh"
while read -r names _; do
    if path=$(PATH=$PATH:/usr/sbin:/sbin path_of "$names"); then ln -s "$path" "$fresh/${path##*/}"; fi
done < <(listed anyone)
if ! diff --no-dereference -r "$fresh" "$directory" >/dev/null 2>&1; then
    rm -rf "$directory"
    mv -T "$fresh" "$directory"
fi
