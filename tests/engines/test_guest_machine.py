"""The parts of a guest that need no QEMU: its archive, its control protocol, its saved clock."""

import json
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from bufferscope.engines.guest.errors import GuestError
from bufferscope.engines.guest.hardware import Channels
from bufferscope.engines.guest.initramfs import Initramfs
from bufferscope.engines.guest.process import Process
from bufferscope.engines.guest.qmp import Qmp
from bufferscope.engines.guest.state import going_on, stopped_at, with_fresh_instruction_count

CLOCK = b"\x0ctimer/icount\x00\x00\x00\x01"
DOING = b"\x0bglobalstate\x00\x00\x00\x00\x00\x00\x00\x01"


def entries(archive: bytes) -> Iterator[tuple[str, int, bytes]]:
    """Name, mode and content of what a newc archive holds, read as the kernel's documentation describes it."""
    offset = 0
    while True:
        assert offset % 4 == 0
        assert archive[offset : offset + 6] == b"070701"
        fields = [int(archive[offset + 6 + 8 * i : offset + 14 + 8 * i], 16) for i in range(13)]
        mode, size, name_bytes = fields[1], fields[6], fields[11]
        name = archive[offset + 110 : offset + 110 + name_bytes - 1].decode()
        start = (offset + 110 + name_bytes + 3) // 4 * 4
        if name == "TRAILER!!!":
            return
        yield name, mode, archive[start : start + size]
        offset = (start + size + 3) // 4 * 4


def test_an_archive_holds_what_was_put_in_with_directories_first() -> None:
    root = Initramfs()
    root.file("/usr/sbin/ip", b"program", executable=True)
    root.file("/etc/x", b"12345")
    root.symlink("/lib", "usr/lib")
    found = list(entries(root.archive()))
    assert [name for name, _, _ in found] == ["etc", "etc/x", "lib", "usr", "usr/sbin", "usr/sbin/ip"]
    assert {name: (oct(mode), content) for name, mode, content in found if content} == {
        "etc/x": ("0o100644", b"12345"),
        "lib": ("0o120777", b"usr/lib"),
        "usr/sbin/ip": ("0o100755", b"program"),
    }


def test_an_archive_is_the_same_bytes_in_whatever_order_it_was_filled() -> None:
    one, other = Initramfs(), Initramfs()
    for name in ("a", "b/c"):
        one.file(name, name.encode())
    for name in ("b/c", "a"):
        other.file(name, name.encode())
    assert one.archive() == other.archive()


@pytest.fixture
def emulator() -> Iterator[Callable[[list[dict[str, Any]]], Qmp]]:
    """A client whose other side sends these messages after each command."""
    ours, theirs = socket.socketpair()
    threads: list[threading.Thread] = []

    def start(answers: list[dict[str, Any]]) -> Qmp:
        def serve() -> None:
            for answer in answers:
                if "event" not in answer:
                    theirs.recv(65536)
                theirs.sendall(json.dumps(answer).encode() + b"\r\n")

        threads.append(threading.Thread(target=serve))
        threads[0].start()
        return Qmp(ours)

    yield start
    for thread in threads:
        thread.join()
    ours.close()
    theirs.close()


def test_events_that_precede_a_reply_are_kept(emulator: Callable[..., Qmp]) -> None:
    qmp = emulator([{"event": "RESET"}, {"event": "STOP"}, {"return": {"status": "paused"}}])
    assert qmp.execute("query-status") == {"status": "paused"}
    assert qmp.wait_for("STOP", timeout_s=5) == {"event": "STOP"}


def test_a_refused_command_tells_what_qemu_said(emulator: Callable[..., Qmp]) -> None:
    with pytest.raises(GuestError, match="refused migrate: no such file"):
        emulator([{"error": {"class": "GenericError", "desc": "no such file"}}]).execute("migrate")


def test_a_silent_emulator_is_not_waited_for_without_end(emulator: Callable[..., Qmp]) -> None:
    with pytest.raises(TimeoutError):
        emulator([]).wait_for("STOP", timeout_s=0.05)


def test_a_saved_clock_stays_the_same_when_its_instructions_start_anew() -> None:
    stream = b"before" + CLOCK + struct.pack(">qq", 77, 5_000_000_000) + b"after"
    fresh = with_fresh_instruction_count(stream)
    assert fresh == b"before" + CLOCK + struct.pack(">qq", 5_000_000_077, 0) + b"after"
    assert stopped_at(stream)[0] == 77


@pytest.mark.parametrize("stream", [b"no clock", (CLOCK + bytes(16)) * 2])
def test_a_state_without_exactly_one_clock_is_refused(stream: bytes) -> None:
    with pytest.raises(GuestError, match="saves virtual time in an unknown form"):
        with_fresh_instruction_count(stream)


def test_a_saved_machine_that_was_stopped_goes_on_when_it_is_restored() -> None:
    def doing(what: bytes) -> bytes:
        return DOING + struct.pack(">I", len(what) + 1) + what.ljust(100, b"\0")

    assert going_on(b"before" + doing(b"paused") + b"\0after") == b"before" + doing(b"running") + b"\0after"


@pytest.mark.parametrize("stream", [b"nothing", DOING + b"\0\0\0\7paused", (DOING + bytes(104)) * 2])
def test_a_state_that_does_not_say_what_the_machine_was_doing_is_refused(stream: bytes) -> None:
    with pytest.raises(GuestError, match="what the machine was doing in an unknown form"):
        going_on(stream)


@pytest.mark.parametrize(("said", "fails"), [("Oops: 0000 [#1] PREEMPT SMP", True), ("hello [1]", False)])
def test_a_kernel_that_fails_ends_the_run(said: str, fails: bool) -> None:
    """Its first process would be killed, and the machine idle for ever."""

    def machine(channels: Channels) -> list[str]:
        wait = "exec sleep 600" if fails else "sleep 0.3"
        return ["bash", "-c", f"printf '%s' '{said[:12]}' >&{channels.console}; sleep 0.2; "
                f"printf '%s' '{said[12:]}' >&{channels.console}; {wait}"]  # fmt: skip

    with Process(b"", machine) as process:
        if fails:
            with pytest.raises(GuestError, match=r"(?s)the guest's kernel failed.*PREEMPT"):
                list(process.turns())
        else:
            assert list(process.turns())
            assert process.status == 0
