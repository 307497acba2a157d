#!/usr/bin/env bash
# ensure-system-packages.sh COMMAND=PACKAGE...: sees to it that each COMMAND is there, by installing the Debian PACKAGE
# where this user may (root, or sudo that asks for no password); otherwise says what to install.
# COMMAND may list alternatives: chromium|google-chrome=chromium.
set -euo pipefail
# shellcheck source=scripts/messages.sh
. "$(dirname "$0")/messages.sh"

is_there() {
    local name
    for name in ${1//|/ }; do
        if command -v "$name" >/dev/null; then return 0; fi
    done
    return 1
}

packages=()
for pair in "$@"; do
    if ! is_there "${pair%=*}"; then packages+=("${pair##*=}"); fi
done
if [ ${#packages[@]} -eq 0 ]; then exit 0; fi

readonly install=(apt-get install --yes --no-install-recommends "${packages[@]}")
as_root=""
if [ "$(id -u)" -ne 0 ]; then as_root="sudo -n"; fi

if ! command -v apt-get >/dev/null; then
    fail "these programs are needed, and there is no apt-get to install them: ${packages[*]}" \
        "install them with this system's package manager, then try again"
fi
if [ -n "$as_root" ] && ! sudo -n true 2>/dev/null; then
    fail "these system packages are needed, and only root may install them: ${packages[*]}" "sudo ${install[*]}"
fi
say "Installing system packages: ${packages[*]}"
# Package lists may be absent or old: refresh them, but a failing mirror need not matter.
$as_root apt-get update --quiet=2 || true
$as_root env DEBIAN_FRONTEND=noninteractive "${install[@]}" --quiet=2 >/dev/null ||
    fail "apt-get could not install: ${packages[*]}" "try it by hand: ${install[*]}"
