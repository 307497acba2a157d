"""Output of kernels, tools, packages and emulators is read completely or rejected with a message, however damaged."""

import gzip
import json
import lzma
import shutil
import socket
import struct
import subprocess
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import packages
import pytest
from agents import HELLO, frame
from hypothesis import given
from hypothesis import strategies as st
from packages import RELEASE

from bufferscope.base.errors import EngineError
from bufferscope.engines.frames import Receiver
from bufferscope.engines.guest import compression, fetch, kernels, modules, programs
from bufferscope.engines.guest.errors import GuestError
from bufferscope.engines.guest.files import PackageFiles
from bufferscope.engines.guest.qmp import Qmp
from bufferscope.engines.guest.state import stopped_at, with_fresh_instruction_count

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=10), inner, max_size=4),
    max_leaves=10,
)
Change = tuple[float, int]
CHANGES = st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.integers(0, 255)), min_size=1, max_size=8)


def changed(data: bytes, changes: list[Change]) -> bytes:
    """`data` with some bytes replaced, each at a place between its start (0) and its end (1)."""
    result = bytearray(data)
    for place, value in changes:
        result[int(place * len(result))] = value
    return bytes(result)


def refused_or_read(read: Callable[[], object]) -> None:
    with suppress(GuestError):
        read()


# --- kernel packages

PACKAGE_FILES = {
    f"boot/vmlinuz-{RELEASE}": b"a kernel",
    f"lib/modules/{RELEASE}/kernel/net/veth.ko.xz": lzma.compress(packages.module(depends="a,b", softdep="pre: c")),
}


class Package(bytes):
    """A package's bytes, which are too many to be shown."""

    def __repr__(self) -> str:
        return "package"


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Package:
    path = tmp_path_factory.mktemp("package") / "k.deb"
    return Package(packages.package(path, PACKAGE_FILES, compress=False).read_bytes())


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("package") / "linux-image.deb"


def read_package(file: Path, data: bytes) -> None:
    file.write_bytes(data)
    files = PackageFiles([file])
    for name in files.names():
        files.read(name)
    kernel = kernels.from_packages([file])
    modules.select(kernel.files, kernel.release)


@given(changes=CHANGES)
def test_a_damaged_package_is_refused_or_read(package: Package, file: Path, changes: list[Change]) -> None:
    refused_or_read(lambda: read_package(file, changed(package, changes)))


@given(kept=st.floats(0, 1))
def test_a_package_cut_anywhere_is_refused_or_read(package: Package, file: Path, kept: float) -> None:
    refused_or_read(lambda: read_package(file, package[: int(kept * len(package))]))


@given(data=st.binary(max_size=300))
def test_any_bytes_are_no_package(file: Path, data: bytes) -> None:
    with pytest.raises(GuestError):
        read_package(file, b"!<arch>\n" + data)


def test_a_member_of_negative_size_is_refused(package: Package, file: Path) -> None:
    with pytest.raises(GuestError, match="damaged ar header"):
        read_package(file, package[:56] + b"-60       " + package[66:])


@pytest.mark.parametrize("release", ["../../etc/passwd", "", "6.1\nrm", "-6.1"])
def test_a_kernel_whose_release_is_a_path_is_none(file: Path, release: str) -> None:
    packages.package(file, {f"boot/vmlinuz-{release}": b"a kernel"})
    with pytest.raises(GuestError, match="expected one kernel"):
        kernels.from_packages([file])


@given(changes=CHANGES)
def test_a_damaged_module_is_refused_or_read(changes: list[Change]) -> None:
    damaged = changed(packages.module(depends="a,b", softdep="pre: c"), changes)
    refused_or_read(lambda: modules.dependencies(damaged, "m.ko"))


@given(data=st.binary(max_size=400))
def test_any_bytes_after_an_elf_header_are_refused_or_read(data: bytes) -> None:
    refused_or_read(lambda: modules.dependencies(b"\x7fELF\x02\x01" + data, "m.ko"))


class Tree:
    """Modules that depend on each other as `needed` says."""

    def __init__(self, needed: dict[str, str]) -> None:
        self.files = {f"lib/modules/{RELEASE}/{name}.ko": packages.module(on) for name, on in needed.items()}

    def names(self) -> list[str]:
        return sorted(self.files)

    def read(self, name: str) -> bytes:
        return self.files[name]


def test_modules_that_need_each_other_are_refused() -> None:
    needed = dict.fromkeys(modules.REQUIRED, "") | {"veth": "tun", "tun": "veth"}
    with pytest.raises(GuestError, match="depends on itself"):
        modules.select(Tree(needed), RELEASE)


def test_an_endless_chain_of_modules_is_refused() -> None:
    chain = {f"m{number}": f"m{number + 1}" for number in range(2000)} | {"m2000": ""}
    with pytest.raises(GuestError, match="chain of more than 100"):
        modules.select(Tree(dict.fromkeys(modules.REQUIRED, "") | {"veth": "m0"} | chain), RELEASE)


# --- compression

PACKERS: dict[str, Callable[[bytes], bytes]] = {".xz": lzma.compress, ".gz": gzip.compress}


@pytest.mark.parametrize("suffix", PACKERS)
def test_what_is_packed_in_parts_and_filled_up_is_read_whole(suffix: str) -> None:
    pack = PACKERS[suffix]
    assert compression.decompressed(f"a{suffix}", pack(b"one") + pack(b"two") + bytes(8)) == b"onetwo"


@pytest.mark.parametrize("suffix", PACKERS)
def test_what_unpacks_to_more_than_it_may_is_refused(suffix: str) -> None:
    bomb = PACKERS[suffix](bytes(1 << 20))
    assert len(compression.decompressed(f"a{suffix}", bomb, 1 << 20)) == 1 << 20
    with pytest.raises(GuestError, match="unpacks to more than 1048575 bytes"):
        compression.decompressed(f"a{suffix}", bomb, (1 << 20) - 1)


@pytest.mark.parametrize("suffix", PACKERS)
@given(changes=CHANGES, kept=st.floats(0, 1))
def test_what_is_damaged_is_refused_or_read(suffix: str, changes: list[Change], kept: float) -> None:
    packed = PACKERS[suffix](bytes(range(256)) * 4)
    refused_or_read(lambda: compression.decompressed(f"a{suffix}", changed(packed, changes)))
    refused_or_read(lambda: compression.decompressed(f"a{suffix}", packed[: int(kept * len(packed))]))


# --- programs of this machine


LDD = st.from_regex(r"(\tlib[a-z]{1,5}\.so => /lib/[a-z]{0,9} \(0x[0-9a-fx]{1,9}\)\n){1,3}")


@given(told=st.text(max_size=200) | LDD)
def test_whatever_ldd_prints_libraries_have_absolute_paths(told: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(subprocess, "run", lambda *_, **__: subprocess.CompletedProcess([], 0, told, ""))
        try:
            assert all(path.startswith("/") for path in programs.shared_libraries("/bin/true"))
        except GuestError:
            assert "not found" in told


# --- apt


NAME = st.from_regex(
    r"linux-(image|modules|binary|base)-[0-9.]{0,9}[-+~0-9a-z]{0,12}-(cloud-amd64|amd64|generic|virtual)?",
    fullmatch=True,
)
NAMES = st.lists(NAME | st.text(max_size=30), max_size=8).map("\n".join)
TARGETS = st.lists(st.from_regex(r"Debian main [a-z:/. -]{0,30}|[A-Z][a-z]{0,9} .{0,20}", fullmatch=True), max_size=5)


def telling(patch: pytest.MonkeyPatch, status: int, out: str, err: str = "") -> None:
    """Let every program that `fetch` starts end with this."""
    patch.setattr(subprocess, "run", lambda *_, **__: subprocess.CompletedProcess([], status, out, err))
    patch.setattr(shutil, "which", lambda name: f"/usr/bin/{name}")


@given(told=NAMES, wanted=st.sampled_from(["6.1", "6.12", "6", "", "6.1.0-9-cloud-amd64"]) | st.text(max_size=9))
def test_whatever_apt_lists_a_chosen_package_is_a_kernel_that_was_listed(told: str, wanted: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        telling(patch, 0, told)
        chosen = fetch._Apt().best(wanted)
        if chosen is not None:
            assert set(fetch._parts(chosen, set(told.split()))) <= set(told.split())
        assert chosen is None or (chosen in told.split() and kernels.series_of(chosen.removeprefix("linux-image-")))
        for release in fetch.offered():
            assert f"linux-image-{release}" in told.split()


@given(told=TARGETS.map("\n".join) | st.text(max_size=200))
def test_whatever_apt_names_as_sources_mirrors_are_debians_or_there_are_none(told: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        telling(patch, 0, told)
        with suppress(GuestError):
            assert all(f"Debian main {mirror}" in told.splitlines() for mirror in fetch._debian_mirrors())


@given(status=st.integers(1, 255), err=st.text(max_size=200))
def test_an_apt_that_fails_is_told_of_with_what_it_said(status: int, err: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        telling(patch, status, "", err)
        with pytest.raises(GuestError, match="apt-cache pkgnames"):
            fetch.fetch("6.1")


def test_an_apt_that_never_ends_is_told_of(monkeypatch: pytest.MonkeyPatch) -> None:
    def wait(command: list[str], *_: object, timeout: float, **__: object) -> None:
        raise subprocess.TimeoutExpired(command, timeout)

    monkeypatch.setattr(subprocess, "run", wait)
    with pytest.raises(GuestError, match=r"apt-cache pkgnames linux-: not done within 300 s"):
        fetch._Apt().best("6.1")


# --- the emulator


def answered(sent: bytes) -> dict[str, Any]:
    """What a command returns if the emulator sends this and closes."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.sendall(sent)
        theirs.shutdown(socket.SHUT_WR)
        return Qmp(ours).execute("query-status", timeout_s=5)


@given(sent=JSON.map(lambda document: json.dumps(document).encode()) | st.binary(max_size=200))
def test_whatever_an_emulator_sends_is_an_answer_or_an_error(sent: bytes) -> None:
    with suppress(GuestError, ConnectionError):
        assert isinstance(answered(sent + b"\n"), dict)


@pytest.mark.parametrize("sent", [b"[" * 100_000, b'{"return": 1}', b'{"error": 7}', b"{}", b"no JSON", b"\xff\xfe"])
def test_an_emulator_that_talks_nonsense_is_told_of(sent: bytes) -> None:
    with pytest.raises(GuestError, match="QEMU"):
        answered(sent + b"\n")


@given(before=st.binary(max_size=50), after=st.binary(max_size=50), offset=st.integers(-(2**63), 2**63 - 1))
def test_a_states_clock_is_found_whatever_surrounds_it(before: bytes, after: bytes, offset: int) -> None:
    clock = b"\x0ctimer/icount\x00\x00\x00\x01"
    stream = before + clock + struct.pack(">qq", offset, 0) + after
    assert stopped_at(stream)[0] == offset
    assert with_fresh_instruction_count(stream) == stream


@given(stream=st.binary(max_size=300))
def test_any_bytes_are_no_state(stream: bytes) -> None:
    with pytest.raises(GuestError, match="saves virtual time"):
        stopped_at(stream)


# --- the agent


def receive(directory: Path, data: bytes) -> None:
    receiver = Receiver(directory, lambda *_: True)
    receiver.feed(HELLO + data)
    receiver.finish()


@given(kind=st.sampled_from([1, 3, 4]), document=JSON)
def test_any_document_of_an_agent_is_taken_or_refused(
    tmp_path_factory: pytest.TempPathFactory, kind: int, document: object
) -> None:
    payload = json.dumps(document).encode()
    with pytest.raises(EngineError):
        receive(tmp_path_factory.mktemp("tables"), frame(kind, payload))


@pytest.mark.parametrize(
    ("kind", "document"),
    [
        (1, {"now_ns": "soon", "duration_ns": 1}),
        (3, {"sampling": 1, "warnings": []}),
        (3, {"sampling": {"achieved_ns": None}, "warnings": []}),
        (3, {"sampling": {"achieved_ns": 1}, "warnings": "none"}),
        (4, {"kind": "system", "message": ["no", "text"]}),
    ],
)
def test_a_document_with_values_of_another_kind_is_refused(tmp_path: Path, kind: int, document: object) -> None:
    payload = json.dumps(document).encode()
    with pytest.raises(EngineError, match="malformed"):
        receive(tmp_path, frame(kind, payload))


def test_a_document_that_never_stops_nesting_is_refused(tmp_path: Path) -> None:
    payload = b"[" * 100_000
    with pytest.raises(EngineError, match="malformed"):
        receive(tmp_path, frame(1, payload))
