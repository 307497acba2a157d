#!/usr/bin/env bash
# make-venv.sh DIR: makes the virtual environment DIR, or makes it anew where its interpreter no longer runs.
set -euo pipefail
# shellcheck source=scripts/messages.sh
. "$(dirname "$0")/messages.sh"

readonly dir="$1"

if "$dir/bin/python" -m pip --version >/dev/null 2>&1; then exit 0; fi

python=$("$(dirname "$0")/find-python.sh")
if ! "$python" -c "import ensurepip, venv" 2>/dev/null; then
    version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
    fail "$python cannot make virtual environments: its venv module is not installed" \
        "Debian, Ubuntu: apt-get install python$version-venv"
fi
say "Making the Python environment $dir from $python"
"$python" -m venv --clear "$dir"
