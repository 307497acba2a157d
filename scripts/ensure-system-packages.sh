#!/usr/bin/env bash
# ensure-system-packages.sh USER...: makes sure that all programs are installed that these users need (host, guest,
# tests; see python/bufferscope/base/programs.txt). With the necessary rights (root, or sudo without a password), it installs
# the Debian packages; otherwise it says what to install.
set -euo pipefail
# shellcheck source=scripts/messages.sh
. "${BASH_SOURCE%/*}/messages.sh"
# shellcheck source=scripts/programs.sh
. "${BASH_SOURCE%/*}/programs.sh"

# The PATH of ordinary users often lacks the directories of ip and ethtool. bufferscope looks there, too.
PATH=$PATH:/usr/sbin:/sbin

missing=()
packages=()
while read -r names its_packages; do
    if path_of "$names" >/dev/null; then continue; fi
    missing+=("${names%%|*}")
    for package in ${its_packages//,/ }; do
        case " ${packages[*]-} " in *" $package "*) ;; *) packages+=("$package") ;; esac
    done
done < <(listed "$@")
if [ ${#missing[@]} -eq 0 ]; then exit 0; fi

readonly install=(apt-get install --yes --no-install-recommends "${packages[@]}")
as_root=""
if [ "$(id -u)" -ne 0 ]; then as_root="sudo -n"; fi

if ! command -v apt-get >/dev/null; then
    fail "these programs are needed, and there is no apt-get to install them: ${missing[*]}" \
        "install them with this system's package manager, then try again; Debian has them in: ${packages[*]}"
fi
if [ -n "$as_root" ] && ! sudo -n true 2>/dev/null; then
    fail "these programs are needed, and only root may install them: ${missing[*]}" "sudo ${install[*]}"
fi
say "Installing system packages: ${packages[*]}"
# Package lists may be absent or old, so refresh them. A failing mirror need not matter.
$as_root apt-get update --quiet=2 || true
$as_root env DEBIAN_FRONTEND=noninteractive "${install[@]}" --quiet=2 >/dev/null ||
    fail "apt-get could not install: ${packages[*]}" "try it by hand: ${install[*]}"
