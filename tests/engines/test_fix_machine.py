"""`bufferscope fix --apply` and `--undo`: what is changed on a machine, and that it is restored in every case.

The machine is a network namespace; what is measured comes from a program that only prints it.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import cures
import livestreams
import pytest
from households import MACHINE, Network, python
from terminal import Terminal

from bufferscope.base.errors import EngineError
from bufferscope.engines.live import program
from bufferscope.engines.local import changing, knobs, saved, trees
from bufferscope.engines.local.saved import SavedState
from bufferscope.interop.live import sqm

PLANTED = {
    "none": "",
    "a shaper with a long queue": """
        tc qdisc add dev eth0 root handle 1: htb default 1 r2q 7
        tc class add dev eth0 parent 1: classid 1:1 htb rate 8mbit burst 2k
        tc qdisc add dev eth0 parent 1:1 handle 10: pfifo limit 1000
    """,
    "a bucket": "tc qdisc add dev eth0 root handle 5: tbf rate 10mbit burst 3028 limit 150000 overhead 4 linklayer atm",
    "a short queue": "tc qdisc add dev eth0 root handle 3: pfifo limit 77",
}
SHOW = """
tc -d qdisc show | sed 's/ direct_packets_stat [0-9]*//'
tc -d class show dev eth0
ip -brief link | cut -d' ' -f1 | sort
"""
"""Everything but a counter."""
LONG, SHORT = {"upload": "client_qdisc"}, 4.0
PATIENCE_S = 90
Machine = Callable[..., Network]


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Network]:
    """A machine with a shaper and a long queue behind it, on which a measurement found this queue."""
    cures.measured(tmp_path, LONG)
    with Network(MACHINE + PLANTED["a shaper with a long queue"], tmp_path) as network:
        yield network


def later(directory: Path, **more: Any) -> dict[str, str]:
    """The environment in which the next measurement has this result: by default, a much shorter delay."""
    then = more.pop("then", "")
    settings: dict[str, Any] = {"added_ms": SHORT, "grade": "A+"} | more
    found = cures.events(LONG, later_s=60, **settings)
    path = livestreams.program(directory / "program", found, then=then)
    return {program.VARIABLE: str(path), program.TOKEN: "7Q2M"}


def applied(network: Network, directory: Path, *arguments: str, **more: Any) -> subprocess.CompletedProcess[str]:
    return network.bufferscope("fix", "--apply", "--yes", "--json", *arguments, more=later(directory, **more))


def until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < end, "it does not happen"
        time.sleep(0.05)


@pytest.mark.parametrize("planted", PLANTED.values(), ids=PLANTED)
def test_a_better_change_is_kept_and_undone_byte_for_byte(planted: str, tmp_path: Path) -> None:
    cures.measured(tmp_path, LONG)
    with Network(MACHINE + planted, tmp_path) as network:
        before = network.shell(SHOW)
        done = applied(network, tmp_path)
        assert done.returncode == 0, done.stderr
        found = json.loads(done.stdout)
        assert found["kept"]
        assert found["directions"][0]["added_p95_ms"] == [80.2, SHORT]
        assert network.shell(SHOW) != before
        assert network.bufferscope("fix", "--undo").stdout.startswith("Undone: eth0")
        assert network.shell(SHOW) == before
        assert network.bufferscope("fix", "--undo").stdout.startswith("Nothing to undo")
        assert ".json" not in network.shell("ls /run/bufferscope")


def test_a_shaper_on_this_machine_covers_both_directions(tmp_path: Path) -> None:
    cures.measured(tmp_path, {"upload": "router_uplink", "download": "access_downlink"}, upload=9_000_000)
    with Network(MACHINE, tmp_path) as network:
        before = network.shell(SHOW)
        refused = applied(network, tmp_path)
        assert refused.returncode == 2
        assert "not at this machine" in refused.stderr
        more = later(tmp_path)
        both = {"upload": "router_uplink", "download": "access_downlink"}
        livestreams.program(tmp_path / "program", cures.events(both, added_ms=SHORT, later_s=60, upload=9_000_000))
        words = ("fix", "--apply", "--yes", "--json", "--device", "this-machine")
        done = network.bufferscope(*words, more=more)
        assert done.returncode == 0, done.stderr
        shown = network.shell(SHOW)
        assert "ifb4eth0" in shown
        assert "ingress" in shown
        assert network.bufferscope("fix", "--undo").returncode == 0
        assert network.shell(SHOW) == before


@pytest.mark.parametrize(
    "result",
    [{"added_ms": 79.0}, {"upload": 4_000_000}, {"grade": "F", "added_ms": 900.0}],
    ids=["as late as before", "half of the goodput", "worse"],
)
def test_what_is_not_better_is_not_kept(machine: Network, tmp_path: Path, result: dict[str, Any]) -> None:
    before = machine.shell(SHOW)
    done = applied(machine, tmp_path, **result)
    assert done.returncode == 1, done.stderr
    found = json.loads(done.stdout)
    assert (found["better"], found["kept"]) == (False, False)
    assert found["undone"].startswith("Undone")
    assert machine.shell(SHOW) == before


def test_it_is_undone_if_the_measurement_fails(machine: Network, tmp_path: Path) -> None:
    before = machine.shell(SHOW)
    more = later(tmp_path)
    livestreams.program(tmp_path / "program", [], error="bufferscope-live: no server\n", status=1)
    done = machine.bufferscope("fix", "--apply", "--yes", more=more)
    assert done.returncode == 1
    assert "no server" in done.stderr
    assert machine.shell(SHOW) == before


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGHUP], ids=lambda number: number.name)
def test_it_is_undone_when_the_program_is_killed(machine: Network, tmp_path: Path, number: signal.Signals) -> None:
    before = machine.shell(SHOW)
    words = [*python(), "fix", "--apply", "--yes", "--quiet"]
    process = machine.start(words, more=later(tmp_path, then="time.sleep(60)"))
    until(lambda: machine.shell(SHOW) != before)
    process.send_signal(number)
    process.wait(PATIENCE_S)
    until(lambda: machine.shell(SHOW) == before)
    until(lambda: "Nothing to undo" in machine.bufferscope("fix", "--undo").stdout)


def test_a_terminal_is_asked_and_without_an_answer_it_is_undone(machine: Network, tmp_path: Path) -> None:
    before = machine.shell(SHOW)
    words = machine.words(*python(), "fix", str(cures.measured(tmp_path, LONG).path), "--apply")
    with Terminal(words, tmp_path, later(tmp_path)) as terminal:
        terminal.expect("bfifo" if _is_poor(machine) else "tc qdisc replace dev eth0")
        terminal.expect("[y/N]")
        assert machine.shell(SHOW) == before
        terminal.send("y\n")
        terminal.expect("Before and after")
        terminal.expect("Keep it?")
        assert machine.shell(SHOW) != before
    until(lambda: machine.shell(SHOW) == before)  # the terminal is lost
    with Terminal(words, tmp_path, later(tmp_path)) as terminal:
        terminal.expect("[y/N]")
        terminal.send("y\n")
        terminal.expect("Keep it?")
        terminal.send("n\n")
        terminal.expect("Undone")
    assert machine.shell(SHOW) == before
    with Terminal(words, tmp_path, later(tmp_path)) as terminal:
        terminal.expect("[y/N]")
        terminal.send("y\n")
        terminal.expect("Keep it?")
        terminal.send("y\n")
        terminal.expect("To make it permanent")
    assert machine.shell(SHOW) != before


def _is_poor(machine: Network) -> bool:
    """Whether the kernel has neither cake nor fq_codel."""
    probe = "ip link add p0 type veth; for kind in cake fq_codel; do tc qdisc add dev p0 root $kind && break; done"
    done = machine.run("unshare", "--net", "sh", "-c", probe)
    return done.returncode != 0


def test_without_a_terminal_nothing_is_changed(machine: Network, tmp_path: Path) -> None:
    before = machine.shell(SHOW)
    done = machine.bufferscope("fix", "--apply", more=later(tmp_path))
    assert done.returncode == 2
    assert "--yes" in done.stderr
    assert machine.shell(SHOW) == before


def test_a_second_change_is_refused_until_the_first_is_undone(machine: Network, tmp_path: Path) -> None:
    assert applied(machine, tmp_path, "results").returncode == 0
    cures.measured(tmp_path, LONG, later_s=120)
    done = applied(machine, tmp_path)
    assert done.returncode == 2
    assert "--undo" in done.stderr


def test_settings_that_are_gone_are_left_alone(machine: Network, tmp_path: Path) -> None:
    assert applied(machine, tmp_path).returncode == 0
    machine.shell("tc qdisc del dev eth0 root")
    gone = machine.shell(SHOW)
    done = machine.bufferscope("fix", "--undo")
    assert "nothing was undone: something else has changed eth0 since" in done.stderr
    assert machine.shell(SHOW) == gone
    assert machine.bufferscope("fix", "--undo", "--yes").returncode == 0
    assert "pfifo 10: parent 1:1 limit 1000p" in machine.shell("tc qdisc show dev eth0")


@pytest.mark.parametrize(
    ("script", "says"),
    [
        ('sed -i \'s/"boot": "[^"]*"/"boot": "another"/\' /run/bufferscope/fix-*.json', "was restarted since"),
        ("ip link del eth0; " + MACHINE.replace("ip link set lo up", ""), "is not the interface that was changed"),
    ],
    ids=["restarted", "the interface is a new one"],
)
def test_after_a_restart_there_is_nothing_to_undo(machine: Network, tmp_path: Path, script: str, says: str) -> None:
    assert applied(machine, tmp_path).returncode == 0
    machine.shell(script)
    before = machine.shell(SHOW)
    done = machine.bufferscope("fix", "--undo")
    assert done.returncode == 0, done.stderr
    assert says in done.stdout
    assert machine.shell(SHOW) == before


STATE: dict[str, Any] = {
    "version": 1,
    "boot": saved.boot_id(),
    "interface": "lo",
    "ifindex": 1,
    "status": "kept",
    "before": {"qdiscs": [], "classes": [], "shown": ["qdisc noqueue 0: root refcnt 2"]},
    "after": ["qdisc pfifo 1: root refcnt 2 limit 10p"],
    "commands": ["tc qdisc replace dev lo root handle 1: pfifo limit 10"],
    "block": None,
}
EVIL = {"handle": 1 << 16, "parent": 0xFFFFFFFF, "kind": "pfifo", "options": ""}


def test_a_file_that_is_not_to_be_trusted_is_not_used(tmp_path: Path) -> None:
    file = tmp_path / "fix-1.json"
    for content, says in (
        (b"[", "malformed"),
        (b"{}", "malformed"),
        (b" " * (saved.MOST_BYTES + 1), "too long"),
        (b"[" * 100_000, "malformed"),
        (json.dumps(STATE | {"version": 2}).encode(), "version 2"),
        (json.dumps(STATE | {"status": "other"}).encode(), "status"),
        (json.dumps(STATE | {"ifindex": -1}).encode(), "ifindex"),
        (json.dumps(STATE | {"interface": "lo\x1b[31m"}).encode(), "interface"),
        (json.dumps(STATE | {"interface": "lo; reboot"}).encode(), "no interface"),
        (json.dumps(STATE | {"block": "-x"}).encode(), "no interface"),
    ):
        file.write_bytes(content)
        file.chmod(0o600)
        with pytest.raises(EngineError, match=says):
            changing.undo(file, force=True)
        assert file.read_bytes() == content, "it stays for its owner to look at"
    file.write_text(json.dumps(STATE))
    file.chmod(0o622)
    with pytest.raises(EngineError, match="other users may have written it"):
        saved.read(file)
    link, pipe = tmp_path / "link.json", tmp_path / "pipe.json"
    link.symlink_to(file)
    os.mkfifo(pipe, 0o600)
    for other in (link, pipe):
        with pytest.raises(EngineError, match=str(other)):
            saved.read(other)
    assert saved.read(tmp_path / "none.json") is None


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"kind": "evil"}, "malformed"),
        ({"options": "x"}, "Base64"),
        ({"options": "AAAA" * 20_000}, "malformed"),
        ({"handle": 1 << 40}, "malformed"),
    ],
)
def test_a_saved_discipline_that_is_malformed_is_not_made(changed: dict[str, Any], says: str) -> None:
    with pytest.raises(EngineError, match=says):
        trees.rebuild(0, {"qdiscs": [EVIL | changed], "classes": [], "shown": []})  # type: ignore[list-item]


def test_filters_and_what_arrives_are_not_touched(machine: Network, tmp_path: Path) -> None:
    match = "u32 match u32 0 0 flowid 1:1"
    for script in (
        f"tc filter add dev eth0 parent 1: protocol all prio 1 {match}",
        "tc filter del dev eth0; tc qdisc add dev eth0 ingress",
    ):
        machine.shell(script)
        before = machine.shell(SHOW)
        done = applied(machine, tmp_path)
        assert done.returncode == 1
        assert "restored" in done.stderr
        assert machine.shell(SHOW) == before


def test_a_command_that_fails_changes_nothing(machine: Network, tmp_path: Path) -> None:
    before = machine.shell(SHOW)
    code = """
from bufferscope.engines.local import changing
good, bad = "tc qdisc replace dev eth0 root bfifo limit 20000", "tc qdisc add dev eth0 root nothing"
changing.apply(changing.prepare("eth0", [good, bad]))
"""
    done = machine.run(sys.executable, "-c", code)
    assert done.returncode != 0
    assert "nothing" in done.stderr
    assert machine.shell(SHOW) == before


@pytest.mark.parametrize("word", ["", "a", "stop"], ids=["no measurement in time", "no answer in time", "asked to end"])
def test_the_guard_undoes_when_time_runs_out(machine: Network, word: str) -> None:
    before = machine.shell(SHOW)
    code = """
import sys
from pathlib import Path
from bufferscope.engines.local import changing, guard, saved
changing.apply(changing.prepare("eth0", ["tc qdisc replace dev eth0 root bfifo limit 20000"]))
guard.MEASURING_S, guard.CONFIRMING_S = (1.0, 60.0) if sys.argv[3] == "" else (60.0, 1.0)
sys.exit(guard.main(saved.path(), int(sys.argv[1]), int(sys.argv[2])))
"""
    pipe, ours = os.pipe()
    ready, theirs = os.pipe()
    words = machine.words(sys.executable, "-c", code, str(pipe), str(theirs), word)
    process = subprocess.Popen(words, pass_fds=(pipe, theirs))
    os.close(theirs)
    os.close(pipe)
    assert os.read(ready, 1) == b"r"
    assert machine.shell(SHOW) != before
    if word == "a":
        os.write(ours, b"a")
    elif word == "stop":
        process.terminate()
    assert process.wait(PATIENCE_S) == 0
    assert machine.shell(SHOW) == before
    os.close(ours)
    os.close(ready)


def test_the_unit_makes_the_change_again(machine: Network, tmp_path: Path) -> None:
    assert applied(machine, tmp_path).returncode == 0
    kept = machine.shell(SHOW)
    code = """
import sys
from pathlib import Path
from bufferscope.engines.local import saved, unit
print(unit.write(saved.read(saved.path()), Path(sys.argv[1])))
"""
    place = tmp_path / "units"
    place.mkdir()
    file = Path(machine.run(sys.executable, "-c", code, str(place)).stdout.strip())
    lines = [line.partition("=")[2] for line in file.read_text().splitlines() if line.startswith("ExecStart=")]
    assert machine.bufferscope("fix", "--undo").returncode == 0
    machine.shell("\n".join(lines))
    assert machine.shell(SHOW) == kept
    from bufferscope.engines.local import unit

    assert unit.remove(file)
    file.write_text("[Unit]\nDescription=of another\n")
    assert not unit.remove(file)
    assert file.exists()


def test_persist_needs_a_change_that_was_kept(machine: Network) -> None:
    done = machine.bufferscope("fix", "--persist")
    assert done.returncode == 2
    assert "nothing was applied and kept" in done.stderr


KERNEL = "sysctl -n net.ipv4.tcp_notsent_lowat net.ipv4.tcp_congestion_control"
ETHTOOL = """\
#!/bin/sh
# An interface whose ring has any multiple of 8 descriptors; ethtool fails if nothing changes.
case "$1" in
-g) printf 'Ring parameters for %s:\\nPre-set maximums:\\nRX:\\t4096\\nTX:\\t4096\\nCurrent hardware settings:\\n' $2
    printf 'RX:\\t512\\nTX:\\t%s\\n' $(cat {0}/ring) ;;
-G) new=$((($4 + 7) / 8 * 8)); [ $new != $(cat {0}/ring) ] || exit 80; echo $new > {0}/ring ;;
esac
"""


def test_a_kernel_setting_is_tried_kept_and_restored(tmp_path: Path) -> None:
    place = {"upload": "client_send_buffer"}
    cures.measured(tmp_path, place)
    with Network(MACHINE, tmp_path) as network:
        before = network.shell(KERNEL + "; " + SHOW)
        more = later(tmp_path)
        livestreams.program(tmp_path / "program", cures.events(place, added_ms=SHORT, later_s=60))
        done = network.bufferscope("fix", "--apply", "--yes", "--json", more=more)
        assert done.returncode == 0, done.stderr
        found = json.loads(done.stdout)
        assert found["commands"] == ["sysctl -w net.ipv4.tcp_notsent_lowat=131072"]
        assert found["directions"][0]["added_p95_ms"] == [80.2, SHORT], "those of the send buffer"
        assert network.shell(KERNEL).split()[0] == "131072"
        network.shell("sysctl -qw net.ipv4.tcp_notsent_lowat=77777")
        assert "something else has changed net.ipv4.tcp_notsent_lowat" in network.bufferscope("fix", "--undo").stderr
        assert network.bufferscope("fix", "--undo", "--yes").stdout.startswith("Undone")
        assert network.shell(KERNEL + "; " + SHOW) == before


def test_another_congestion_control_is_measured_with_itself(tmp_path: Path) -> None:
    cures.measured(tmp_path, {"upload": "router_uplink"}, upload=9_000_000)
    with Network(MACHINE, tmp_path) as network:
        has = network.shell("sysctl -n net.ipv4.tcp_available_congestion_control").split()
        before = network.shell(KERNEL + "; " + SHOW)
        more = later(tmp_path, then="time.sleep(60)")
        words = ("fix", "--apply", "--yes", "--device", "this-machine", "--cure", "2")
        if "bbr" not in has:
            assert "nothing that can be applied" in network.bufferscope(*words, more=more).stderr
            return
        process = network.start([*python(), *words], more=more)
        until(lambda: (tmp_path / "program" / "called").exists())
        assert "bbr" in (tmp_path / "program" / "called").read_text().split()
        assert "bbr" in network.shell(KERNEL)
        process.kill()
        until(lambda: network.shell(KERNEL + "; " + SHOW) == before)


def test_a_ring_is_tried_and_restored(tmp_path: Path) -> None:
    place = {"upload": "client_driver"}
    client = {"bql": False, "ring_packets": 4096}
    cures.measured(tmp_path, place, client=client, upload=9_000_000)
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "ring").write_text("4096\n")
    (tools / "ethtool").write_text(ETHTOOL.replace("{0}", str(tools)))
    (tools / "ethtool").chmod(0o755)
    with Network(MACHINE, tmp_path) as network:
        before = network.shell(SHOW)
        more = {**later(tmp_path), "PATH": f"{tools}:{os.environ['PATH']}"}
        livestreams.program(tmp_path / "program", cures.events(place, added_ms=SHORT, later_s=60, upload=9_000_000))
        done = network.bufferscope("fix", "--apply", "--yes", "--json", "--cure", "2", more=more)
        assert done.returncode == 0, done.stderr
        assert (tools / "ring").read_text() == "64\n"
        assert network.bufferscope("fix", "--undo", more=more).stdout.startswith("Undone")
        assert (tools / "ring").read_text() == "4096\n"
        assert network.shell(SHOW) == before


def test_byte_queue_limits_are_written_and_restored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = [tmp_path / "eth7" / "queues" / f"tx-{n}" / "byte_queue_limits" / "limit_max" for n in (0, 1)]
    for number, file in enumerate(files):
        file.parent.mkdir(parents=True)
        file.write_text(f"{1879048192 - number}\n")
    monkeypatch.setattr(knobs, "SYS", tmp_path)
    line = "echo 12500 | tee /sys/class/net/eth7/queues/tx-*/byte_queue_limits/limit_max"
    taken = knobs.take([line])
    for each in taken:
        knobs.put(each)
    assert [file.read_text() for file in files] == ["12500\n"] * 2
    assert not knobs.is_before(taken)
    for each in taken:
        knobs.put(each, undo=True)
    assert [file.read_text() for file in files] == ["1879048192\n", "1879048191\n"]
    with pytest.raises(EngineError, match="no byte queue limits"):
        knobs.take([line.replace("eth7", "eth8")])


@pytest.mark.parametrize(
    "knob",
    [
        {"name": "kernel.core_pattern", "before": "x"},
        {"name": "ring eth0; reboot", "before": "64"},
        {"name": "limit_max .. tx-0", "before": "1"},
        {"name": "net.ipv4.tcp_notsent_lowat", "before": "1 | sh"},
    ],
)
def test_a_saved_setting_of_another_kind_is_not_written(knob: dict[str, str], tmp_path: Path) -> None:
    file = tmp_path / "fix-1.json"
    file.write_text(json.dumps(STATE | {"knobs": [{"after": "1", **knob}]}))
    file.chmod(0o600)
    with pytest.raises(EngineError, match="malformed"):
        changing.undo(file, force=True)


@pytest.mark.parametrize(
    ("rates", "raises"),
    [((9.0, 9.3, 9.31), 1), ((9.0, 9.3, 9.6, 9.9), 2), ((9.0, 8.9), 0)],
    ids=["no more goodput", "until the margin is used up", "less goodput"],
)
def test_a_rate_is_raised_while_that_gains(rates: tuple[float, ...], raises: int, tmp_path: Path) -> None:
    place = {"upload": "router_uplink"}
    cures.measured(tmp_path, place, upload=9_000_000)
    with Network(MACHINE, tmp_path) as network:
        before = network.shell(SHOW)
        more = later(tmp_path)
        turn = (
            "import glob\nrest = sorted(glob.glob(place + '/next-*'))\nrest and os.replace(rest[0], place + '/events')"
        )
        later_events = [
            cures.events(place, added_ms=SHORT, later_s=60 * n, upload=round(rate * 1e6))
            for n, rate in enumerate(rates, start=1)
        ]
        livestreams.program(tmp_path / "program", later_events[0], then=turn)
        for number, events in enumerate(later_events[1:]):
            (tmp_path / "program" / f"next-{number}").write_bytes(livestreams.lines(events))
        words = ("fix", "--apply", "--tune", "--yes", "--json", "--device", "this-machine")
        done = network.bufferscope(*words, more=more)
        assert done.returncode == 0, done.stderr
        found = json.loads(done.stdout)
        assert (found["raises"], found["kept"]) == (raises, True)
        margin = max(0.05 - 0.03 * raises, 0)
        kbit = int(0.99 * 9e6 * 1544 / 1448 * (1 - margin) / 1000)
        assert f"{kbit}kbit" in found["commands"][0].replace(f"bandwidth {kbit}Kbit", f"{kbit}kbit")
        assert f"{kbit}Kbit" in network.shell("tc qdisc show dev eth0")
        assert network.bufferscope("fix", "--undo").returncode == 0
        assert network.shell(SHOW) == before


UCI = """\
#!{python} -S
# uci with one package: its text, and what was changed in it and not committed.
import pathlib, sys
place = pathlib.Path({place!r})
words = sys.argv[1:]
with (place / "calls").open("a") as calls:
    calls.write(" ".join(words) + "\\n")
text, staged = place / "sqm", place / "staged"
now = staged.read_text() if staged.exists() else text.read_text()
if words == ["export", "sqm"]:
    print(text.read_text(), end="")
elif words[:2] == ["-q", "get"]:
    sys.exit(0 if "config queue" in now and not print("queue") else 1)
elif words == ["add", "sqm", "queue"]:
    staged.write_text(now + "config queue\\n")
elif words[0] == "set":
    key, value = words[1].removeprefix("sqm.@queue[0].").split("=", 1)
    if "config queue" not in now:
        sys.exit("uci: Entry not found")
    staged.write_text(now + f"option {{key}} '{{value}}'\\n")
elif words[0] == "-f":
    staged.write_text(pathlib.Path(words[1]).read_text())
elif words == ["commit", "sqm"]:
    text.write_text(now)
    staged.unlink(missing_ok=True)
else:
    sys.exit("uci: Usage")
"""
SQM = "package sqm\n\nconfig queue 'eth1'\noption enabled '0'\n"


@pytest.mark.parametrize("there", [SQM, "package sqm\n"], ids=["a queue", "no queue"])
def test_openwrt_keeps_a_shaper_with_uci(there: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "sqm").write_text(there)
    (tmp_path / "uci").write_text(UCI.format(python=sys.executable, place=str(tmp_path)))
    (tmp_path / "uci").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    before = tmp_path / "before"
    state = cast(
        SavedState,
        STATE
        | {
            "interface": "wan",
            "block": "ifb4wan",
            "commands": [
                "tc qdisc replace dev wan root cake bandwidth 9500kbit docsis nat",
                "ip link add name ifb4wan type ifb",
                "tc qdisc replace dev ifb4wan root cake bandwidth 36000kbit docsis nat wash ingress",
            ],
        },
    )
    assert sqm.is_here()
    done = sqm.write(state, before)
    assert done[-1] == "uci commit sqm"
    kept = (tmp_path / "sqm").read_text()
    for line in ("interface 'wan'", "upload '9500'", "download '36000'", "overhead '18'", "tcMPU '64'", "enabled '1'"):
        assert f"option {line}\n" in kept
    assert sqm.remove(before)
    assert (tmp_path / "sqm").read_text() == there, "byte for byte"
    assert not sqm.remove(before)
    calls = (tmp_path / "calls").read_text()
    assert ("add sqm queue" in calls) == (there != SQM)
    with pytest.raises(EngineError, match="only a shaper"):
        sqm.write(cast(SavedState, STATE), before)


def test_without_sqm_scripts_nothing_is_committed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "uci").write_text("#!/bin/sh\necho 'uci: Entry not found' >&2; exit 1\n")
    (tmp_path / "uci").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    state = cast(SavedState, STATE | {"commands": ["tc qdisc replace dev lo root cake bandwidth 9500kbit overhead 44"]})
    with pytest.raises(EngineError, match="sqm-scripts is not installed"):
        sqm.write(state, tmp_path / "before")
    assert not (tmp_path / "before").exists()
