#!/usr/bin/env bash
# make-venv.sh DIR: creates the virtual environment DIR, or recreates it if its interpreter no longer runs. It first
# checks all requirements of a build, so that all missing parts are reported together.
set -euo pipefail
# shellcheck source=scripts/messages.sh
. "${BASH_SOURCE%/*}/messages.sh"

readonly dir="$1"
readonly here="${BASH_SOURCE%/*}"

python=$("$here/find-python.sh") || python=""
"$here/check-rust.sh" || exit 1
if [ -z "$python" ]; then exit 1; fi

if ! "$dir/bin/python" -m pip --version >/dev/null 2>&1; then
    say "Making the Python environment $dir from $python"
    "$python" -m venv --clear "$dir"
fi
