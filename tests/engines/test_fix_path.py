"""`bufferscope fix` on paths of this machine's kernel: the queue that a measurement finds is gone after the cure.

Two homes are measured at the same time, most of it asleep. In one, the laptop cures its own queue. In the other, the
printed commands of a Linux router are typed on it, and cure the queues of a modem and of its provider, which were both
full.
"""

import json
import os
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median
from typing import Any, cast

import pytest
from households import HOME, SERVER, Network
from laboratory import until_undisturbed
from shells import skip_without_network

import bufferscope as bs
from bufferscope.engines.live.program import program

AT_LAPTOP = """
ip netns exec laptop tc qdisc add dev eth0 root handle 1: htb default 1
ip netns exec laptop tc class add dev eth0 parent 1: classid 1:1 htb rate 8mbit burst 2k cburst 2k quantum 1514
ip netns exec laptop tc qdisc add dev eth0 parent 1:1 handle 10: pfifo limit 600
"""
BEHIND_ROUTER = """
ip netns exec modem tc qdisc add dev line root handle 1: tbf rate 10mbit burst 3028 limit 500000
ip netns exec modem tc qdisc add dev home root handle 1: tbf rate 25mbit burst 6056 limit 1000000
"""
SHOW = "tc qdisc show | sed 's/ direct_packets_stat [0-9]*//'; tc class show dev eth0"
SHORTER, SHORT_MS = 0.2, 10
"""What a cure has to reach: 80 % less delay or 10 ms ..."""
GOODPUT, SHAPED = 0.9, {"up": 0.85, "down": 0.8}
"""... and this part of the goodput: a shaper leaves a margin below the slow seconds, of 5 % or 10 %."""
BUSY = 0.9
"""A test whose processors were as busy as this for half of the time was disturbed."""
IS_WHOLE = "WHOLE_CATALOGUE" in os.environ
PLACES = {"up": "router_uplink", "down": "access_downlink"}
Found = dict[str, Any]


class House:
    """A home with a server that waits for tests."""

    def __init__(self, network: Network, directory: Path) -> None:
        self.network, self.directory = network, directory
        network.start([str(program()), "serve", "--token-file", f"{directory}/token"], on="server")

    def call(self, *arguments: str) -> Found:
        done = self.network.bufferscope(*arguments, on="laptop", more={"BUFFERSCOPE_LIVE": str(program())})
        assert done.stdout, done.stderr
        return cast(Found, json.loads(done.stdout))

    def measure(self, phases: str) -> Found:
        words = ("measure", SERVER, "--token-file", "token", "--phases", phases, "--at-most", "10")
        return self.call(*words, "--no-report", "--json")


def own_queue(house: House) -> Found:
    """The laptop's own queue, found, cured and restored."""
    before = house.network.shell(SHOW, on="laptop")
    house.measure("upload")
    found = house.call("fix", "--apply", "--yes", "--token-file", "token", "--at-most", "10", "--json")
    changed = house.network.shell(SHOW, on="laptop")
    undone = house.network.bufferscope("fix", "--undo", on="laptop").stdout
    return {**found, "shown": [before, changed, house.network.shell(SHOW, on="laptop")], "undone": undone}


def routers_queues(house: House) -> Found:
    """The queues behind the router, found, and cured by the commands that are printed for a Linux router."""
    before = house.measure("upload,download")
    words = ("fix", "--device", "linux", "--link", "ethernet", "--json")
    advice = house.call(*words, *(() if _has_cake(house.network) else ("--qdisc", "bfifo")))
    shown = [house.network.shell("tc qdisc show", on="router")]
    lines = [line for step in advice["steps"] for line in step.get("commands", [])]
    house.network.shell("\n".join(lines), on="router")
    after = house.measure("upload,download")
    house.network.shell("\n".join(line for step in advice["steps"] for line in step["undo"]), on="router")
    shown.append(house.network.shell("tc qdisc show", on="router"))
    return {"before": before, "advice": advice, "after": after, "shown": shown}


def _has_cake(network: Network) -> bool:
    return network.run("tc", "qdisc", "add", "dev", "lo", "root", "cake", on="provider").returncode == 0


STORIES: Mapping[str, tuple[str, Callable[[House], Found]]] = {
    "own": (AT_LAPTOP, own_queue),
    "router": (BEHIND_ROUTER, routers_queues),
}


def tell(name: str, directory: Path) -> tuple[Found, str]:
    """What happened in a home, and what disturbed it."""
    planted, story = STORIES[name]
    with Network(HOME + planted, directory) as network:
        found = story(House(network, directory))
    return found, _disturbance(directory)


def _disturbance(directory: Path) -> str:
    """Whether the processors were busy with something else."""
    shares = []
    for run in bs.load(directory / "results" / SERVER).runs:
        for phase in run.meta["summary"]["live"]["phases"]:
            series = phase.get("processors", {}).get("client", "").split()
            shares += [float(each.split("/")[1]) for each in series if each.split("/")[1]]
    busy = median(shares) if shares else 1.0
    return f"a processor was busy for {busy:.0%} (median)" if busy > BUSY else ""


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Found, str]]:
    """What happened in both homes."""
    skip_without_network()
    stories = list(STORIES) if IS_WHOLE else ["own"]
    directories = [tmp_path_factory.mktemp(name) for name in stories]
    with ThreadPoolExecutor(len(stories)) as pool:
        return dict(zip(stories, pool.map(tell, stories, directories), strict=True))


def hold(
    name: str, first: dict[str, tuple[Found, str]], directories: pytest.TempPathFactory, cured: Callable[[Found], bool]
) -> None:
    """Check what happened in a home; if that was disturbed, let it happen again."""
    told = iter([first[name]])

    def attempt() -> tuple[bool, str]:
        found, disturbance = next(told, None) or tell(name, directories.mktemp(name))
        good = cured(found)
        if not good:
            print(
                json.dumps(
                    found.get("directions") or [_numbers(found[w], d) for d in PLACES for w in ("before", "after")]
                )
            )
        return good, disturbance

    until_undisturbed(attempt)


def test_the_own_queue_is_cured_and_the_settings_are_restored(
    first: dict[str, tuple[Found, str]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    def cured(found: Found) -> bool:
        (way,) = found["directions"]
        before, after = way["added_p95_ms"]
        planted, changed, restored = found["shown"]
        assert restored == planted, "on a busy machine too"
        return bool(
            found["kept"]
            and changed != planted
            and found["undone"].startswith("Undone")
            and before > 150  # TCP small queues leave much of the 910 ms empty
            and after < max(SHORTER * before, SHORT_MS)
            and way["goodput_mbit"][1] >= GOODPUT * way["goodput_mbit"][0]
        )

    hold("own", first, tmp_path_factory, cured)


@pytest.mark.skipif(not IS_WHOLE, reason="it takes minutes: make test-slow runs it")
def test_the_commands_for_a_linux_router_cure_both_directions(
    first: dict[str, tuple[Found, str]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    def cured(found: Found) -> bool:
        shown, restored = found["shown"]
        assert shown == restored, "on a busy machine too"
        places = {queue["direction"]: queue["place"] for queue in found["advice"]["queues"]}
        return places == PLACES and all(_is_cured(found, direction) for direction in PLACES)

    hold("router", first, tmp_path_factory, cured)


def _is_cured(found: Found, direction: str) -> bool:
    before, after = (_numbers(found[when], direction) for when in ("before", "after"))
    delays = [each["added"]["p95_ns"] or float("inf") for each in (before, after)]
    return bool(
        delays[0] > 200e6  # the planted queues take 400 and 320 ms when they are full
        and delays[1] < max(SHORTER * delays[0], SHORT_MS * 1e6)
        and after["goodput"]["mean_bps"] >= SHAPED[direction] * before["goodput"]["mean_bps"]
    )


def _numbers(document: Found, direction: str) -> Found:
    """The numbers of a direction in the phase that loads it."""
    kind = "upload" if direction == "up" else "download"
    phase = next(each for each in document["verdict"]["phases"] if each["kind"] == kind)
    found: Found = next(each for each in phase["numbers"]["directions"] if each["direction"] == direction)
    return found
