"""Repetitions in which flows share a flow queue: they are named, and the others are judged if they are the majority."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from handmade import MS, TCP, UDP, HandmadeRun, scenario

import bufferscope as bs
from bufferscope.cli.documents import result_document
from bufferscope.cli.tables import print_expectations
from bufferscope.report.verdicts import view
from bufferscope.results.expectations import evaluate
from bufferscope.results.verdicts import ExpectationResult, Verdict

WHY = "tcp/1 shares its flow queue in r1>h2 with flood/1, which happens to two flows once in 1,024"
ENTRY: Any = {
    "metric": "goodput.tcp_mbit",
    "says": "with it, TCP has its share",
    "band": [4.2, 5.5],
    "differs": None,
    "where": {},
    "relative_to": None,
    "comparisons": [{"point": 0, "relative_to": None}],
    "not_applicable": None,
}


def repetition(directory: Path, seed: int, mbit: float, collides: bool, position: int = 0) -> bs.Run:
    """A run of 10 s in which TCP delivers so much, in a flow queue of its own or in that of the flood."""
    queues = [
        {"t_ns": t * MS, "port": "r1>h2", "queue": queue, "flow": flow, "packets": packets, "bytes": 1500 * packets}
        for t in range(0, 10_000, 100)
        for queue, flow, packets in ((7 if collides else 8, "tcp/1", 2), (7, "flood/1", 900))
    ]
    delivered = [
        {"t_ns": t * MS, "flow": "tcp/1", "delivered_bytes": round(mbit * 1e6 / 8 * t / 1000)} for t in (0, 10_000)
    ]
    run = HandmadeRun(
        scenario({"tcp": TCP, "flood": UDP}, queue={"qdisc": "fq_codel", "flows": 1024}),
        rows={"flow_queues": queues, "flows": delivered},
        id=f"{position}-{seed}",
        seed=seed,
        point={"queue": f"{position}"},
        position=position,
        expectations=[ENTRY],
    )
    return bs.Run(run.write(directory))


def repeated(directory: Path, colliding: Sequence[int], position: int = 0) -> list[bs.Run]:
    """Five repetitions: 0.1 Mbit/s in those that collide, 4.8 in the others."""
    return [
        repetition(directory, seed, 0.1 if seed in colliding else 4.8, seed in colliding, position)
        for seed in range(1, 6)
    ]


def judged(runs: Sequence[bs.Run], **more: Any) -> ExpectationResult:
    entries: Any = [{**ENTRY, **more}]
    (evaluated,) = evaluate(entries, runs)
    return evaluated


def test_one_unlucky_repetition_is_named_and_the_others_are_judged(tmp_path: Path) -> None:
    found = judged(repeated(tmp_path, [1]))
    assert found.verdict is Verdict.REPRODUCED
    assert found.measured == pytest.approx(4.8, rel=1e-3)
    assert found.runs == 4
    assert [each.sentence for each in found.apart] == [f"seed 1: 0.1; {WHY}; judged without it"]


def test_a_repetition_is_set_apart_whatever_its_value(tmp_path: Path) -> None:
    """The criterion is the collision and not the measurement: here, it helps to reproduce nothing."""
    runs = [repetition(tmp_path, seed, 4.8 if seed == 1 else 0.1, seed == 1) for seed in range(1, 6)]
    found = judged(runs)
    assert (found.verdict, found.runs) == (Verdict.NOT_REPRODUCED, 4)
    assert [each.measured for each in found.apart] == [pytest.approx(4.8, rel=1e-3)]


@pytest.mark.parametrize("colliding", [[1, 2, 3], [1, 2, 3, 4, 5]])
def test_what_happens_in_most_repetitions_is_judged(tmp_path: Path, colliding: list[int]) -> None:
    found = judged(repeated(tmp_path, colliding))
    assert (found.verdict, found.runs) == (Verdict.NOT_REPRODUCED, 5)
    assert [each.sentence for each in found.apart] == [f"seed {seed}: 0.1; {WHY}" for seed in colliding]


def test_a_single_run_is_judged_and_named(tmp_path: Path) -> None:
    found = judged([repetition(tmp_path, 1, 0.1, collides=True)])
    assert (found.verdict, found.runs, len(found.apart)) == (Verdict.NOT_REPRODUCED, 1, 1)
    assert found.apart[0].is_judged


def test_without_a_collision_nothing_is_set_apart(tmp_path: Path) -> None:
    found = judged(repeated(tmp_path, []))
    assert (found.runs, found.apart) == (5, ())


def test_a_ratio_names_the_repetitions_of_both_points(tmp_path: Path) -> None:
    runs = [*repeated(tmp_path, [1]), *repeated(tmp_path, [4], position=1)]
    ratio: Mapping[str, Any] = {
        "band": [0.9, 1.1],
        "comparisons": [{"point": 0, "relative_to": 1}],
        "relative_to": {"queue": "1"},
    }
    found = judged(runs, **ratio)
    assert found.measured == pytest.approx(1, rel=1e-3)
    assert [each.seed for each in found.apart] == [1, 4]


def test_every_output_names_the_repetition(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    result = bs.Result(repeated(tmp_path, [1]))
    document: Any = json.loads(json.dumps(result_document(result)))
    ((apart,),) = [each["apart"] for each in document["expectations"]]
    assert apart == {"seed": 1, "measured": pytest.approx(0.1, rel=1e-3), "judged": False, "why": WHY}
    sentence = f"seed 1: 0.1; {WHY}; judged without it"
    assert view(result.expectations[0], "here").apart == (sentence,)
    print_expectations([result])
    assert f"seed 1: 0.1; {WHY}; judged without it." in " ".join(capsys.readouterr().out.split())
