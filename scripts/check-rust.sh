#!/usr/bin/env bash
# check-rust.sh [COMPONENT...]: checks that cargo is recent enough and that a linker and the named components (rustfmt,
# clippy) are installed. Otherwise it fails and says what to install. With rustup, it adds missing components.
set -euo pipefail
# shellcheck source=scripts/messages.sh
. "${BASH_SOURCE%/*}/messages.sh"
# shellcheck source=scripts/programs.sh
. "${BASH_SOURCE%/*}/programs.sh"

check_linker() {
    command -v "${CC:-cc}" >/dev/null ||
        fail "a C compiler is needed to link Rust programs, and ${CC:-cc} was not found" \
            "Debian, Ubuntu: apt-get install $(packages_of cc)" "Fedora: dnf install gcc"
}

check_cargo() {
    local needed found
    needed=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
    command -v cargo >/dev/null ||
        fail "Rust is needed, and cargo was not found" "install Rust $needed or newer from https://rustup.rs"
    found=$(cargo --version | cut -d' ' -f2)
    if [ "$(printf '%s\n' "$needed" "$found" | sort -V | head -n1)" != "$needed" ]; then
        fail "Rust $needed or newer is needed; found: $found ($(command -v cargo))" \
            "with rustup: rustup update" "otherwise install it from https://rustup.rs"
    fi
}

check_component() {
    local name="$1" command="$1" package="$1"
    if [ "$name" = rustfmt ]; then command=fmt; fi
    if [ "$name" = clippy ]; then package=rust-clippy; fi
    if cargo "$command" --version >/dev/null 2>&1; then return; fi
    if command -v rustup >/dev/null; then
        say "Adding the Rust component $name"
        if rustup component add "$name"; then return; fi
    fi
    fail "cargo $command is needed, and is not installed" \
        "with rustup: rustup component add $name" "Debian, Ubuntu: apt-get install $package"
}

# In subshells, so that all missing parts are reported together.
status=0
(check_linker) || status=1
(check_cargo) || status=1
if [ $status -ne 0 ]; then exit 1; fi
for component in "$@"; do check_component "$component"; done
