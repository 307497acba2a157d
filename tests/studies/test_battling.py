"""`make battling`: the runs of four disciplines on two engines, and the page about them."""

from collections.abc import Callable
from pathlib import Path

import pytest

import battling
from bufferscope.engines import REGISTRY, Engine
from bufferscope.engines.outcome import Outcome
from bufferscope.engines.sim import engine as sim
from bufferscope.model.experiment import Point, load
from bufferscope.results.verdicts import Expectation, ExpectationResult, Verdict


def evaluated(engine: str, measured: float | None, reach: float | None, band: tuple[float, float]) -> ExpectationResult:
    expectation = Expectation("rtt.p50_ms", "less than 20 ms", band, {}, None, None)
    inside = measured is not None and band[0] <= measured <= band[1]
    verdict = Verdict.REPRODUCED if inside else Verdict.NOT_REPRODUCED
    return ExpectationResult(expectation, engine, {"queue": "codel"}, measured, 3, verdict, None, reach=reach)


def claim(sim: tuple[float, float | None], guest: tuple[float, float | None]) -> battling.Claim:
    """The same statement measured on two engines: means, and half of their intervals."""
    pair = [evaluated(name, *found, (0, 20)) for name, found in (("sim", sim), ("guest", guest))]
    (found,) = battling.claims(pair)
    return found


def test_engines_differ_if_their_intervals_together_are_shorter_than_their_distance() -> None:
    # Intervals of ± 3 and ± 4 are together ± 5.
    assert claim((10, 3), (14.9, 4)).differs is False
    assert claim((10, 3), (15.1, 4)).differs is True


@pytest.mark.parametrize(("sim", "guest"), [(None, 4.0), (3.0, None)])
def test_nothing_is_said_of_chance_if_an_interval_is_unknown(sim: float | None, guest: float | None) -> None:
    assert claim((10, sim), (100, guest)).differs is None


def test_a_verdict_is_told_once_or_for_each_engine() -> None:
    assert claim((10, 1), (15, 1)).verdict == "✓ reproduced"
    assert claim((10, 1), (15, 1)).is_judged_alike
    apart = claim((10, 1), (25, 1))
    assert apart.verdict.replace("\N{NO-BREAK SPACE}", " ") == "sim: ✓ reproduced; guest: ✗ not reproduced"
    assert not apart.is_judged_alike


class Other:
    """The simulator with other seeds, and if `slower` on a link of 8 Mbit/s."""

    slower = False

    def run(self, point: Point, seed: int, directory: Path, progress: Callable[[int, int], bool]) -> Outcome:
        if self.slower:
            slow = load("battling-udp-flood", ["link.bottleneck.rate=8mbit"])
            (point,) = (each for each in slow.points if each.values == point.values)
        return sim.run(point, seed + 1000, directory, progress)


@pytest.fixture
def other(monkeypatch: pytest.MonkeyPatch) -> Other:
    engine = Other()
    known = Engine("other", "for tests", engine.run, identity=lambda: f"{engine.slower}")
    monkeypatch.setitem(REGISTRY, "other", known)
    monkeypatch.setattr(battling, "NUMBERS", {"battling-udp-flood": ("rtt.p50_ms", "goodput.tcp_mbit")})
    return engine


def make(directory: Path, *more: str) -> str:
    """The page of `make battling` with the engines `sim` and `other`."""
    places = ["--out", str(directory / "runs"), "--page", str(directory / "page.md")]
    assert battling.main([*places, "--reference", "other", "--repeat", "3", *more]) == 0
    return (directory / "page.md").read_text().replace("\N{NO-BREAK SPACE}", " ")


def test_equal_engines_agree_on_every_statement(other: Other, tmp_path: Path) -> None:
    page = make(tmp_path)
    assert "**Of 4 statements of the document's abstract, 4 get the same verdict" in page
    assert "Nowhere do the two numbers differ" in page
    assert "the mean over 5 runs on the simulator and 3 on the kernel" in page
    assert {run.name.partition("-sim")[0] for run in (tmp_path / "runs" / "battling-udp-flood").glob("*-sim-s1-*")} == {
        "queue-pfifo_fast",
        "queue-codel",
        "queue-sfq",
        "queue-fq_codel",
    }, "those of the document"
    assert make(tmp_path, "--stored") == page


def test_a_difference_is_named_with_both_numbers(other: Other, tmp_path: Path) -> None:
    other.slower = True
    page = make(tmp_path)
    # TCP has its half of a link with 8 Mbit/s: less than 4 Mbit/s, and so less than its share of 10 Mbit/s.
    told = page.partition("## Where simulator and kernel differ")[2]
    assert "- `goodput.tcp_mbit at sfq`: 4.78" in told
    assert "sim: ✓ reproduced; other: ✗ not reproduced" in told
    assert "4 get the same verdict" not in page


def test_the_page_has_every_statement_of_its_experiments() -> None:
    page = battling.PAGE.read_text()
    for name in battling.NUMBERS:
        assert f"(`{name}`)" in page
        for entry in load(name).expectations:
            assert f"| {entry['says']} | " in page
