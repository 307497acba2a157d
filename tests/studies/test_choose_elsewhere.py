"""What a choice of a queue costs the traffic that does not cross the port, and whose pings judge it."""

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from choices import HOME, measured, study_of
from laboratory import SMALL, Answer, write

from bufferscope.analysis.lengths import size_command
from bufferscope.stats.estimate import estimate
from bufferscope.studies.choice.bottleneck import Bottleneck
from bufferscope.studies.choice.judging import MeasuredCandidate, _measured, judge

Cli = Callable[..., Answer]


def beside(one: MeasuredCandidate, mbit: float) -> MeasuredCandidate:
    """A candidate with the goodput of the other traffic."""
    return MeasuredCandidate(
        one.candidate, one.tc, one.goodput_mbit, one.rtt_p50_ms, one.rtt_p95_ms, None, estimate([mbit] * 3)
    )


def test_a_discipline_that_costs_the_other_direction_a_tenth_is_not_taken() -> None:
    greedy, fair = beside(measured("greedy", 9.9, 30), 24.0), beside(measured("fair", 9.8, 40), 28.0)
    verdict = judge([greedy, fair])
    assert verdict.best is fair
    assert verdict.rivals == (fair,)
    assert verdict.most_elsewhere_mbit == 28.0


def test_a_size_that_costs_the_other_direction_is_not_the_smallest() -> None:
    sizes = [(100, 10.0, 200.0, 28.0), (20, 9.9, 60.0, 27.0), (5, 9.85, 20.0, 20.0)]
    made = [beside(measured(f"pfifo {limit}", mbit, ms, limit=limit), back) for limit, mbit, ms, back in sizes]
    assert judge(made).smallest is made[1]


def test_what_starves_its_own_direction_is_no_measure_of_the_other() -> None:
    """Without an upload the download is fastest; that is asked of nobody."""
    starving, fair = beside(measured("starving", 1.0, 20), 40.0), beside(measured("fair", 9.8, 40), 28.0)
    assert judge([starving, fair]).best is fair


def test_a_place_knows_the_other_traffic_and_the_pings_across_it(tmp_path: Path) -> None:
    bottleneck = study_of(tmp_path, HOME).bottleneck
    assert (bottleneck.carried, bottleneck.elsewhere, bottleneck.probers) == (("upload",), ("download",), ("latency",))
    study = study_of(tmp_path, HOME + GATEWAY)
    assert study.bottleneck.probers == ("latency",), "the ping to the next hop does not cross it"


GATEWAY = '[[traffic]]\nname = "gateway"\nkind = "ping"\nfrom = "shed"\nto = "isp"\n'


def test_pings_that_go_elsewhere_do_not_judge(tmp_path: Path) -> None:
    study = study_of(tmp_path, HOME + GATEWAY)
    metrics = {
        "rtt.p50_ms": 2.0, "rtt.p95_ms": 90.0, "rtt.latency.p50_ms": 80.0, "rtt.latency.p95_ms": 120.0,
        "rtt.gateway.p50_ms": 1.0, "rtt.gateway.p95_ms": 2.0, "goodput.upload_mbit": 4.0, "goodput.download_mbit": 19.0,
    }  # fmt: skip
    found = _of(metrics, study.experiment.points[0].scenario, study.bottleneck)
    assert (found.rtt_p50_ms.mean, found.rtt_p95_ms.mean) == (80.0, 120.0)
    assert found.elsewhere_mbit is not None
    assert (found.goodput_mbit.mean, found.elsewhere_mbit.mean) == (4.0, 19.0)


def _of(metrics: dict[str, float], scenario: Any, bottleneck: Bottleneck) -> MeasuredCandidate:
    run: Any = SimpleNamespace(metrics=metrics, scenario=scenario)
    return _measured(measured("codel", 1, 1).candidate, "", [run], bottleneck)


@pytest.mark.parametrize(
    ("line", "command"),
    [
        ((10_000_000, 40_000_000, 1, "cubic"), "bufferscope size --rate 10mbit --rtt 40ms"),
        ((2_500_000, 500_000, 16, "reno"), "bufferscope size --rate 2500kbit --rtt 500us --flows 16 --congestion reno"),
    ],
)
def test_the_call_of_size_for_a_line(line: tuple[int, int, int, str], command: str) -> None:
    assert size_command(*line) == command


def test_the_page_begins_with_the_verdict_the_table_and_the_line_to_type(cli: Cli, tmp_path: Path) -> None:
    lab = write(tmp_path, SMALL)
    shown = cli("choose", str(lab), "--repeat", "1", "--out", str(tmp_path / "out"), "--report", str(tmp_path / "page"))
    assert shown.status == 0
    assert "For the lengths between those tried: bufferscope size --rate 10mbit --rtt 20ms" in shown.out.replace(
        "\n", " "
    )
    page = (tmp_path / "page" / "index.html").read_text()
    main = page[page.index("<main>") :]
    order = [
        main.index(part)
        for part in (">Take ", '<table class="answer">', "tc qdisc replace dev DEV root ", "<h3>Network")
    ]
    assert order == sorted(order)
    assert "of the longest wait" not in main
    assert "explain gives the BDP" in page
