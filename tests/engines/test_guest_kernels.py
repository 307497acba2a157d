"""Kernels, found in packages and on the machine, and their modules in the order in which they can be loaded."""

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import packages
import pytest
from packages import NET, RELEASE

from bufferscope.engines.guest import build, cache, fetch, image, kernels, modules
from bufferscope.engines.guest.errors import GuestError
from bufferscope.engines.guest.files import DirectoryFiles, PackageFiles


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.mark.parametrize("compress", [True, False])
def test_a_package_is_read_as_dpkg_would(tmp_path: Path, compress: bool) -> None:
    path = packages.package(tmp_path / "k.deb", {"boot/a": b"1", "usr/lib/modules/b": b"22"}, compress=compress)
    files = PackageFiles([path])
    assert {name: files.read(name) for name in files.names()} == {"boot/a": b"1", "lib/modules/b": b"22"}


@pytest.mark.parametrize("kept", [3, 60, 70, 200, -40])
def test_a_package_cut_short_is_refused_by_name(tmp_path: Path, kept: int) -> None:
    path = packages.package(tmp_path / "k.deb", {"boot/a": b"1" * 500}, compress=False)
    path.write_bytes(path.read_bytes()[:kept])
    with pytest.raises(GuestError, match=r"k\.deb"):
        PackageFiles([path])


def test_modules_come_after_what_they_depend_on(tmp_path: Path) -> None:
    files = PackageFiles([packages.package(tmp_path / "k.deb", packages.kernel_files())])
    selection = modules.select(files, RELEASE)
    order = [module.name for module in selection.modules]
    assert order.index("virtio_ring") < order.index("virtio") < order.index("virtio_console")
    assert "unwanted" not in order
    assert selection.builtin == ("tcp_cubic",)
    assert "sch_codel" in selection.missing


def test_modules_are_decompressed_for_the_guest(tmp_path: Path) -> None:
    files = PackageFiles([packages.package(tmp_path / "k.deb", packages.kernel_files())])
    ring = next(module for module in modules.select(files, RELEASE).modules if module.name == "virtio_ring")
    assert ring.content == packages.module()


def test_soft_dependencies_are_loaded_before_and_not_after() -> None:
    content = packages.module(depends="a", softdep="pre: b-c d post: e")
    assert modules.dependencies(content, "m.ko") == ["a", "b_c", "d"]


def test_a_kernel_without_a_required_module_is_refused_by_its_name(tmp_path: Path) -> None:
    files = packages.kernel_files()
    del files[f"{NET}/sch_netem.ko"]
    with pytest.raises(GuestError, match=rf"{RELEASE} has no sch_netem"):
        modules.select(PackageFiles([packages.package(tmp_path / "k.deb", files)]), RELEASE)


@pytest.mark.parametrize("content", [b"", b"\x7fELF\x01\x01", packages.module()[:90]])
def test_what_is_no_module_is_refused(content: bytes) -> None:
    with pytest.raises(GuestError, match=r"m\.ko is not a kernel module"):
        modules.dependencies(content, "m.ko")


def test_a_given_package_is_kept_and_found_by_series_and_release(tmp_path: Path) -> None:
    path = packages.package(tmp_path / f"linux-image-{RELEASE}_6.1.9-1_amd64.deb", packages.kernel_files())
    adopted = kernels.adopt([path])
    path.unlink()
    assert kernels.choose(None) == kernels.choose("6.1") == kernels.choose(RELEASE) == adopted
    assert adopted.image() == b"a kernel"


def test_a_kernel_is_the_same_in_whatever_order_its_packages_are_given(tmp_path: Path) -> None:
    """A fetched kernel has them in apt's order, and one that is found later in the order of their names."""
    one = packages.package(tmp_path / "one.deb", {"boot/a": b"1"})
    other = packages.package(tmp_path / "other.deb", {"boot/b": b"2"})
    both = kernels.Kernel(RELEASE, (one, other)).identity()
    assert both == kernels.Kernel(RELEASE, (other, one)).identity()
    assert both != kernels.Kernel(RELEASE, (one,)).identity()


def test_the_newest_of_a_series_is_chosen() -> None:
    known = [kernels.Kernel(f"6.1.0-{n}-cloud-amd64", (Path(f"{n}.deb"),)) for n in (9, 56, 10)]
    chosen = kernels.matching("6.1", known)
    assert chosen is not None
    assert chosen.release == "6.1.0-56-cloud-amd64"
    assert kernels.matching("6.12", known) is None


def test_a_missing_kernel_is_told_with_the_command_that_brings_it() -> None:
    with pytest.raises(GuestError, match=r"no kernel 4\.4 available .*`bufferscope guest build --kernel 4\.4`"):
        kernels.choose("4.4")


def test_an_installed_kernel_is_found_and_its_identity_follows_its_modules(tmp_path: Path) -> None:
    for name, content in packages.kernel_files().items():
        path = tmp_path / "root" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    (kernel,) = kernels.installed(tmp_path / "root")
    assert kernel.release == RELEASE
    assert DirectoryFiles(tmp_path / "root").names() == kernel.files.names()
    before = kernel.identity()
    (tmp_path / "root" / NET / "virtio.ko").write_bytes(b"another")
    assert kernel.identity() != before


def test_what_several_need_at_once_is_fetched_and_built_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels, "installed", list)
    monkeypatch.setattr(image, "shared_libraries", lambda _: [])
    package = packages.package(tmp_path / f"linux-image-{RELEASE}_1_amd64.deb", packages.kernel_files())
    program = tmp_path / "agent"
    program.write_bytes(b"an agent")
    notes: list[str] = []

    def note(words: str) -> None:
        notes.append(words)
        time.sleep(0.2)  # time for the others to find nothing, too

    def make(_: int) -> image.Image:
        return image.build(build.kernel(RELEASE, note), program, note)

    monkeypatch.setattr(fetch, "fetch", lambda _: kernels.adopt([package]))
    with ThreadPoolExecutor(3) as pool:
        assert len(set(pool.map(make, range(3)))) == 1
    assert notes == [f"fetching Linux {RELEASE}", f"building a guest with Linux {RELEASE}"]


def test_a_directory_that_is_not_filled_to_the_end_does_not_appear(tmp_path: Path) -> None:
    target = tmp_path / "images" / "x"

    def fill() -> None:
        with cache.new_directory(target) as partial:
            (partial / "half").touch()
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fill()
    assert list(target.parent.iterdir()) == []
