"""`bufferscope inspect` and its page on what a real tcpdump captures between two network namespaces.

Unlike a simulated capture, such a one has segments of up to 64 KiB (segmentation offload), a kernel's time stamps and
options, and a beginning and an end that no simulator cuts off.
"""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from laboratory import AS_THIS_USER, Answer, isolated, program, tshark, write

import bufferscope as bs
from bufferscope import figures
from bufferscope.figures.choosing import chosen
from bufferscope.figures.source import NoDataError
from bufferscope.model.figure_names import FigureName

SENT_BYTES = 3_000_000
DRIVER = f"""\
import atexit, socket, subprocess, sys

def sh(line):
    subprocess.run(line, shell=True, check=True)

def started(*words, ready):
    process = subprocess.Popen(words, stderr=subprocess.PIPE, text=True)
    atexit.register(process.kill)
    said = ""
    for line in process.stderr:
        said += line
        if ready in line:
            return process
    sys.exit(f"{{' '.join(words)}}: {{said}}")

sh("ip link set lo up; ip netns add far; ip link add near0 type veth peer name far0 netns far")
sh("ip addr add 192.0.2.1/24 dev near0; ip link set near0 up")
sh("ip -n far addr add 192.0.2.2/24 dev far0; ip -n far link set far0 up")
receiver = started("ip", "netns", "exec", "far", sys.executable, "-c", sys.argv[2], ready="listening")
captures = {{}}
for name, where, options in (
    ("sender", [], ["-i", "near0"]),
    ("receiver", ["ip", "netns", "exec", "far"], ["-i", "far0"]),
    ("headers", ["ip", "netns", "exec", "far"], ["-i", "any", "-s", "96"]),
):
    file = f"{{sys.argv[1]}}/{{name}}.pcap"
    # As root all along: the user that it would become may not write here. Room (in KiB) for all that is sent.
    words = [*where, "tcpdump", "-Z", "root", "--immediate-mode", "-U", "-n", "-B", "32768", *options, "-w", file]
    captures[file] = started(*words, ready="listening on")
connection = socket.create_connection(("192.0.2.2", 5001))
connection.sendall(bytes({SENT_BYTES}))
connection.shutdown(socket.SHUT_WR)
connection.recv(1)
connection.close()
receiver.wait()
# A capture that has the mark has all that came before.
mark = b"the end of this capture"
for file in captures:
    while mark not in open(file, "rb").read()[-2000:]:
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(mark, ("192.0.2.2", 9))
for process in captures.values():
    process.terminate()
    process.wait()
"""
RECEIVER = """\
import socket, sys
listening = socket.create_server(("192.0.2.2", 5001))
print("listening", file=sys.stderr, flush=True)
connection, _ = listening.accept()
while connection.recv(1 << 20):
    pass
connection.close()
"""


@pytest.fixture(scope="module")
def captures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with three captures of one download."""
    if (probe := isolated("ip link add one type veth peer name two", AS_THIS_USER)).returncode:
        pytest.skip(f"no network namespaces: {probe.stderr.strip()}")
    program("tcpdump")
    directory = tmp_path_factory.mktemp("captures")
    driver = write(directory, DRIVER, "driver.py")
    command = subprocess.list2cmdline([sys.executable, str(driver), str(directory)])
    answer = isolated(f"{command} '{RECEIVER}'", AS_THIS_USER)
    assert answer.returncode == 0, answer.stderr
    return directory


@pytest.mark.parametrize("name", ["sender", "receiver", "headers"])
def test_a_capture_of_tcpdump_has_its_table_its_page_and_every_chart(
    captures: Path, cli: Callable[..., Answer], tmp_path: Path, name: FigureName
) -> None:
    file = captures / f"{name}.pcap"
    answer = cli("inspect", str(file))
    assert answer.status == 0, answer.err
    assert "192.0.2.1" in answer.out
    assert (tmp_path / "report" / name / "index.html").stat().st_size > 0

    segments = tshark(file, "tcp && ip.src == 192.0.2.1 && tcp.len > 0", "tcp.seq", "tcp.len")
    received = max(int(seq) + int(length) for seq, length in segments) - 1
    assert received == SENT_BYTES, "the witness has seen the whole transfer"
    (found,) = json.loads(cli("inspect", str(file), "--json").out)["connections"]
    assert found["delivered_kb"] == SENT_BYTES / 1000
    # A busy machine may reorder packets on their way. Where they arrive, the witness distinguishes a reordered segment
    # from a retransmission by the time alone (3 ms); where they leave, it sees which bytes were sent before.
    repeated = tshark(captures / "sender.pcap", "tcp.analysis.retransmission", "frame.number")
    result = bs.load(tmp_path / "results" / name)
    assert result.runs[0].retransmissions.height == len(repeated)

    drawn = []
    for figure in chosen(result.runs):
        try:
            drawn.append(figures.draw(result, figure).to_dict())
        except NoDataError:
            continue
    assert len(drawn) >= 3
