"""`bufferscope commands`: shells understand the script, and it builds the network that it describes and removes it."""

import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from laboratory import SMALL, SWEEP, Answer, isolated, program, write
from shells import call, skip_without_network

import bufferscope as bs
from bufferscope.model.experiment import Experiment, load
from bufferscope.running.commands import script

Cli = Callable[..., Answer]

CHANGING = SMALL.replace('"10mbit"', '[["0s", "10mbit"], ["100ms", "2mbit"]]')

NETEM = r"netem limit \d+( delay \w+)?( rate \w+)?"

KNOCK = shlex.quote(
    "import errno, socket; knocked = socket.socket().connect_ex(('10.0.0.2', 1)); "
    "print('answered:', 'refused' if knocked == errno.ECONNREFUSED else knocked)"
)
"""A port where nobody listens: the refusal comes from the other end of the line."""


@pytest.fixture
def lab(tmp_path: Path) -> Path:
    """The script of a line whose rate changes; where the kernel has no sch_netem, with a wire that takes no time."""
    if (probe := isolated("tc qdisc add dev lo root htb")).returncode:
        pytest.skip(f"no network namespaces, or no sch_htb: {probe.stderr.strip()}")
    experiment = load(write(tmp_path, CHANGING))
    text = script(experiment, experiment.points[0])
    assert len(re.findall(NETEM, text)) == 4, "each direction's wire, and its change"
    if isolated("tc qdisc add dev lo root netem").returncode:
        text = re.sub(NETEM, "pfifo", text)
    path = tmp_path / "lab.sh"
    path.write_text(text)
    return path


RING = r"the ring of |.* takes packets of one segment|.* has a stacked interface"
WIFI = r"wifi `wlan`: "
WITHOUT_A_SCRIPT = {
    "lncc-ring": RING,
    "lncc-qdisc": RING,
    "lncc-surface": RING,
    "lncc-window": RING,
    "lncc-bql": RING,
    "dark-wifi": RING,
    "dark-wifi-shared": WIFI,
    "wifi-anomaly": WIFI,
    "wifi-anomaly-arrivals": WIFI,
    "wifi-anomaly-losses": WIFI,
    "wifi-latency": WIFI,
}
"""The experiments that need more than namespaces have, and what their points are refused for."""


@pytest.mark.parametrize("name", bs.catalogue())
def test_every_point_of_the_catalogue_is_a_script_that_shells_understand_or_is_refused(name: str) -> None:
    experiment = load(name)
    scripts, refusals = [], []
    for point in experiment.points:
        try:
            scripts.append(script(experiment, point))
        except bs.InputError as refusal:
            refusals.append(str(refusal).removeprefix(f"{name} ({point}): "))
    assert bool(scripts) == (name not in WITHOUT_A_SCRIPT)
    assert all(re.match(WITHOUT_A_SCRIPT[name], refusal) for refusal in refusals)
    # Points that differ only in their traffic have the same network, and scripts that differ in comments alone.
    for text in {re.sub(r"^#.*\n", "", text, flags=re.MULTILINE): text for text in scripts}.values():
        subprocess.run(["sh", "-n"], input=text, text=True, check=True)
        said = subprocess.run([program("shellcheck"), "-"], input=text, capture_output=True, text=True, check=False)
        assert said.stdout == ""


def test_the_network_is_built_changed_and_removed(lab: Path) -> None:
    show = "tc -n h1 -s class show dev to-h2 | grep -o 'rate [^ ]*'"
    done = isolated(
        f"sh {lab} && {show} && tc -n h1 qdisc show dev to-h2 && ip netns exec h1 {sys.executable} -c {KNOCK} "
        f"&& sh {lab} rates && {show} && sh {lab} down && echo left: && ip netns list && ip -br link show type veth"
    )
    assert done.returncode == 0, done.stderr
    said = done.stdout
    assert "qdisc pfifo 10: parent 1:1 limit 20p" in said
    assert "answered: refused" in said
    assert said.index("rate 10Mbit") < said.index("rate 2Mbit")
    assert said.partition("left:\n")[2] == ""


def test_the_network_is_the_one_that_the_agent_builds(lab: Path, tmp_path: Path) -> None:
    skip_without_network()
    # Newer kernels have more offloads (AccECN) that the agent's way of setting them, ethtool's oldest, does not name.
    offloads = "ethtool -k to-{} | grep -E '^(tx-check|scatter|generic|[[:space:]]+tx-(tcp|tcp6)-seg)'"
    look = f"tc qdisc show; tc class show; ip -br address; ip route; ip neighbour; {offloads}"
    for node, other in (("h1", "h2"), ("h2", "h1")):
        seen = look.format(other)
        by_hand = isolated(f"sh {lab} && ip netns exec {node} sh -c {shlex.quote(seen)}")
        by_agent = call(tmp_path, "--quiet", command=("sh", "-c", seen), on=node)
        assert "pfifo 10: " in by_hand.stdout
        # The number of a device's other end is a matter of chance.
        assert re.sub(r"@if\d+", "@if", by_hand.stdout) == re.sub(r"@if\d+", "@if", by_agent.stdout)


def test_a_build_that_fails_halfway_leaves_nothing(lab: Path) -> None:
    lab.write_text(lab.read_text().replace("pfifo limit 20", "no-such-qdisc"))
    done = isolated(f"sh {lab}; echo status $?; ip netns list; ip -br link show type veth")
    assert done.stdout == "status 2\n"
    assert "qdisc kind is unknown" in done.stderr


def test_somebody_elses_namespace_is_not_touched(lab: Path) -> None:
    done = isolated(f"ip netns add h2; sh {lab}; echo status $?; ip netns list")
    assert done.stdout == "status 1\nh2\n"
    assert "namespace h2 is there already" in done.stderr


def test_a_point_is_chosen_by_its_values(cli: Cli, tmp_path: Path) -> None:
    write(tmp_path, SMALL + SWEEP)
    first, third = cli("commands", "lab.toml"), cli("commands", "lab.toml", "--point", "link.line.queue.limit=40p")
    assert "pfifo limit 10" in first.out
    assert "first of 3 points: link.line.queue.limit = 10p" in first.err
    assert "link.line.queue.limit=10p or 20p or 40p" in first.err
    assert "pfifo limit 40" in third.out
    assert third.err == ""


@pytest.mark.parametrize(
    ("choice", "told"),
    [
        (
            "link.line.queue.limit=30p",
            " link.line.queue.limit: found 30p; allowed: 10p or 20p or 40p; did you mean 40p?",
        ),
        (
            "link.line.rate=10mbit",
            ": found link.line.rate, which is not swept; allowed: link.line.queue.limit=10p or 20p",
        ),
        ("30p", ": found 30p; allowed: PATH=VALUE, of link.line.queue.limit=10p or 20p or 40p"),
    ],
)
def test_a_choice_that_there_is_not_is_told_with_those_there_are(
    cli: Cli, tmp_path: Path, choice: str, told: str
) -> None:
    write(tmp_path, SMALL + SWEEP)
    answer = cli("commands", "lab.toml", "--point", choice)
    assert (answer.status, answer.out) == (2, "")
    assert f"--point{told}" in answer.err


def test_an_experiment_without_a_sweep_has_nothing_to_choose_from(cli: Cli, tmp_path: Path) -> None:
    write(tmp_path, SMALL)
    answer = cli("commands", "lab.toml", "--point", "duration=1s")
    assert answer.status == 2
    assert "the experiment has no sweep; --set changes a key" in answer.err


def test_what_linux_cannot_be_set_to_is_refused(cli: Cli, tmp_path: Path) -> None:
    write(tmp_path, SMALL)
    answer = cli("commands", "lab.toml", "--set", 'link.line.queue={qdisc="codel", target="1500ns"}')
    assert (answer.status, answer.out) == (2, "")
    assert "h1>h2: target of 1500ns is not a whole number of microseconds" in answer.err


def test_the_script_says_what_it_is_of(tmp_path: Path) -> None:
    experiment: Experiment = load(write(tmp_path, SMALL + SWEEP), ["link.line.rate=2mbit"])
    text = script(experiment, experiment.points[1])
    assert "# lab: A small lab\n# link.line.queue.limit = 20p\n# --set link.line.rate=2mbit\n" in text
    assert "#   10.0.0.1         h1\n#   10.0.0.2         h2\n" in text
