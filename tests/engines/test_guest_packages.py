"""Kernels whose parts are in several packages, as Debian packages Linux 7, and the packages that apt fetches."""

import lzma
import re
from pathlib import Path

import packages
import pytest
from packages import NET, NEWER, RELEASE

from bufferscope.engines.guest import fetch, kernels, modules
from bufferscope.engines.guest.errors import GuestError

NEWER_RE = re.escape(NEWER)


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def test_a_kernel_in_parts_is_read_and_a_package_without_a_part_is_left_out(tmp_path: Path) -> None:
    given = packages.kernel_parts(tmp_path)
    adopted = kernels.adopt(given.values())
    assert (adopted.release, adopted.series, adopted.image()) == (NEWER, "7.3", b"a newer kernel")
    names = {package.name for package in adopted.packages}
    assert names == {given[part].name for part in ("binary", "modules", "base")}
    assert kernels.choose("7.3") == kernels.choose(NEWER) == adopted
    selection = modules.select(adopted.files, NEWER)
    assert selection.builtin == ("tcp_cubic",)
    ring = next(module for module in selection.modules if module.name == "virtio_ring")
    assert ring.content == packages.module()


@pytest.mark.parametrize(
    ("parts", "says"),
    [
        (["image"], rf"found none; if this .* give linux-binary-{NEWER_RE}, linux-modules-{NEWER_RE}, linux-base-"),
        (["binary", "base"], rf"no modules of {NEWER_RE}: give linux-modules-{NEWER_RE}, too"),
        (["binary", "modules"], rf"no list of its built-in modules: give linux-base-{NEWER_RE}, too"),
        (["modules", "base"], r"expected one kernel .*, found none"),
    ],
)
def test_a_missing_part_of_a_kernel_is_named_and_nothing_is_kept(tmp_path: Path, parts: list[str], says: str) -> None:
    given = packages.kernel_parts(tmp_path)
    with pytest.raises(GuestError, match=says):
        kernels.adopt(given[part] for part in parts)
    assert kernels.fetched() == []


def test_a_damaged_compressed_module_is_refused_by_its_name(tmp_path: Path) -> None:
    files = packages.kernel_files() | {f"{NET}/virtio-ring.ko.xz": lzma.compress(packages.module())[:-20]}
    kernel = kernels.from_packages([packages.package(tmp_path / "k.deb", files)])
    with pytest.raises(GuestError, match=r"virtio-ring\.ko\.xz is truncated"):
        modules.select(kernel.files, RELEASE)


def test_two_kernels_in_packages_are_refused(tmp_path: Path) -> None:
    path = packages.package(tmp_path / f"linux-image-{RELEASE}_1_amd64.deb", packages.kernel_files())
    both = [path, *packages.kernel_parts(tmp_path).values()]
    with pytest.raises(GuestError, match=rf"expected one kernel .*, found {RELEASE}, {NEWER_RE}"):
        kernels.from_packages(both)


def test_a_kernel_installed_beside_its_modules_is_found(tmp_path: Path) -> None:
    path = tmp_path / "lib/modules" / NEWER / "kernel/net/veth.ko"
    path.parent.mkdir(parents=True)
    path.write_bytes(packages.module())
    assert kernels.installed(tmp_path) == []
    (tmp_path / "lib/modules" / NEWER / "vmlinuz").write_bytes(b"a kernel")
    (kernel,) = kernels.installed(tmp_path)
    assert (kernel.release, kernel.image()) == (NEWER, b"a kernel")


def apt_that_knows(monkeypatch: pytest.MonkeyPatch, names: list[str]) -> None:
    """Let apt's lists have these packages of Linux, and no others."""
    monkeypatch.setattr(fetch._Apt, "run", lambda *_, **__: "\n".join(names))


def test_the_parts_of_a_kernel_are_fetched_together(monkeypatch: pytest.MonkeyPatch) -> None:
    parts = [f"linux-{part}-{NEWER}" for part in ("image", "binary", "modules", "base")]
    apt_that_knows(monkeypatch, parts)
    assert fetch._Apt().best("7.3") == f"linux-image-{NEWER}"
    assert fetch._parts(f"linux-image-{NEWER}", set(parts)) == parts[1:]
    # A suite may still have some part of a kernel that it had; Debian's backports do.
    for missing in parts[2:]:
        apt_that_knows(monkeypatch, [name for name in parts if name != missing])
        assert fetch._Apt().best("7.3") is None
        assert fetch._Apt().offered() == []


def test_ubuntus_further_modules_are_fetched_with_the_kernel() -> None:
    release = "6.8.0-31-generic"
    known = {f"linux-{part}-{release}" for part in ("image", "modules", "modules-extra")}
    assert set(fetch._parts(f"linux-image-{release}", known)) == known


@pytest.mark.parametrize(
    ("wanted", "suite"),
    [
        ("6.1", "bookworm"),
        ("6.12.38+deb13-cloud-amd64", "trixie"),
        ("6.17", "trixie-backports"),
        ("7.3", "trixie-backports"),
    ],
)
def test_a_kernel_is_fetched_from_the_release_of_debian_that_has_it(wanted: str, suite: str) -> None:
    assert fetch._suite(wanted) == suite


@pytest.mark.parametrize("wanted", ["5.10", "6.6", "6", "newest", ""])
def test_no_release_of_debian_is_asked_for_a_kernel_that_none_has(wanted: str) -> None:
    assert fetch._suite(wanted) is None
