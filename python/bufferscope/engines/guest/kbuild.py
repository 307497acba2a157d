"""Compile one module with the headers and programs that Debian packages for it."""

import shlex
import subprocess
from pathlib import Path

from bufferscope.engines.guest.errors import GuestError

_LIMIT_S = 300
_LIBRARIES = "usr/lib/x86_64-linux-gnu"
_LOADER = "ld-linux-x86-64.so.2"
_PROGRAMS = ("scripts/basic/fixdep", "scripts/mod/modpost.real-lsb-64", "tools/objtool/objtool.real-x86")
"""The binaries of linux-kbuild that take part."""
_OF_NEWER_COMPILERS = {"CONFIG_CC_HAS_MIN_FUNCTION_ALIGNMENT": "-fmin-function-alignment=16"}
"""What the kernel's configuration says of the compiler that built it, with the flag that an older one lacks (GCC before
14). The headers know another way then."""


def compile_module(tree: Path, release: str, module: str, source: bytes) -> bytes:
    """A module of one file, compiled without debugging information; `tree` has the unpacked packages."""
    headers = tree / f"usr/src/linux-headers-{release}"
    _relocate(tree, headers)
    for option, flag in _OF_NEWER_COMPILERS.items():
        if not _knows(flag):
            _unset(headers, option)
    work = tree / "module"
    work.mkdir()
    (work / f"{module}.c").write_bytes(source)
    (work / "Makefile").write_text(f"obj-m := {module}.o\n")
    # With this file, which has the kernel's types (BTF), kbuild calls pahole to describe the module's types, too.
    (headers / "vmlinux").unlink(missing_ok=True)
    _run("make", "-C", str(headers), f"M={work}", "CC=cc", "KCFLAGS=-g0", "modules", what=module)
    return (work / f"{module}.ko").read_bytes()


def _relocate(tree: Path, headers: Path) -> None:
    """Make the packages work where they are unpacked, with the C library that they were built for."""
    makefile = headers / "Makefile"
    makefile.write_text(makefile.read_text().replace("/usr/src/", f"{tree}/usr/src/"))
    libraries = tree / _LIBRARIES
    (kbuild,) = (tree / "usr/lib").glob("linux-kbuild-*")
    for name in _PROGRAMS:
        program = kbuild / name
        binary = program.rename(program.with_name(f"{program.name}.bin"))
        command = shlex.join([str(libraries / _LOADER), "--library-path", str(libraries), str(binary)])
        program.write_text(f'#!/bin/sh\nexec {command} "$@"\n')
        program.chmod(0o755)


def _knows(flag: str) -> bool:
    command = ["cc", flag, "-fsyntax-only", "-x", "c", "-"]  # which writes no file
    return subprocess.run(command, input=b"", capture_output=True, check=False).returncode == 0


def _unset(headers: Path, option: str) -> None:
    for name in ("include/config/auto.conf", "include/generated/autoconf.h"):
        path = headers / name
        lines = path.read_text().splitlines(keepends=True)
        path.write_text("".join(line for line in lines if option not in line.replace("=", " ").split()))


def _run(*command: str, what: str) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=_LIMIT_S, check=False)
    except OSError as error:
        raise GuestError(f"{what} could not be built: {error}") from error
    except subprocess.TimeoutExpired as error:
        raise GuestError(f"{what} could not be built: {command[0]} was not done within {_LIMIT_S} s") from error
    if done.returncode != 0:
        said = (done.stderr or done.stdout).strip().splitlines()[-5:]
        raise GuestError(f"{what} could not be built:\n" + "\n".join(said))
