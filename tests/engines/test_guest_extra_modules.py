"""Modules that Debian's kernels lack: what is fetched and compiled, what is refused beforehand, and where they go.

The packages are made here, and no compiler is called. `make test-slow` builds the real one.
"""

import lzma
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

import packages
import pytest
from guests import ROUTED
from laboratory import write
from packages import NEWER

import bufferscope as bs
from bufferscope.cli import guest as cli
from bufferscope.engines.guest import (
    build,
    extra_modules,
    fetch,
    image,
    kbuild,
    kernels,
    module_building,
    modules,
    programs,
)
from bufferscope.engines.guest.errors import GuestError
from bufferscope.engines.guest.extra_modules import EXTRA
from bufferscope.engines.guest.kernels import Kernel

DUALPI2 = EXTRA["dualpi2"]
BUILD = NEWER.removesuffix("-cloud-amd64")
VERSION = "7.3.4-1~bpo13+1"
MAGIC = f"{NEWER} SMP preempt mod_unload "
COMPILED = packages.module(vermagic=MAGIC)


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def kernel(tmp_path: Path) -> Kernel:
    """Linux 7.3 in the cache, as fetched. All its modules have the same version magic."""
    directory = tmp_path / "parts"
    directory.mkdir()
    return kernels.adopt(packages.kernel_parts(directory, vermagic=MAGIC).values())


def source_package(directory: Path, files: dict[str, bytes]) -> Path:
    inner = {"usr/src/linux-source-7.3.tar.xz": lzma.compress(packages.archive("linux-source-7.3", files))}
    return packages.package(directory / f"linux-source-7.3_{VERSION}_all.deb", inner)


def mirror(monkeypatch: pytest.MonkeyPatch, files: dict[str, bytes]) -> list[list[str]]:
    """Let apt's mirror have the packages; returns the list to which each download adds what was asked for."""
    asked: list[list[str]] = []

    class Apt:
        def download(self, names: list[str], target: Path) -> list[Path]:
            asked.append(list(names))
            headers = {f"usr/src/linux-headers-{NEWER}/Makefile": b"include /usr/src/common/Makefile\n"}
            return [
                source_package(target, files),
                packages.package(target / f"linux-headers-{NEWER}_{VERSION}_amd64.deb", headers),
            ]

    class Release:
        def __init__(self, *suites: str) -> None:
            assert suites == ("trixie", "trixie-backports")

        def __enter__(self) -> Apt:
            return Apt()

        def __exit__(self, *_: object) -> None:
            pass

    monkeypatch.setattr(fetch, "other_release", Release)
    return asked


def compiler(monkeypatch: pytest.MonkeyPatch, result: bytes | BaseException) -> list[tuple[Any, ...]]:
    calls: list[tuple[Any, ...]] = []

    def compile_module(tree: Path, release: str, module: str, source: bytes) -> bytes:
        assert (tree / f"usr/src/linux-headers-{release}/Makefile").is_file()
        calls.append((release, module, source))
        if isinstance(result, BaseException):
            raise result
        return result

    monkeypatch.setattr(kbuild, "compile_module", compile_module)
    return calls


def built(kernel: Kernel) -> dict[str, bytes]:
    return extra_modules.built(kernel.identity())


def test_a_module_is_compiled_once_from_the_source_of_the_very_kernel(
    kernel: Kernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = mirror(monkeypatch, {"net/sched/sch_dualpi2.h": b"no", DUALPI2.source: b"the source", "README": b"no"})
    calls = compiler(monkeypatch, COMPILED)
    notes: list[str] = []
    assert not extra_modules.has(kernel, DUALPI2)
    for _ in range(2):
        module_building.build(DUALPI2, kernel, notes.append)
    assert calls == [(NEWER, "sch_dualpi2", b"the source")]
    (names,) = asked
    assert names[:4] == [
        f"linux-headers-{NEWER}={VERSION}",
        f"linux-headers-{BUILD}-common={VERSION}",
        f"linux-kbuild-{BUILD}={VERSION}",
        f"linux-source-7.3={VERSION}",
    ]
    assert built(kernel) == {"sch_dualpi2": COMPILED}
    assert extra_modules.has(kernel, DUALPI2)
    assert notes[0] == f"fetching the source and headers of Linux {NEWER} (185 MB)"
    assert notes[-1] == "compiling sch_dualpi2"


def test_a_built_module_is_in_the_image_and_makes_another_image(
    kernel: Kernel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(image, "shared_libraries", lambda _: [])
    monkeypatch.setattr(programs, "shared_libraries", lambda _: [])
    agent = tmp_path / "agent"
    agent.write_bytes(b"an agent")
    without = image.build(kernel, agent)
    mirror(monkeypatch, {DUALPI2.source: b"the source"})
    compiler(monkeypatch, COMPILED)
    module_building.build(DUALPI2, kernel, lambda _: None)
    with_module = image.build(kernel, agent)
    assert without.id != with_module.id
    assert "sch_dualpi2" in without.missing
    assert "sch_dualpi2" not in with_module.missing
    assert b"guest-modules/sch_dualpi2.ko" in with_module.initrd.read_bytes()


@pytest.mark.parametrize(
    ("files", "result", "says"),
    [
        ({"net/sched/sch_pie.c": b""}, COMPILED, rf"source of Linux {NEWER[:3]}.* has no net/sched/sch_dualpi2\.c"),
        (
            {DUALPI2.source: b""},
            packages.module(vermagic="7.4.1 SMP"),
            r"was compiled for `7\.4\.1 SMP`, and .* loads only `7\.3\.4",
        ),
        ({DUALPI2.source: b""}, GuestError("cc: sorry"), "cc: sorry"),
    ],
)
def test_what_fails_leaves_nothing(
    kernel: Kernel,
    files: dict[str, bytes],
    result: bytes | BaseException,
    says: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    mirror(monkeypatch, files)
    compiler(monkeypatch, result)
    with pytest.raises(GuestError, match=says):
        module_building.build(DUALPI2, kernel, lambda _: None)
    assert built(kernel) == {}


def test_an_interrupted_build_leaves_nothing_and_can_be_repeated(
    kernel: Kernel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    before = set(tmp_path.iterdir()) | {tmp_path / "cache"}
    mirror(monkeypatch, {DUALPI2.source: b"the source"})
    compiler(monkeypatch, KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        module_building.build(DUALPI2, kernel, lambda _: None)
    assert built(kernel) == {}
    assert set(tmp_path.iterdir()) <= before
    compiler(monkeypatch, COMPILED)
    module_building.build(DUALPI2, kernel, lambda _: None)
    assert built(kernel) == {"sch_dualpi2": COMPILED}


def test_a_mirror_that_has_moved_on_is_explained(kernel: Kernel, monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(*_: object) -> None:
        raise GuestError("apt-get download: E: Unable to locate package linux-headers-7.3.4")

    monkeypatch.setattr(fetch, "other_release", gone)
    with pytest.raises(GuestError, match=r"Unable to locate .*may no longer have what belongs to 7\.3\.4"):
        module_building.build(DUALPI2, kernel, lambda _: None)


def refusal(kernel: Kernel, monkeypatch: pytest.MonkeyPatch) -> str:
    """Why a module is not built; nothing may be fetched before."""
    asked = mirror(monkeypatch, {})
    with pytest.raises(GuestError) as error:
        module_building.build(DUALPI2, kernel, lambda _: None)
    assert asked == []
    return str(error.value)


def test_a_kernel_from_before_the_module_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = packages.package(tmp_path / f"linux-image-{packages.RELEASE}_1_amd64.deb", packages.kernel_files())
    said = refusal(kernels.adopt([path]), monkeypatch)
    assert said == f"sch_dualpi2 came with Linux 6.17, and this is {packages.RELEASE}: choose a newer --kernel"


def test_a_kernel_that_is_not_debians_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "lib/modules" / NEWER
    (path / "kernel").mkdir(parents=True)
    (path / "kernel/veth.ko").write_bytes(packages.module())
    (path / "vmlinuz").write_bytes(b"a kernel")
    said = refusal(kernels.installed(tmp_path)[0], monkeypatch)
    assert said.startswith("sch_dualpi2 can be built only for Debian's kernels that `guest build` has fetched")


def test_missing_programs_and_room_are_named(kernel: Kernel, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = shutil.disk_usage("/")
    monkeypatch.setattr(shutil, "which", lambda name: None if name in ("cc", "make") else name)
    assert refusal(kernel, monkeypatch) == (
        "cc, make not found, and sch_dualpi2 must be compiled: apt-get install gcc libc6-dev make"
    )
    monkeypatch.setattr(shutil, "which", lambda name: name)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=3 << 20))
    assert "has room for 3 MiB, and building sch_dualpi2 takes 700: set TMPDIR" in refusal(kernel, monkeypatch)


def test_the_command_offers_every_module() -> None:
    assert {each.value for each in cli.ExtraName} == set(EXTRA)
    assert {each.module for each in EXTRA.values()} <= set(modules.WANTED)


@pytest.mark.guest
@pytest.mark.skipif(
    "WHOLE_CATALOGUE" not in os.environ, reason="it fetches 185 MB and takes minutes: make test-slow runs it"
)
def test_a_guest_has_dualpi2_after_it_was_compiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()  # the user's cache, which may have the kernel already
    chosen = build.kernel("7.3", lambda _: None)
    build.add_module(chosen, "dualpi2", lambda _: None)
    text = ROUTED.replace('qdisc = "pfifo", limit = "20p"', 'qdisc = "dualpi2"')
    (run,) = bs.run(write(tmp_path, text), engine="guest", kernel="7.3", out=tmp_path / "out").runs
    assert set(run.drops["reason"]) <= {"dualpi2", "dualpi2_mark", "step_mark"}
    assert run.drops.height > 0
