"""`make agreement --random`: the scenarios are drawn from a seed alone, can all be run, and have every part."""

import json
import re
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from bufferscope import _core
from bufferscope.engines import REGISTRY, Engine
from bufferscope.engines.outcome import Outcome
from bufferscope.engines.sim import engine as sim
from bufferscope.model.experiment import Experiment, Point
from dice import Value
from drawing import CONTROLS, HOST_JITTER_US, NO_GUEST_HAS, draw, random_matrix
from drawn_queues import FULL_BYTES, LEAST_DEPTH, QUEUES, full_packet_us, has_own_rate
from drawn_traffic import MOST_DATAGRAMS, OTHERS
from write import main

MANY = 300


@pytest.fixture(scope="module")
def many() -> list[tuple[str, str]]:
    return [draw(7, index, None) for index in range(1, MANY + 1)]


def test_everything_that_a_guest_has_is_drawn() -> None:
    defined = json.loads(_core.schema())["$defs"]
    controls = {each["const"] for each in defined["CongestionControl"]["oneOf"]}
    kinds = {each["properties"]["kind"]["const"] for each in defined["Traffic"]["oneOf"]}
    assert QUEUES.keys() | NO_GUEST_HAS >= _core.QDISCS.keys()
    assert set(CONTROLS) | NO_GUEST_HAS >= controls
    assert OTHERS.keys() | NO_GUEST_HAS >= kinds - {"ping"}, "every scenario has a ping"


def test_the_seed_and_the_number_decide(many: list[tuple[str, str]]) -> None:
    assert draw(7, 1, None) == many[0]
    assert len({text for _, text in many} | {draw(8, 1, None)[1]}) == MANY + 1
    assert [entry.name for entry in random_matrix(7, 3, None).entries] == [name for name, _ in many[:3]]


def test_every_scenario_can_run_on_a_kernel_and_every_part_occurs(many: list[tuple[str, str]]) -> None:
    for name, file in many:
        (point,) = Experiment(name, file.encode(), "drawn.toml").points
        _core.check_on_linux(point.core)
    text = "\n".join(file for _, file in many)
    for part in (
        *(f'qdisc = "{name}"' for name in QUEUES),
        *(f'name = "other-{kind}"' for kind in OTHERS),
        *(f'congestion = "{name}"' for name in CONTROLS),
        *("ring = ", "gso_max_segs = 16", "ecn = true", "reverse = ", "overhead = ", "dscp = ", "stagger = "),
        *("loss = ", "gemodel = ", "keep_order = ", "reorder = "),
    ):
        assert part in text, part
    flows = [int(number) for number in re.findall(r"flows = (\d+)", text)]
    assert (min(flows), max(flows) > 40) == (1, True)
    assert {"1", "2"} == set(re.findall(r'name = "bulk(\d)"', text))


def test_no_queue_is_so_short_that_microseconds_decide(many: list[tuple[str, str]]) -> None:
    text = "\n".join(file for _, file in many)
    limits = {unit: min(map(int, re.findall(rf'limit = "(\d+){unit}"', text))) for unit in "pb"}
    assert limits == {"p": LEAST_DEPTH, "b": LEAST_DEPTH * FULL_BYTES}
    assert min(map(int, re.findall(r'txqueuelen = "(\d+)p"', text))) >= LEAST_DEPTH


def test_no_scenario_has_a_fixed_phase(many: list[tuple[str, str]]) -> None:
    for name, text in many:
        access, bottleneck = tomllib.loads(text)["link"]
        jitter_us, rate = int(access["wire"]["jitter"].removesuffix("us")), int(bottleneck["rate"].removesuffix("bit"))
        least, most = HOST_JITTER_US
        assert jitter_us == sorted([least, full_packet_us(rate) // 2, most])[1], name
        assert access["wire"]["keep_order"], name
        assert int(access["delay"].removesuffix("us")) > jitter_us, name


def test_a_ring_is_drawn_only_where_the_guests_wire_can_show_it(many: list[tuple[str, str]]) -> None:
    """Its wire takes a full packet's time for a handshake, and sends early what arrives after a gap."""
    rings = [
        (name, file) for name, text in many if "ring" in (file := tomllib.loads(text))["link"][1].get("forward", {})
    ]
    assert len(rings) > 20
    for name, file in rings:
        bottleneck = file["link"][1]
        assert not has_own_rate(bottleneck["queue"]), name
        full_us = full_packet_us(int(bottleneck["rate"].removesuffix("bit")))
        for entry in file["traffic"][:-1]:
            apart_us = int(entry["stagger"].removesuffix("us")) if entry["flows"] > 1 else None
            assert apart_us is None or apart_us > 2.9 * full_us, name


@pytest.mark.parametrize(
    ("queue", "has"),
    [
        ({"qdisc": "tbf", "rate": "1mbit"}, True),
        ({"qdisc": "htb", "class": {}}, True),
        ({"qdisc": "cake", "bandwidth": "1mbit"}, True),
        ({"qdisc": "cake"}, False),
        ({"qdisc": "fq", "maxrate": "1mbit"}, True),
        ({"qdisc": "netem", "rate": "1mbit"}, True),
        ({"qdisc": "netem", "delay": "1ms"}, False),
        ({"qdisc": "red", "bandwidth": "1mbit"}, False),
    ],
)
def test_disciplines_with_a_rate_of_their_own(queue: dict[str, Value], has: bool) -> None:
    assert has_own_rate(queue) == has


def test_no_flood_is_more_than_a_guest_can_carry(many: list[tuple[str, str]]) -> None:
    floods = [each for _, text in many for each in tomllib.loads(text)["traffic"] if each["kind"] == "udp"]
    datagrams = [int(each["rate"].removesuffix("bit")) / 8 / int(each["size"].removesuffix("b")) for each in floods]
    assert max(datagrams) <= 1.01 * MOST_DATAGRAMS


def test_kernels_with_byte_queue_limits_have_them() -> None:
    rings = {kernel: "".join(draw(1, n, kernel)[1] for n in range(60)) for kernel in ("6.1", "6.12")}
    assert "bql = true" in rings["6.12"]
    assert "bql = false" not in rings["6.12"]
    assert "bql = true" not in rings["6.1"]


def test_the_page_has_what_repeats_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(REGISTRY, "other", Engine("other", "for tests", sim.run, identity=lambda: ""))
    places = ["--out", str(tmp_path / "runs"), "--pages", str(tmp_path), "--reference", "other"]
    assert main([*places, "--random", "2", "--seed", "3", "--repeat", "1", "--most", "6"]) == 0
    page = (tmp_path / "agreement-random.md").read_text(encoding="utf-8")
    assert "In **2** of the scenarios every comparison is within its tolerance" in page
    assert 'make agreement ARGS="--random 2 --seed 3 --most 6"' in page
    for entry in random_matrix(3, 2, None).entries:
        assert f"| {entry.name} |" in page


def test_a_scenario_that_differs_has_its_file_on_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name, text = draw(3, 1, None)
    (slower,) = Experiment("slower", text.encode(), "slower.toml", ["link.bottleneck.delay=300ms"]).points

    def run(_: Point, seed: int, directory: Path, progress: Callable[[int, int], bool]) -> Outcome:
        return sim.run(slower, seed, directory, progress)

    monkeypatch.setitem(REGISTRY, "other", Engine("other", "for tests", run, identity=lambda: ""))
    places = ["--out", str(tmp_path / "runs"), "--pages", str(tmp_path), "--reference", "other"]
    assert main([*places, "--random", "1", "--seed", "3", "--repeat", "2"]) == 1, "there is no known cause"
    page = (tmp_path / "agreement-random.md").read_text(encoding="utf-8")
    assert f"{name}:\n\n```toml\n{text.strip()}\n```" in page


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--random", "0"], "--random: found 0; allowed: at least 1"),
        (["--random", "5", "--most", "1"], "--most: found 1; allowed: at least 2"),
        (["--random", "-3"], "--random: found -3; allowed: at least 1"),
        (["--random", "1", "--kernel", "new"], "--kernel: found 'new'; allowed: a series, such as 6.12"),
        (["--kernel", "6.12"], "--kernel needs --random"),
    ],
)
def test_impossible_options_are_refused(options: list[str], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(options)
    assert words in capsys.readouterr().err
