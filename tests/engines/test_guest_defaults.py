"""The defaults of every queueing discipline are those that a kernel reports, in `tc -j qdisc show` of a guest.

No default is written here. A discipline is added with nothing but what `tc` requires, and what the kernel then reports
is compared with the scenario of a file that says as little. Each parameter that only one of the two has is listed.
"""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from guests import build_guest
from laboratory import SMALL, write
from shells import call

from bufferscope import _core
from bufferscope.model.experiment import load

pytestmark = pytest.mark.guest

REQUIRED = {
    "red": ("limit = 400000, avpkt = 1000", "limit 400000 avpkt 1000"),
    "choke": ("limit = 1000, bandwidth = '10mbit'", "limit 1000 bandwidth 10mbit"),
    "tbf": ("rate = '1mbit', burst = 10000, limit = 20000", "rate 1mbit burst 10000 limit 20000"),
}
"""Keys of the file, and arguments of `tc`, of the disciplines that have no default for some parameters."""
NEWER = {"dualpi2"}
"""What the guest's kernel does not have: dualpi2 came with Linux 6.17."""
OFF: tuple[object, ...] = (None, False, 0, [])
"""`tc` does not print what is off."""
UNREPORTED = {
    "red": {"avpkt_bytes", "burst_packets", "bandwidth_bps", "probability"},
    "choke": {"avpkt_bytes", "burst_packets", "bandwidth_bps", "probability"},
    "tbf": {"limit_bytes"},
    "sfq": {"flows"},
    "fq": {"pacing"},
    "netem": {"distribution"},
    "cake": {"cells"},
}
"""Parameters that are on, and are not printed: the averages of red and choke are tables in the kernel; `tc` prints
the limit of tbf as a latency, and pacing only if it is off."""
OTHERS = {
    "pfifo_fast": {"bands", "priomap", "multiqueue"},
    "prio": {"multiqueue"},
    "htb": {"direct_packets_stat"},
    "cake": {"fwmark"},
    "netem": {"gap"},
    "choke": {"harddrop", "adaptive", "nodrop"},
    "tbf": {"lat"},
}
"""What is printed and is no parameter of ours: what cannot be changed, counters, and what is not modelled."""
FRAME = 1514
"""The MTU and the Ethernet header."""
WHEN_NONE = {
    ("fq_codel", "quantum"): FRAME,
    ("fq", "quantum"): 2 * FRAME,
    ("fq", "initial_quantum"): 10 * FRAME,
    ("cake", "bandwidth"): "unlimited",
    ("htb", "default"): "0",
}
"""What the kernel takes where ours is None: quanta depend on the MTU
(`sch_fq_codel.c`, `sch_fq.c`)."""
WORDS = {"no-ack-filter": "disabled"}
FLAG = {"horizon_drop"}
"""`tc` prints their name alone if they are on."""
INEXACT_NS = {
    **{(each, key): 1024 + 1000 for each in ("codel", "fq_codel") for key in ("target_ns", "interval_ns")},
    **{(each, "tupdate_ns"): 4_000_000 for each in ("pie", "fq_pie")},
}
"""How far a time may be off: CoDel counts in units of 1024 ns, and `tc` prints whole microseconds; PIE counts its
interval in ticks, of which the guest's kernel has 250 a second."""


def name(key: str) -> str:
    """The name in `tc -j` of a key of the scenario, whose name ends with its unit."""
    return re.sub("_(packets|bytes|ns|bps|percent)$", "", key).replace("ack_filter", "ack-filter")


def flat(parameters: dict[str, Any]) -> dict[str, Any]:
    """The parameters with those of an inner table beside them."""
    inner = [value for value in parameters.values() if isinstance(value, dict)]
    own = {key: value for key, value in parameters.items() if key != "qdisc" and not isinstance(value, dict)}
    return own | {key: value for each in inner for key, value in each.items()}


def agree(discipline: str, key: str, ours: Any, reported: Any) -> bool:
    """Whether a parameter is what `tc -j` printed."""
    if ours is None:
        return bool(reported == WHEN_NONE[discipline, name(key)])
    if key in FLAG:
        return ours is (reported is None)
    if key.endswith("_ns") and key != "timer_slack_ns":
        return bool(abs(ours - 1000 * reported) <= INEXACT_NS.get((discipline, key), 0))
    if key.endswith("_bps"):
        return bool(ours == 8 * reported)
    return bool(reported == (WORDS.get(ours, ours) if isinstance(ours, str) else ours))


@pytest.fixture(scope="module")
def reported(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """What a guest's kernel prints of each discipline; without those that it does not have."""
    build_guest()
    directory = tmp_path_factory.mktemp("defaults")
    write(directory, SMALL)
    added = {kind: REQUIRED.get(kind, ("", ""))[1] for kind in _core.QDISCS}
    lines = [
        f"tc qdisc replace dev to-h2 root {kind} {arguments} 2>/dev/null && tc -j qdisc show dev to-h2 root"
        for kind, arguments in added.items()
    ]
    command = ("sh", "-c", "; ".join([*lines, "true"]))
    done = call(directory, "--engine", "guest", "--quiet", command=command, patience_s=300)
    assert done.returncode == 0, done.stderr
    found = [json.loads(line)[0] for line in done.stdout.splitlines() if line.startswith("[")]
    return {each["kind"]: each["options"] for each in found}


def test_the_kernel_has_every_discipline_except_the_newest(reported: dict[str, dict[str, Any]]) -> None:
    assert set(_core.QDISCS) - reported.keys() == NEWER


@pytest.mark.parametrize("discipline", sorted(_core.QDISCS.keys() - NEWER))
def test_the_defaults_are_those_of_the_kernel(
    discipline: str, reported: dict[str, dict[str, Any]], tmp_path: Path
) -> None:
    keys = ", ".join(filter(None, [f"qdisc = '{discipline}'", REQUIRED.get(discipline, ("", ""))[0]]))
    file = write(tmp_path, re.sub(r"^queue = .*$", f"queue = {{ {keys} }}", SMALL, flags=re.MULTILINE))
    queue: Any = load(file).points[0].scenario["links"][0]["forward"]["queue"]
    assert queue["qdisc"] == discipline
    options = reported[discipline]
    ours = flat(queue)
    differences = {
        key: (value, options[name(key)])
        for key, value in ours.items()
        if name(key) in options and not agree(discipline, key, value, options[name(key)])
    }
    assert differences == {}
    silent = {key for key, value in ours.items() if name(key) not in options and value not in OFF}
    assert silent == UNREPORTED.get(discipline, set())
    assert options.keys() - set(map(name, ours)) == OTHERS.get(discipline, set())
