#!/usr/bin/env bash
# Prints the Python for the environment: $PYTHON if set, otherwise the first of the usual names that is recent enough
# and can create environments. If none is found, it fails and says what to install.
set -euo pipefail
# shellcheck source=scripts/messages.sh
. "${BASH_SOURCE%/*}/messages.sh"
# shellcheck source=scripts/programs.sh
. "${BASH_SOURCE%/*}/programs.sh"

readonly MINIMUM="3.11"
DEBIAN="Debian 12, Ubuntu 24.04 and newer: apt-get install $(packages_of python3)"

is_recent_enough() {
    "$1" -c "import sys; sys.exit(sys.version_info < (${MINIMUM/./, }))" 2>/dev/null
}

# Debian has ensurepip, which venv needs, in a separate package.
can_make_environments() {
    "$1" -c "import ensurepip, venv" 2>/dev/null
}

candidate=""
for name in ${PYTHON:-python3 python3.14 python3.13 python3.12 python3.11}; do
    if ! command -v "$name" >/dev/null || ! is_recent_enough "$name"; then continue; fi
    candidate=$(command -v "$name")
    if can_make_environments "$candidate"; then
        echo "$candidate"
        exit 0
    fi
done

if [ -n "$candidate" ]; then
    fail "$candidate cannot make virtual environments: its module ensurepip is not installed" "$DEBIAN"
fi
found="no ${PYTHON:-python3}"
if name=$(command -v "${PYTHON:-python3}"); then found="$name, $("$name" --version 2>&1 | head -n1 || true)"; fi
fail "Python $MINIMUM or newer is needed; found: $found" "$DEBIAN" \
    "elsewhere: https://www.python.org/downloads/, then \`make PYTHON=/path/to/python3 ...\`"
