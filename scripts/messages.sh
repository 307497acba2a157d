# shellcheck shell=bash
# Sourced by the other scripts: functions for their messages.

say() { printf '==> %s\n' "$*" >&2; }

# fail MESSAGE [WHAT-TO-DO]...: prints a line that says what is wrong, then one line per remedy, and exits.
fail() {
    printf 'bufferscope: %s\n' "$1" >&2
    shift
    for remedy in "$@"; do printf '    %s\n' "$remedy" >&2; done
    exit 1
}
