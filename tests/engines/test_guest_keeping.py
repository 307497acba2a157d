"""The files kept of built guests: reported with their size, and removed when nothing needs them any more."""

import json
import os
import time
from collections.abc import Callable
from pathlib import Path

import packages
import pytest
from laboratory import Answer
from packages import RELEASE

from bufferscope.engines.guest import cache, cache_gc, hardware, image, kernels, modules
from bufferscope.engines.guest.hardware import Qemu
from bufferscope.engines.guest.image import Image

QEMU = Qemu(Path("/usr/bin/qemu-system-x86_64"), "QEMU emulator version 7.2.0")
HOUR_S = 3600
MIB = 1 << 20


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(hardware, "find_qemu", lambda: QEMU)
    monkeypatch.setattr(kernels, "installed", list)
    files = {f"lib/modules/{RELEASE}/kernel/net/{name}.ko": packages.module() for name in modules.REQUIRED}
    package = tmp_path / f"linux-image-{RELEASE}_1_amd64.deb"
    kernels.adopt([packages.package(package, files | {f"boot/vmlinuz-{RELEASE}": b"a kernel"})])


def agent(directory: Path, version: str) -> Path:
    """An agent: any file that is not a program has no libraries."""
    path = directory / f"agent-{version}"
    path.write_text(f"#!/bin/sh\necho {version}\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def guest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[Image, Path]]:
    """Builds the image for a version of the agent, and saves a state of some size."""
    monkeypatch.setattr(image, "shared_libraries", lambda _: [])

    def make(version: str, *, hours_ago: float = 0, state_bytes: int = MIB) -> tuple[Image, Path]:
        built = image.build(kernels.choose(None), agent(tmp_path, version))
        state = cache.directory("states") / hardware.fingerprint(QEMU, built)
        state.write_bytes(b"x" * state_bytes)
        for path in (state, built.directory):
            used_s = time.time() - hours_ago * HOUR_S
            os.utime(path, (used_s, used_s))
        return built, state

    return make


Make = Callable[..., tuple[Image, Path]]


def test_everything_kept_is_told_with_its_kernel_and_size(guest: Make) -> None:
    built, state = guest("1", state_bytes=3 * MIB)
    of = {each.kind: each for each in cache_gc.kept()}
    assert {kind: each.path for kind, each in of.items()} == {"image": built.directory, "state": state}
    assert {each.release for each in of.values()} == {RELEASE}
    assert 3 * MIB <= of["state"].size_bytes < 3 * MIB + 64 * 1024  # whole blocks
    assert of["image"].size_bytes >= built.initrd.stat().st_size


def test_what_another_agent_left_behind_is_pruned_and_nothing_else(tmp_path: Path, guest: Make) -> None:
    old, new = guest("old"), guest("new")
    removed = cache_gc.prune(agent(tmp_path, "new"))
    assert {each.path for each in removed} == {old[0].directory, old[1]}
    assert {each.path for each in cache_gc.kept()} == {new[0].directory, new[1]}
    assert cache_gc.prune(agent(tmp_path, "new")) == []


def test_a_state_of_another_emulator_or_format_is_pruned(tmp_path: Path, guest: Make) -> None:
    built, state = guest("1")
    stranger = state.with_name("0123456789abcdef")
    stranger.write_bytes(b"a state")
    assert [(each.path, each.release) for each in cache_gc.prune(agent(tmp_path, "1"))] == [(stranger, None)]
    assert built.kernel.exists()
    assert state.exists()


def test_states_with_network_cards_are_kept_as_long_as_their_machine(tmp_path: Path, guest: Make) -> None:
    (_, old), (_, new) = guest("old"), guest("new")
    with_cards = [state.with_name(f"{state.name}-0123456789abcdef") for state in (old, new)]
    for state in with_cards:
        state.write_bytes(b"a state")
    removed = {each.path for each in cache_gc.prune(agent(tmp_path, "new"))}
    assert with_cards[0] in removed
    assert with_cards[1] not in removed
    assert {each.release for each in cache_gc.kept() if each.path == with_cards[1]} == {RELEASE}


def test_what_was_used_longest_ago_makes_room(guest: Make) -> None:
    guests = {age: guest(f"{age}", hours_ago=age, state_bytes=4 * MIB) for age in (5, 3, 2)}
    size_bytes = sum(each.size_bytes for each in cache_gc.kept())
    assert cache_gc.prune_beyond(size_bytes) == []
    removed = {each.path for each in cache_gc.prune_beyond(size_bytes - 4 * MIB - 64 * 1024)}
    assert removed == {guests[5][0].directory, guests[5][1]}


def test_what_may_be_in_use_never_makes_room(guest: Make) -> None:
    guest("1", hours_ago=0.5)
    assert cache_gc.prune_beyond(0) == []


def test_rests_of_a_build_go_once_nobody_can_be_at_it(tmp_path: Path, guest: Make) -> None:
    guest("1")
    rests = [cache.directory(kind) / f".partial-{kind}" for kind in ("images", "states")]
    for rest in rests:
        rest.touch()
    assert cache_gc.prune(agent(tmp_path, "1")) == []
    for rest in rests:
        os.utime(rest, (time.time() - 2 * HOUR_S,) * 2)
    assert {each.path for each in cache_gc.prune(agent(tmp_path, "1"))} == set(rests)


def test_using_an_image_makes_it_the_last_to_go(guest: Make) -> None:
    built, _ = guest("1", hours_ago=9)
    cache.used(built.directory)
    assert time.time() - built.directory.stat().st_mtime < HOUR_S


def test_the_commands_show_and_prune(
    cli: Callable[..., Answer], tmp_path: Path, guest: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    guest("old")
    built, state = guest("new")
    monkeypatch.setenv("BUFFERSCOPE_AGENT", str(agent(tmp_path, "new")))
    shown = json.loads(cli("guest", "list", "--json").out)
    assert len(shown["kept"]) == 4
    assert shown["kernels"][0]["state"] == "ready"
    assert "Removed, " in cli("guest", "prune").out
    left = json.loads(cli("guest", "list", "--json").out)["kept"]
    assert {each["path"] for each in left} == {str(built.directory), str(state)}
    assert "Nothing to remove" in cli("guest", "prune").out
    assert "MiB" in cli("guest", "list").out
