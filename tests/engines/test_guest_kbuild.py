"""Compiling one module with unpacked packages of headers. `make` and `cc` are made here."""

import os
from pathlib import Path

import pytest
from packages import NEWER

from bufferscope.engines.guest import kbuild
from bufferscope.engines.guest.errors import GuestError

BUILD = NEWER.removesuffix("-cloud-amd64")


def script(path: Path, text: str) -> None:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Unpacked packages, and a `make` and a `cc` in PATH that do not know the kernel's flag."""
    tree = tmp_path / "tree"
    headers = tree / f"usr/src/linux-headers-{NEWER}"
    kbuilds = tree / f"usr/lib/linux-kbuild-{BUILD}"
    for name in kbuild._PROGRAMS:
        (kbuilds / name).parent.mkdir(parents=True, exist_ok=True)
        (kbuilds / name).write_bytes(b"a program")
    for name in ("include/config", "include/generated"):
        (headers / name).mkdir(parents=True)
    (headers / "vmlinux").write_bytes(b"types")
    (headers / "Makefile").write_text("include /usr/src/linux-headers-common/Makefile\n")
    (headers / "include/config/auto.conf").write_text(
        "CONFIG_NET=y\nCONFIG_CC_HAS_MIN_FUNCTION_ALIGNMENT=y\nCONFIG_CC_HAS_MIN_FUNCTION_ALIGNMENTS=y\n"
    )
    (headers / "include/generated/autoconf.h").write_text("#define CONFIG_CC_HAS_MIN_FUNCTION_ALIGNMENT 1\n")
    tools = tmp_path / "tools"
    tools.mkdir()
    script(tools / "cc", 'for each; do case "$each" in -fmin*) exit 1;; esac; done')
    script(
        tools / "make",
        '[ -e "$2/vmlinux" ] && exit 3; work="${3#M=}"; cat "$work"/*.c "$work/Makefile" > "$work/sch_dualpi2.ko"',
    )
    monkeypatch.setenv("PATH", f"{tools}:{os.environ['PATH']}")
    return tree


def test_the_headers_work_where_they_are_unpacked(tree: Path) -> None:
    content = kbuild.compile_module(tree, NEWER, "sch_dualpi2", b"source; ")
    assert content == b"source; obj-m := sch_dualpi2.o\n"
    headers = tree / f"usr/src/linux-headers-{NEWER}"
    assert (headers / "Makefile").read_text() == f"include {tree}/usr/src/linux-headers-common/Makefile\n"
    assert (headers / "include/config/auto.conf").read_text() == (
        "CONFIG_NET=y\nCONFIG_CC_HAS_MIN_FUNCTION_ALIGNMENTS=y\n"
    )
    assert (headers / "include/generated/autoconf.h").read_text() == ""
    fixdep = tree / f"usr/lib/linux-kbuild-{BUILD}/scripts/basic/fixdep"
    assert f"{tree}/usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2 --library-path" in fixdep.read_text()
    assert fixdep.with_name("fixdep.bin").read_bytes() == b"a program"


def test_a_compiler_that_fails_is_quoted(tree: Path, tmp_path: Path) -> None:
    script(tmp_path / "tools/make", "echo 'sch_dualpi2.c:3: error: bad' >&2; exit 2")
    with pytest.raises(GuestError, match=r"sch_dualpi2 could not be built:\nsch_dualpi2\.c:3: error: bad"):
        kbuild.compile_module(tree, NEWER, "sch_dualpi2", b"")
