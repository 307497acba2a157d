"""`bufferscope shell` on this machine's kernel: programs in emulated hosts."""

import json
import os
import shlex
import signal
import subprocess
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from laboratory import SMALL, Answer, write
from shells import PATIENCE_S, call, python, skip_without_network, words
from terminal import Terminal

Cli = Callable[..., Answer]

LAB = SMALL.replace('delay = "10ms"', 'delay = "5ms"') + '[[link]]\nname = "far"\nends = ["h2", "h3"]\n'
"""h1 - h2 - h3, with a rate on the first link."""
LOOK_UP = "import socket, sys; print(socket.gethostbyname(sys.argv[1]))"
FUTILE_LOOK_UP = """
import socket, sys, time
began = time.monotonic()
try: socket.gethostbyname(sys.argv[1])
except OSError: print(time.monotonic() - began)
"""
SERVER = (
    "import socket; s = socket.create_server(('', 80))\n"
    "while True: c, _ = s.accept(); c.sendall(b'served\\n'); c.close()"
)
FETCH = "import socket, sys; print(socket.create_connection((sys.argv[1], 80), 10).makefile().read(), end='')"


@pytest.fixture(autouse=True)
def _ready(tmp_path: Path) -> None:
    skip_without_network()
    write(tmp_path, LAB)


@pytest.fixture
def marker(monkeypatch: pytest.MonkeyPatch) -> str:
    """A marker in the environment of all processes that a test starts, to find those that are left."""
    name = uuid.uuid4().hex
    monkeypatch.setenv("BUFFERSCOPE_TEST", name)
    return name


def test_the_program_has_the_users_terminal_files_and_status(tmp_path: Path) -> None:
    done = call(tmp_path, command=("sh", "-c", "cat; pwd; exit 7"), given="what it reads\n")
    assert (done.returncode, done.stdout) == (7, f"what it reads\n{tmp_path}\n")
    assert "this is h1 of h1 10.0.0.1, h2 10.0.0.2, h3 10.0.0.6" in done.stderr


def test_without_a_command_the_users_shell_reads_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHELL", "/bin/sh")
    done = call(tmp_path, "--quiet", given="echo $BUFFERSCOPE_HOST\nexit 3\n")
    assert (done.returncode, done.stdout, done.stderr) == (3, "h1\n", "")


def test_the_programs_signal_is_passed_on(tmp_path: Path) -> None:
    assert call(tmp_path, command=("sh", "-c", "kill -TERM $$")).returncode == -signal.SIGTERM


@pytest.mark.parametrize(("command", "status"), [("/no/such/program", 127), ("/etc/hosts", 126)])
def test_a_program_that_cannot_be_started_is_told_as_shells_do(tmp_path: Path, command: str, status: int) -> None:
    done = call(tmp_path, "--quiet", command=(command,))
    assert done.returncode == status
    assert done.stderr.startswith(f"bufferscope: {command}: ")


def test_hosts_know_each_other_by_name_and_nobody_else(tmp_path: Path) -> None:
    for name, address in {"h1": "10.0.0.1", "h2": "10.0.0.2", "h3": "10.0.0.6"}.items():
        assert call(tmp_path, on="h2", command=python(LOOK_UP, name)).stdout == f"{address}\n"
    waited_s = float(call(tmp_path, command=python(FUTILE_LOOK_UP, "nobody.example")).stdout)
    assert waited_s < 5, "no name server is waited for: that would take 5 s at the least"
    assert "h2" not in Path("/etc/hosts").read_text().split(), "the machine's own file is as it was"


def test_the_program_sees_its_hosts_devices_and_name(tmp_path: Path) -> None:
    done = call(tmp_path, on="h2", command=("sh", "-c", "hostname; ls /sys/class/net; tc qdisc show dev to-h1"))
    assert done.stdout.splitlines()[:4] == ["h2", "lo", "to-h1", "to-h3"]
    assert "qdisc pfifo 10: parent 1:1 limit 20p" in done.stdout


def test_a_server_on_another_host_is_there_when_the_program_starts(tmp_path: Path) -> None:
    server = f"h3={shlex.join(python(SERVER))}"
    done = call(tmp_path, "--with", server, command=python(FETCH, "h3"))
    assert (done.returncode, done.stdout) == (0, "served\n"), done.stderr


def test_a_command_beside_the_program_may_finish_what_it_writes(tmp_path: Path) -> None:
    # It opens no socket, so that the program starts after some seconds; when that is over, it is asked to end.
    beside = "h2=trap 'sleep 0.3; echo whole > trace; exit' TERM; while :; do sleep 0.05; done"
    done = call(tmp_path, "--with", beside, command=("true",))
    assert done.returncode == 0
    assert "h2: not every background command has opened a socket within 5 s" in done.stderr
    assert (tmp_path / "trace").read_text() == "whole\n"


def test_a_command_beside_the_program_that_fails_is_told(tmp_path: Path) -> None:
    done = call(tmp_path, "--with", "h2=echo oops >&2; exit 3", command=("sleep", "0.1"))
    assert done.returncode == 0
    assert "oops\nbufferscope: `echo oops >&2; exit 3` on h2 ended with status 3\n" in done.stderr


def sent_packets(told: str) -> int:
    return int(told.partition(" bytes ")[2].split()[0])


def test_the_experiments_traffic_runs_if_it_is_asked_for(tmp_path: Path) -> None:
    look = ("sh", "-c", "sleep 1; tc -s qdisc show dev to-h2 parent 1:1")
    assert sent_packets(call(tmp_path, command=look).stdout) == 0
    assert sent_packets(call(tmp_path, "--with-traffic", command=look).stdout) > 100


def test_rates_change_as_the_experiment_says(tmp_path: Path) -> None:
    write(tmp_path, LAB.replace('rate = "10mbit"', 'rate = [["0s", "10mbit"], ["3s", "2mbit"]]'))
    show = "tc class show dev to-h2 | grep -o 'rate [^ ]*'"
    done = call(tmp_path, command=("sh", "-c", f"{show}; until {show} | grep 2; do sleep 0.1; done"))
    assert done.stdout == "rate 10Mbit\nrate 2Mbit\n"


def test_what_is_asked_for_wrongly_is_told_before_anything_is_built(tmp_path: Path, cli: Cli) -> None:
    write(tmp_path, LAB)
    for arguments, says in {
        ("--on", "h9"): "--on: found 'h9'; allowed: h1, h2, h3",
        ("--on", "h1", "--with", "h9=true"): "--with: found 'h9'; allowed: h1, h2, h3",
        ("--on", "h1", "--with", "true"): "--with: found 'true'; allowed: HOST=COMMAND",
        (
            "--on",
            "h1",
            "--engine",
            "sim",
        ): "--engine: found 'sim'; allowed: guest (a kernel in a virtual machine), host (",
        ("--on", "h1", "--seed", "-1"): "--seed: found -1; allowed: 0 to",
        ("--on", "h1", "--seed", "9" * 30): f"--seed: found {'9' * 30}; allowed: 0 to",
        ("--on", "h1", "--kernel", ""): "it needs --engine guest",
        ("--on", "h1", "ls", "-l"): "No such option: -l (put the program's own options after --",
        (): "Missing option '--on'. (see bufferscope shell --help)",
    }.items():
        answer = cli("shell", "lab.toml", *arguments)
        assert answer.status == 2
        assert says in answer.err
    for late in (("--with-traffic",), ("--seed", "2")):
        assert "cannot change it" in cli("shell", "1234", "--on", "h1", *late).err


@pytest.mark.parametrize("number", ["0", str(2**22 + 1), "9" * 20, "9" * 5000])
def test_a_number_that_no_process_has_is_not_blamed_on_the_agent(number: str, cli: Cli) -> None:
    answer = cli("shell", number, "--on", "h1")
    assert (answer.status, answer.out) == (2, "")
    assert answer.err.startswith(f"bufferscope: {number[:20]}: no shell has this number; ")


# --- what remains afterwards


def namespaces(pid: int) -> set[str]:
    """Network namespaces that a process is in or holds."""
    links = [Path(f"/proc/{pid}/ns/net"), *Path(f"/proc/{pid}/fd").glob("*")]
    found = set()
    for link in links:
        try:
            target = str(link.readlink())
        except OSError:
            continue
        if target.startswith("net:"):
            found.add(target)
    return found


def processes() -> list[int]:
    return [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdecimal()]


def marked(marker: str) -> list[int]:
    """Processes with the marker in their environment."""
    found = []
    for pid in processes():
        try:
            if marker.encode() in Path(f"/proc/{pid}/environ").read_bytes():
                found.append(pid)
        except OSError:
            continue
    return found


def eventually(holds: Callable[[], bool]) -> None:
    until = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < until
        time.sleep(0.02)


@pytest.fixture
def running(tmp_path: Path, marker: str) -> Iterator[subprocess.Popen[str]]:
    """A shell whose program has left a process of its own in the background, with a command beside it."""
    code = "import os, time\nif os.fork() == 0: os.setsid()\nelse: print('up', flush=True)\ntime.sleep(1000)"
    command = words("--quiet", "--with", "h2=sleep 1000", command=python(code))
    process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "up\n"
    yield process
    process.kill()
    process.communicate()


@pytest.mark.parametrize("victim", ["holder", "first", "program"])
def test_whoever_is_killed_nothing_is_left(running: subprocess.Popen[str], marker: str, victim: str) -> None:
    held = namespaces(running.pid) - namespaces(os.getpid())
    assert len(held) >= 4, "three hosts and a delay"
    children = Path(f"/proc/{running.pid}/task/{running.pid}/children").read_text().split()
    chosen = {
        "holder": running.pid,
        "first": int(children[0]),
        "program": next(pid for pid in map(int, children) if b"os.fork" in Path(f"/proc/{pid}/cmdline").read_bytes()),
    }[victim]
    os.kill(chosen, signal.SIGKILL)
    eventually(lambda: marked(marker) == [])
    eventually(lambda: not any(namespaces(pid) & held for pid in processes()))
    assert running.wait(PATIENCE_S) == -signal.SIGKILL


def test_a_program_that_is_asked_to_end_takes_all_with_it(running: subprocess.Popen[str], marker: str) -> None:
    running.send_signal(signal.SIGTERM)
    assert running.wait(PATIENCE_S) == -signal.SIGTERM
    assert marked(marker) == []


# --- several at once


def test_another_shell_joins_the_network_and_ends_with_it(tmp_path: Path, marker: str) -> None:
    holder = subprocess.Popen(words(on="h3", command=python(SERVER)), cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    assert holder.stderr is not None
    said = [holder.stderr.readline() for _ in range(2)]
    number = said[1].split("bufferscope shell ")[1].split()[0]
    assert number == str(holder.pid)

    def fetched() -> bool:
        return call(tmp_path, experiment=number, command=python(FETCH, "h3")).stdout == "served\n"

    eventually(fetched)
    refused = call(tmp_path, experiment=number, on="h9", command=("true",))
    assert refused.returncode == 1
    assert f"cannot join the network of process {number}: no host is called `h9`; hosts: h1, h2, h3" in refused.stderr
    joined = subprocess.Popen(
        words(experiment=number, command=("sh", "-c", "echo up; sleep 1000")),
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert joined.stdout is not None
    assert joined.stdout.readline() == "up\n"
    holder.kill()
    _, said_last = joined.communicate(timeout=PATIENCE_S)
    # It is asked to end and killed at once: by which of the two it ended is a matter of chance.
    assert -joined.returncode in (signal.SIGTERM, signal.SIGKILL)
    assert "bufferscope: the network has ended" in said_last
    holder.communicate()
    assert marked(marker) == []


def test_a_network_that_is_not_there_cannot_be_joined(tmp_path: Path) -> None:
    done = call(tmp_path, experiment=str(os.getpid()), command=("true",))
    assert done.returncode == 1
    assert f"cannot join the network of process {os.getpid()}" in done.stderr


# --- at a terminal


@pytest.fixture
def terminal(tmp_path: Path, marker: str) -> Iterator[Terminal]:
    """A terminal with a shell that has job control; every line is answered by the prompt `$> `."""
    with Terminal(["bash", "--norc", "--noprofile", "-i"], tmp_path, {"PS1": "$> ", "TERM": "dumb"}) as terminal:
        terminal.expect("$> ")
        yield terminal
    eventually(lambda: marked(marker) == [])


START = shlex.join(words("--quiet"))
SLEEP = r"sh -c 'echo a\wake; exec sleep 1000'"
"""A job that tells when a signal meets it and nobody else; the terminal's echo of these words does not."""


def test_an_interactive_shell_has_job_control_and_its_status_comes_back(terminal: Terminal) -> None:
    terminal.send(f"{START} -- bash --norc --noprofile -i\n")
    terminal.expect("$> ")
    assert terminal.ask("hostname; stty size") == ["h1", "33 77"]
    assert terminal.ask("tty")[0].startswith("/dev/")
    terminal.send(f"{SLEEP}\n")
    terminal.expect("awake\r\n")
    terminal.send("\x03")
    terminal.expect("$> ")
    assert terminal.ask("echo $?") == ["130"], "Ctrl-C ended the job and not the shell"
    terminal.send(f"{SLEEP}\n")
    terminal.expect("awake\r\n")
    terminal.send("\x1a")
    terminal.expect("Stopped")
    terminal.expect("$> ")
    assert "sleep 1000" in terminal.ask("kill %1; jobs")[0]
    terminal.resize(20, 50)
    assert "20 50" in terminal.ask("stty size")
    terminal.send("exit 5\n")
    terminal.expect("$> ")
    assert terminal.ask("echo $?; hostname")[0] == "5"


def test_ctrl_c_reaches_the_program(terminal: Terminal) -> None:
    terminal.send(f"{START} -- {SLEEP}\n")
    terminal.expect("awake\r\n")
    terminal.send("\x03")
    terminal.expect("$> ")
    assert terminal.ask("echo $?") == ["130"]


def test_ctrl_z_stops_and_fg_continues_the_program(terminal: Terminal) -> None:
    terminal.send(f"{START} -- sh -c 'echo up; read line; echo got $line'\n")
    terminal.expect("up\r\n")
    terminal.send("\x1a")
    terminal.expect("Stopped")
    terminal.expect("$> ")
    terminal.send("fg\n")
    terminal.expect("echo got")
    terminal.wait_for_silence()
    terminal.send("this\n")
    terminal.expect("got this")
    terminal.expect("$> ")


def test_in_a_pipeline_the_terminal_is_left_to_the_others(terminal: Terminal) -> None:
    terminal.send(f"echo one | {START} -- sh -c 'cat; read line < /dev/tty; echo got $line' | cat\n")
    terminal.expect("one\r\n")
    terminal.wait_for_silence()
    terminal.send("two\n")
    terminal.expect("got two")
    terminal.expect("$> ")


def test_a_terminal_that_goes_away_takes_all_with_it(tmp_path: Path, marker: str) -> None:
    with Terminal(words("--quiet", command=("sh", "-c", "echo up; sleep 1000")), tmp_path, {}) as terminal:
        terminal.expect("up")
        assert len(marked(marker)) >= 3
    eventually(lambda: marked(marker) == [])


def test_the_request_is_the_one_that_the_agent_reads(tmp_path: Path) -> None:
    from bufferscope.engines.shell import request
    from bufferscope.model.experiment import load

    network = request.ShellNetwork(
        load(write(tmp_path, LAB)).points[0], [request.BackgroundCommand.parse("h2=a=b")], True, 4
    )
    document = json.loads(request.build(network, "h3"))
    assert document["on"] == "h3"
    assert document["network"]["build"]["with"] == [{"on": "h2", "command": "a=b"}]
