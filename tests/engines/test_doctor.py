"""`doctor` on machines that lack something: programs missing from PATH, settings in files, an agent in shell."""

import json
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

import pytest

from bufferscope.engines import agent
from bufferscope.engines.doctor.examining import examine
from bufferscope.engines.doctor.findings import EngineCheck, EngineDiagnosis
from bufferscope.engines.doctor.system import System
from bufferscope.engines.guest import programs

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the kernel engines are Linux'")

KERNEL = "6.1.0-9-generic"
DEBIAN = 'PRETTY_NAME="Debian"\nID=debian\n'
UBUNTU = 'ID=ubuntu\nID_LIKE="debian"\n'
EVERYTHING = ("htb", "pfifo", "bfifo", "red", "codel", "netem")
PRIVILEGE = "cannot make network namespaces: not root, and this kernel refuses unprivileged user namespaces"


@pytest.fixture
def bin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only directory in which programs are found, with ip, tc and ethtool; no agent or kernel is available."""
    directory = tmp_path / "bin"
    directory.mkdir()
    monkeypatch.setenv("PATH", str(directory))
    monkeypatch.setattr(programs, "SBIN", "")
    monkeypatch.setenv(agent.VARIABLE, str(tmp_path / "agent"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("BUFFERSCOPE_QEMU", raising=False)
    for name in ("ip", "tc", "ethtool"):
        program(directory / name, "")
    return directory


def program(path: Path, script: str) -> None:
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def system(root: Path, os_release: str = DEBIAN, *, lists: bool = True, root_user: bool = False) -> System:
    """A system of that distribution below `root`."""
    files = {"etc/os-release": os_release, "var/lib/apt/lists/mirror_Packages": "" if lists else None}
    for name, content in files.items():
        if content is not None:
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content)
    return System(root, is_root=root_user, kernel=KERNEL)


def fake_agent(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    has: tuple[str, ...] = EVERYTHING,
    privilege: str = "user-namespace",
    fails: str = "",
    congestion: Mapping[str, bool] = MappingProxyType({"reno": True, "cubic": True}),
) -> None:
    """An agent whose kernel has these queueing disciplines, or that fails with this message."""
    qdiscs = {name: name in has for name in EVERYTHING}
    found = {"kernel": KERNEL, "privilege": privilege, "qdiscs": qdiscs, "congestion": dict(congestion)}
    script = f"echo 'bufferscope-agent: {fails}' >&2; exit 1" if fails else f"echo '{json.dumps(found)}'"
    program(tmp_path / "agent", script)
    monkeypatch.setattr("bufferscope.engines.doctor.programs._is_for_x86_64", lambda _: True)


def diagnosis(engine: str, system: System) -> EngineDiagnosis:
    return next(each for each in examine(system) if each.engine == engine)


def check(diagnosis: EngineDiagnosis, what: str) -> EngineCheck:
    return next(check for check in diagnosis.checks if check.what == what)


def test_a_bare_debian_is_told_one_command_that_brings_everything(tmp_path: Path, bin: Path) -> None:
    for name in ("ip", "tc", "ethtool"):
        (bin / name).unlink()
    found = diagnosis("guest", system(tmp_path))
    assert found.state == "missing"
    assert found.install is not None
    assert found.install.startswith("sudo apt-get install --yes qemu-system-x86 iproute2 ethtool && make -C ")
    assert {check.what for check in found.checks if check.state == "missing"} == {
        *("QEMU", "agent", "ip", "tc", "ethtool", "kernel")
    }


def test_root_needs_no_sudo_and_a_system_without_package_lists_gets_them_first(tmp_path: Path, bin: Path) -> None:
    found = diagnosis("guest", system(tmp_path, lists=False, root_user=True))
    assert found.install is not None
    assert found.install.startswith("apt-get update && apt-get install --yes qemu-system-x86 && ")


@pytest.mark.parametrize(
    ("os_release", "install"),
    [
        (UBUNTU, "sudo apt-get install --yes iproute2"),
        ("ID=linuxmint\nID_LIKE='ubuntu debian'\n", "sudo apt-get install --yes iproute2"),
        ("ID=fedora\n", "sudo dnf install --assumeyes iproute iproute-tc"),
        ("ID=arch\n", "sudo pacman -S --needed --noconfirm iproute2"),
        ('ID="opensuse-tumbleweed"\nID_LIKE="opensuse suse"\n', "sudo zypper --non-interactive install iproute2"),
        ("ID=alpine\n", "sudo apk add iproute2"),
    ],
)
def test_each_distribution_has_its_command(
    tmp_path: Path, bin: Path, monkeypatch: pytest.MonkeyPatch, os_release: str, install: str
) -> None:
    fake_agent(tmp_path, monkeypatch)
    (bin / "tc").unlink()
    found = diagnosis("host", system(tmp_path, os_release))
    assert found.install == install
    assert check(found, "tc").state == "missing"
    assert check(found, "kernel").state == "missing", "without tc nothing can be tried out"


@pytest.mark.parametrize("os_release", ["", "ID=unheard-of\n"])
def test_an_unknown_distribution_is_told_the_packages(
    tmp_path: Path, bin: Path, monkeypatch: pytest.MonkeyPatch, os_release: str
) -> None:
    fake_agent(tmp_path, monkeypatch)
    (bin / "ip").unlink()
    found = diagnosis("host", system(tmp_path, os_release))
    assert (found.install, found.by_hand) == (None, ("iproute2",))


def test_a_kernel_that_has_everything_is_ready(tmp_path: Path, bin: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_agent(tmp_path, monkeypatch)
    found = diagnosis("host", system(tmp_path))
    assert (found.state, found.install) == ("ready", None)
    assert check(found, "permission").details == "an ordinary user's, in user namespaces"


def test_a_kernel_without_a_discipline_is_limited_and_told_whether_it_can_be_loaded(
    tmp_path: Path, bin: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_agent(tmp_path, monkeypatch, has=("htb", "pfifo", "bfifo", "codel"))
    modules = tmp_path / "lib/modules" / KERNEL / "modules.dep"
    modules.parent.mkdir(parents=True)
    modules.write_text("kernel/net/sched/sch_red.ko.xz:\nkernel/drivers/net/veth.ko:\n")
    found = diagnosis("host", system(tmp_path))
    assert found.state == "limited"
    assert found.install == "sudo modprobe sch_red"
    assert check(found, "sch_netem").details.endswith("no such module is installed")
    ubuntu = diagnosis("host", system(tmp_path, UBUNTU))
    assert ubuntu.install == (
        f"sudo apt-get install --yes linux-modules-extra-{KERNEL} && sudo modprobe sch_red && sudo modprobe sch_netem"
    )


def test_a_congestion_control_that_is_missing_is_a_module_of_tcp(
    tmp_path: Path, bin: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    modules = tmp_path / "lib/modules" / KERNEL / "modules.dep"
    modules.parent.mkdir(parents=True)
    modules.write_text("kernel/net/ipv4/tcp_dctcp.ko.xz:\n")
    fake_agent(tmp_path, monkeypatch, congestion={"reno": True, "dctcp": False, "vegas": False})
    found = diagnosis("host", system(tmp_path))
    assert found.install == "sudo modprobe tcp_dctcp"
    assert check(found, "tcp_vegas").details.startswith("experiments with vegas are refused")


def test_a_kernel_without_a_shaper_cannot_carry_anything(
    tmp_path: Path, bin: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_agent(tmp_path, monkeypatch, has=("pfifo", "bfifo"))
    found = diagnosis("host", system(tmp_path))
    assert found.state == "missing"
    assert "use --engine guest" in check(found, "sch_htb").details


@pytest.mark.parametrize(
    ("setting", "value", "install"),
    [
        ("kernel/unprivileged_userns_clone", 0, "sudo sysctl -w kernel.unprivileged_userns_clone=1"),
        (
            "kernel/apparmor_restrict_unprivileged_userns",
            1,
            "sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0",
        ),
        ("user/max_user_namespaces", 0, "sudo sysctl -w user.max_user_namespaces=15000"),
        ("user/max_user_namespaces", 1000, None),
    ],
)
def test_what_refuses_user_namespaces_is_told_with_what_allows_them(
    tmp_path: Path, bin: Path, monkeypatch: pytest.MonkeyPatch, setting: str, value: int, install: str | None
) -> None:
    fake_agent(tmp_path, monkeypatch, fails=PRIVILEGE)
    path = tmp_path / "proc/sys" / setting
    path.parent.mkdir(parents=True)
    path.write_text(f"{value}\n")
    found = diagnosis("host", system(tmp_path))
    assert (found.state, found.install) == ("missing", install)
    assert check(found, "permission").details == PRIVILEGE


def test_an_agent_that_answers_nonsense_is_an_error_and_no_crash(
    tmp_path: Path, bin: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_agent(tmp_path, monkeypatch)
    program(tmp_path / "agent", "echo '{'")
    found = diagnosis("host", system(tmp_path))
    assert "not JSON" in check(found, "permission").details


@pytest.mark.parametrize(
    ("version", "accelerators", "state"),
    [
        ("QEMU emulator version 7.2.22 (Debian 1:7.2)", "kvm tcg", "ready"),
        ("QEMU emulator version 10.0.2", "tcg", "ready"),
        ("QEMU emulator version 6.2.0", "tcg", "limited"),
        ("QEMU emulator version 9.1.0 (qemu-kvm)", "kvm", "missing"),
        ("something", "tcg", "limited"),
    ],
)
def test_the_emulator_is_asked_for_its_version_and_for_what_makes_virtual_time(
    tmp_path: Path, bin: Path, version: str, accelerators: str, state: str
) -> None:
    program(bin / "qemu-system-x86_64", f'[ "$1" = --version ] && echo "{version}" || echo "{accelerators}"')
    assert check(diagnosis("guest", system(tmp_path)), "QEMU").state == state


def test_a_kernel_to_be_fetched_or_given_is_told(tmp_path: Path, bin: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bufferscope.engines.guest.kernels.installed", list)
    without_apt = diagnosis("guest", system(tmp_path))
    assert "no kernel 6.1 available" in check(without_apt, "kernel").details
    assert "guest build" not in (without_apt.install or "")
    program(bin / "apt-cache", "echo linux-image-6.1.0-9-cloud-amd64")
    program(bin / "apt-get", "")
    with_apt = diagnosis("guest", system(tmp_path))
    assert (with_apt.install or "").endswith(" && bufferscope guest build")


def test_packages_of_ubuntu_need_zstd(tmp_path: Path, bin: Path) -> None:
    package = tmp_path / "cache/bufferscope/guest/packages" / f"linux-image-{KERNEL}_1_amd64.deb"
    package.parent.mkdir(parents=True)
    member = f"{'debian-binary':<16}{0:<12}{0:<6}{0:<6}{'100644':<8}{4:<10}`\n2.0\n{'control.tar.zst':<16}"
    package.write_bytes(f"!<arch>\n{member}".encode())
    found = diagnosis("guest", system(tmp_path, UBUNTU))
    assert KERNEL in check(found, "kernel").details
    assert "zstd" in (found.install or "")
    program(bin / "zstd", "")
    assert "zstd" not in (diagnosis("guest", system(tmp_path, UBUNTU)).install or "")


def test_a_program_for_another_processor_is_no_agent(tmp_path: Path, bin: Path) -> None:
    shutil.copy(sys.executable, tmp_path / "agent")
    for_arm = bytearray((tmp_path / "agent").read_bytes())
    for_arm[18] = 183
    (tmp_path / "agent").write_bytes(for_arm)
    found = diagnosis("host", system(tmp_path))
    assert check(found, "agent").details.endswith("is not a program for x86-64 Linux")


def test_a_cache_that_may_not_be_written_or_has_no_room_is_told(
    tmp_path: Path, bin: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.access", lambda path, mode: "cache" not in str(path) and Path(path).exists())
    (tmp_path / "cache").mkdir()
    assert "is not writable" in check(diagnosis("guest", system(tmp_path)), "cache").details
    monkeypatch.undo()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr("bufferscope.engines.guest.doctor.ROOM_BYTES", 1 << 60)
    assert "has room for" in check(diagnosis("guest", system(tmp_path)), "cache").details
