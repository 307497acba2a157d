"""`bufferscope shell --engine guest`: programs in a virtual machine's hosts."""

import signal
import time
from pathlib import Path

import polars as pl
import pytest
from guests import build_guest, busy_machine
from laboratory import IDLE, SMALL, write
from shells import call, words
from terminal import COLUMNS, ROWS, Terminal

import bufferscope as bs

pytestmark = pytest.mark.guest

GUEST = ("--engine", "guest")
TWO_PATHS = """\
title = "A full queue, and hosts that have nothing to do with it"
duration = "3s"
link = [
  { name = "access", ends = ["h1", "r1"] },
  { name = "line", ends = ["r1", "h2"], rate = "50mbit", delay = "10ms" },
  { name = "quiet", ends = ["h3", "h4"], rate = "50mbit", delay = "10ms" },
]
traffic = [{ name = "bulk", kind = "tcp", from = "h1", to = "h2" }]
"""
PATIENCE_S = 300
"""The first test makes the guest."""


@pytest.fixture(scope="session")
def _kernel() -> None:
    build_guest()


@pytest.fixture(autouse=True)
def _ready(tmp_path: Path, _kernel: None) -> None:
    write(tmp_path, SMALL)


def test_output_errors_and_status_are_the_programs(tmp_path: Path) -> None:
    script = "echo out; echo err >&2; cat; hostname; exit 7"
    done = call(tmp_path, *GUEST, "--quiet", command=("sh", "-c", script), given="unread\n", patience_s=PATIENCE_S)
    assert (done.returncode, done.stdout, done.stderr) == (7, "out\nh1\n", "err\n")


def test_a_signal_is_told_as_shells_do(tmp_path: Path) -> None:
    done = call(tmp_path, *GUEST, "--quiet", command=("sh", "-c", "kill -TERM $$"), patience_s=PATIENCE_S)
    assert done.returncode == 128 + signal.SIGTERM


def test_programs_meet_the_experiments_path_in_virtual_time(tmp_path: Path) -> None:
    began = time.monotonic()
    done = call(tmp_path, *GUEST, command=("ping", "-q", "-c", "100", "-i", "1", "h2"), patience_s=PATIENCE_S)
    assert time.monotonic() - began < 99, "nobody waits for a guest that waits"
    assert "100 received, 0% packet loss, time 99" in done.stdout
    shortest, mean = (float(part) for part in done.stdout.split(" = ")[1].split("/")[:2])
    # 10 ms there and 10 ms back, and 98 bytes at 10 Mbit/s.
    assert 20.07 < shortest <= mean < 20.5
    assert "this is h1 of h1 10.0.0.1, h2 10.0.0.2" in done.stderr


def test_ping_of_iputils_sends_when_the_engines_say_that_it_does(tmp_path: Path) -> None:
    # Without a delay each answer comes at once, and the program waits in ticks; with one, in milliseconds.
    for delay in ("0ms", "10ms"):
        text = IDLE.replace('"2s"', '"21s"').replace('"10ms"', f'"{delay}"') + 'timing = "iputils"\n'
        path = write(tmp_path, text)
        command = ("ping", "-q", "-i", "0.1", "-w", "20", "h2")
        done = call(tmp_path, *GUEST, "--quiet", command=command, patience_s=PATIENCE_S)
        real = int(done.stdout.split(" packets transmitted")[0].split()[-1])
        for engine in ("sim", "guest"):
            probes = bs.run(path, engine=engine, out=tmp_path / f"out-{delay}").probes
            sent = probes.filter(pl.col("sent_ns") < 20_000_000_000).height
            assert abs(sent - real) <= 1, f"{engine}, {delay}: {sent}, and ping itself {real}"


def test_the_same_command_does_the_same_whatever_else_the_machine_does(tmp_path: Path) -> None:
    command = ("sh", "-c", "ping -c 3 -i 0.1 h2; cat /proc/uptime; tc -s qdisc show dev to-h2")

    def once(*more: str) -> str:
        return call(tmp_path, *GUEST, *more, "--quiet", "--with-traffic", command=command, patience_s=PATIENCE_S).stdout

    alone = once()
    with busy_machine():
        loaded = once()
    assert "3 received" in alone
    assert alone == loaded
    assert once("--seed", "2") != alone


def test_commands_beside_the_program_run_on_their_hosts(tmp_path: Path) -> None:
    beside = "h2=sh -c 'iperf3 -s -1 > /tmp/server'"
    command = ("sh", "-c", "iperf3 -c h2 -t 2 > /tmp/client && sleep 1 && cat /tmp/server")
    done = call(tmp_path, *GUEST, "--quiet", "--with", beside, command=command, patience_s=PATIENCE_S)
    assert "receiver" in done.stdout
    assert done.returncode == 0


def test_programs_that_compute_hold_up_no_packets(tmp_path: Path) -> None:
    write(tmp_path, TWO_PATHS)
    beside = ("--with", "r1=tcpdump -i any -n", "--with", "h2=sh -c 'while :; do :; done'")
    command = ("ping", "-q", "-c", "100", "-i", "0.005", "h4")
    done = call(tmp_path, *GUEST, "--with-traffic", *beside, command=command, on="h3", patience_s=PATIENCE_S)
    assert "listening on any" in done.stderr
    assert "100 received, 0% packet loss" in done.stdout
    shortest, _, longest = (float(part) for part in done.stdout.split(" = ")[1].split("/")[:3])
    # 10 ms there and 10 ms back. Where packets and programs take turns on the processor, the longest takes 22.5 ms.
    assert 20 < shortest <= longest < 20.3


@pytest.mark.parametrize(
    ("command", "status", "said"),
    [
        ("no-such-program", 127, "no-such-program: not found on this machine"),
        ("/etc/hosts", 126, "/etc/hosts cannot be borrowed"),
    ],
)
def test_a_program_that_cannot_be_borrowed_is_told_as_shells_do(
    tmp_path: Path, command: str, status: int, said: str
) -> None:
    done = call(tmp_path, *GUEST, command=(command,))
    assert done.returncode == status
    assert said in done.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--engine", "sim"), "--engine: found 'sim'; allowed: guest (a kernel in a virtual machine), host ("),
        (("--kernel", "6.1"), "it needs --engine guest"),
        ((*GUEST, "--kernel", "1.0"), "1.0"),
        ((*GUEST, "--set", "link.bottleneck.forward.ring={size='100p',bql=false}"), "100p"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_runs(tmp_path: Path, arguments: tuple[str, ...], said: str) -> None:
    done = call(tmp_path, *arguments, command=("true",))
    assert done.returncode in {1, 2}
    assert said in done.stderr


def test_a_guest_cannot_be_joined(tmp_path: Path) -> None:
    done = call(tmp_path, *GUEST, experiment="12345")
    assert done.returncode == 2
    assert "a guest has one console" in done.stderr


def test_at_a_terminal_it_is_a_console(tmp_path: Path) -> None:
    with Terminal(words(*GUEST), tmp_path, {"TERM": "xterm"}) as terminal:
        terminal.expect("h1:/# ")
        terminal.send("stty size; hostname\n")
        assert f"{ROWS} {COLUMNS}\r\nh1\r\n" in terminal.expect("h1:/# ")
        # The program says itself that it is there: before, Ctrl-C may come while the shell hands the terminal over.
        terminal.send("sh -c 'echo a\\wake; exec sleep 1000'\n")
        terminal.expect("awake\r\n")
        terminal.send("\x03")
        terminal.expect("h1:/# ")
        began = time.monotonic()
        terminal.send("sleep 2\n")
        terminal.expect("h1:/# ")
        assert time.monotonic() - began > 1.5, "at a console time passes as ours does"
        terminal.send("stty size; exit 3\n")
        terminal.expect("exit")


def test_a_console_can_be_hung_up(tmp_path: Path) -> None:
    with Terminal(words(*GUEST, command=("sleep", "1000")), tmp_path, {"TERM": "xterm"}) as terminal:
        terminal.expect("this is h1")
        terminal.send("\x1d")
