#!/usr/bin/env bash
# lock.sh UV: writes requirements/{run,check,docs}.txt from pyproject.toml: every package with its version and hashes, for
# every Python from 3.11 on and every platform. The later files agree with the earlier ones. The versions of an existing
# lock are kept if they still fit; `UPGRADE=1 make lock` takes the newest.
set -euo pipefail

readonly uv="$1"

lock() {
    local name="$1"
    shift
    "$uv" pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header \
        ${UPGRADE:+--upgrade} "$@" --output-file "requirements/$name.txt"
}

lock run pyproject.toml --group build
lock check --group check --constraints requirements/run.txt
lock docs --group docs --constraints requirements/run.txt --constraints requirements/check.txt
