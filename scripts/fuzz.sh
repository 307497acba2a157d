#!/usr/bin/env bash
# fuzz.sh SECONDS [TARGET...]: runs these fuzz targets, or all, for SECONDS each, if cargo-fuzz and a nightly toolchain are installed.
set -euo pipefail
# shellcheck source=scripts/messages.sh
. "${BASH_SOURCE%/*}/messages.sh"

readonly seconds="$1"

if ! cargo +nightly fuzz --version >/dev/null 2>&1; then
    say "Fuzzing is left out: it needs \`rustup toolchain install nightly\` and \`cargo install cargo-fuzz\`"
    exit 0
fi
targets=("${@:2}")
if [[ ${#targets[@]} == 0 ]]; then
    mapfile -t targets < <(cargo +nightly fuzz list)
fi
for target in "${targets[@]}"; do
    say "Fuzzing $target for $seconds s"
    cargo +nightly fuzz run "$target" -- -max_total_time="$seconds" -verbosity=0 -print_final_stats=1 \
        -dict="fuzz/dictionaries/$target.dict"
done
