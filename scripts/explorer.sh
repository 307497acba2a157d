#!/usr/bin/env bash
# explorer.sh: builds the explorer's page, python/bufferscope/explorer/index.html, from crates/explorer and explorer/. The same
# sources and compiler give the same bytes. What the tests run in node goes to explorer/build.
set -euo pipefail
# shellcheck source=scripts/messages.sh
. "${BASH_SOURCE%/*}/messages.sh"
cd "${BASH_SOURCE%/*}/.."

readonly target=wasm32-unknown-unknown
# Empty, or how cargo builds the standard library for the target.
build_std=()

check_node() {
    local found
    found=$(node --version)
    found=${found#v}
    if [ "${found%%.*}" -lt 18 ]; then
        fail "Node.js 18 or newer is needed; found: $found ($(command -v node))" "install it from https://nodejs.org"
    fi
}

# The directory with the libraries of the compiler.
libraries() {
    echo "$("${RUSTC:-rustc}" --print sysroot)/lib/rustlib"
}

# The standard library for the target: the one beside the compiler, or what rustup adds, or one that is built from its
# sources, as distributions package them: those of the compiler in use, or Debian's compiler for browsers with its own.
find_target() {
    if [ -d "$(libraries)/$target/lib" ]; then return; fi
    if command -v rustup >/dev/null; then
        say "Adding the Rust target $target"
        if rustup target add "$target" && [ -d "$(libraries)/$target/lib" ]; then return; fi
    fi
    find_linker
    if build_library; then return; fi
    if command -v apt-get >/dev/null && [ "$(id -u)" -eq 0 ]; then
        say "Installing system packages: rustc-web rust-web-src"
        apt-get update --quiet=2 || true
        DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends --quiet=2 rustc-web rust-web-src \
            >/dev/null || true
    fi
    if [ -x /usr/bin/rustc ]; then
        export RUSTC=/usr/bin/rustc
        if build_library; then return; fi
    fi
    fail "Rust's standard library for $target is needed to build the explorer" \
        "with rustup: rustup target add $target" "Debian: apt-get install rustc-web rust-web-src lld"
}

# Makes cargo build the standard library, if its sources are beside the compiler. (RUSTC_BOOTSTRAP lets a stable compiler do
# that.)
build_library() {
    if [ ! -e "$(libraries)/src/rust/library/std/Cargo.toml" ]; then return 1; fi
    say "Building Rust's standard library for $target from its sources"
    build_std=("-Zbuild-std=std,panic_abort")
    export RUSTC_BOOTSTRAP=1
}

# A linker, which rustup's compilers bring, and those of distributions do not.
find_linker() {
    local linker
    linker=$(compgen -G "$(libraries)/*/bin/rust-lld" | head -1) || true
    [ -n "$linker" ] || linker=$(command -v wasm-ld) ||
        fail "wasm-ld is needed to link for $target, and was not found" "Debian, Ubuntu: apt-get install lld"
    export CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER=$linker
}

check_node
find_target

# make's jobs are not ours: it gives its job server to recursive makes only.
unset MAKEFLAGS

# Nothing depends on where the sources are, or on chance.
export CONST_RANDOM_SEED=bufferscope
remap() { printf "'--remap-path-prefix=%s=%s'" "$1" "$2"; }
flags=$(remap "$PWD" .),$(remap "${CARGO_HOME:-$HOME/.cargo}" cargo)
# Only this makes a WebAssembly module of the crate: a crate of several types gets no link-time optimisation.
cargo rustc --package=bufferscope-explorer --lib --crate-type=cdylib --profile=explorer --target=$target --locked --quiet \
    "${build_std[@]}" \
    --config="target.$target.rustflags=[$flags]"
wasm=$(realpath "${CARGO_TARGET_DIR:-target}/$target/explorer/bufferscope_explorer.wasm")

cd explorer
# npm's own record of what it has installed is newer than the lock file unless that has changed.
if [ ! node_modules/.package-lock.json -nt package-lock.json ]; then
    npm ci --ignore-scripts --silent
    touch node_modules/.package-lock.json
fi
npm run --silent check
node build.mjs "$wasm" ../python/bufferscope/explorer/index.html build
