#!/usr/bin/env bash
# every-target.sh: runs every target of Makefile, the slow ones in a short form, so that none breaks unnoticed. Their
# changes to the repository are undone afterwards; uncommitted changes would be lost, so there must be none.
set -euo pipefail
# shellcheck source=scripts/messages.sh
. "${BASH_SOURCE%/*}/messages.sh"
cd "${BASH_SOURCE%/*}/.."

if [ -n "$(git status --porcelain)" ]; then
    fail "there are uncommitted changes, which this would overwrite" "commit or stash them"
fi
scratch=$(mktemp -d)
readonly scratch
finish() {
    wait
    rm -rf "$scratch"
    git checkout --quiet -- .
}
trap finish EXIT

try() {
    local output start=$SECONDS
    output=$(mktemp --tmpdir="$scratch")
    say "make $*"
    make --no-print-directory "$@" >"$output" 2>&1 || {
        cat "$output" >&2
        fail "make $* failed" "its output is above"
    }
    say "make $* took $((SECONDS - start)) s"
}

readonly short="--repeat 1 --out $scratch/results"

# Targets that write files of the repository.
writing() {
    try fmt
    try docs
    try reference
    try pictures
}

# Targets that run experiments.
running() {
    try bench ARGS=--short
    try reproduce ARGS="ucas-reproduce --out $scratch/results --report $scratch/report"
    try agreement ARGS="--only 'pfifo 100, cubic, 2 Mbit/s, 40 ms, 1 flow' --set duration=5s $short"
    try agreement ARGS="--random 2 --only 1-2: $short"
    try battling ARGS="--only battling-tcp-asymmetric --set duration=5s --page $scratch/battling.md $short"
    try live-accuracy ARGS="--engine guest --seeds 1 --page $scratch/live-accuracy.md"
    try explaining ARGS="--seeds 12 --page $scratch/explained.md"
}

try help
try agent
try live
try explorer
try wheel
# At the same time, because neither keeps two processors busy.
writing &
running
wait $!
# With all crates, cargo has what `make test` built: for a single one it would build the crates below it with other features.
try test-properties CRATES="--workspace --test it properties" CASES=20 FUZZ_SECONDS=1
# Whether the examples compile; `make test-slow` tests them too.
try test-recipes ARGS="-k compiles"
try test-busy BUSY=1 DISTURBED=agent
# Last, because every target would install the packages again from requirements that are newer than their stamps.
try lock
# Dry runs. Nothing needs to be built again, because the stamps and cargo's files exist.
for target in test-rust test-python test-slow test test-targets lint lint-rust lint-python lint-crates clean; do
    say "make --dry-run $target"
    make --dry-run "$target" >/dev/null
done
