#!/usr/bin/env bash
# wheel.sh MATURIN PYTHON: builds the wheel in dist/ with profile-guided optimisation. The simulator is compiled with
# counters, simulates every experiment of the catalogue for some seconds, and is compiled again with these counts.
set -euo pipefail
# shellcheck source=scripts/messages.sh
. "${BASH_SOURCE%/*}/../messages.sh"

readonly maturin="$1" python="$2" work="$PWD/target/profiled"
host="$(rustc -vV | sed -n 's/^host: //p')"
profdata="$(rustc --print sysroot)/lib/rustlib/$host/bin/llvm-profdata"
if [[ ! -x $profdata ]]; then
    fail "a profile-guided build needs llvm-profdata, which is not installed" "rustup component add llvm-tools"
fi

# With a target of its own, the flags do not apply to build scripts and macros, which would then write counts too.
build() { # FLAGS DIRECTORY
    RUSTFLAGS="$1" "$maturin" build --release --locked --quiet --target "$host" --target-dir "$work/build" --out "$2"
}

rm -rf "$work/counts" "$work/counted"
say "Compiling the simulator with counters"
build "-Cprofile-generate=$work/counts" "$work/counted"
"$python" -m zipfile -e "$work"/counted/*.whl "$work/counted"
say "Simulating the catalogue"
PYTHONPATH="$work/counted" "$python" -P scripts/profiling/workload.py
"$profdata" merge --output "$work/merged.profdata" "$work/counts"
say "Compiling the simulator with the profile"
build "-Cprofile-use=$work/merged.profdata -Cllvm-args=-pgo-warn-missing-function=false" dist
