# shellcheck shell=bash
# Sourced by the other scripts: what python/bufferscope/base/programs.txt says about programs and their packages.

readonly programs="${BASH_SOURCE%/*}/../python/bufferscope/base/programs.txt"

# listed USER...: prints a line for each program that any of these users needs (`anyone`: for every program). The line
# has the program's names, a blank, and its packages.
listed() {
    local names packages users user
    while read -r names packages users; do
        case "$names" in "" | "#"*) continue ;; esac
        for user in "$@"; do
            case ",anyone,$users," in *",$user,"*)
                echo "$names $packages"
                break
                ;;
            esac
        done
    done <"$programs"
}

# path_of NAME[|NAME...]: the path of the first of these that exists; fails if none does.
path_of() {
    local name
    for name in ${1//|/ }; do
        if type -P "$name"; then return 0; fi
    done
    return 1
}

# packages_of NAME: the Debian packages that contain a program, as arguments for apt-get.
packages_of() {
    local names packages
    while read -r names packages; do
        case "|$names|" in *"|$1|"*) echo "${packages//,/ }" ;; esac
    done < <(listed anyone)
}
