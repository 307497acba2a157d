"""Choosing a queue: what is tried, what follows from the measurements, and what the user is told."""

import json
import math
from collections.abc import Callable
from pathlib import Path

import pytest
from choices import HOME, measured, study_of
from laboratory import SMALL, Answer, write

import bufferscope as bs
from bufferscope import _core
from bufferscope.base.errors import InputError
from bufferscope.model.disciplines import SHAPERS
from bufferscope.model.experiment import load
from bufferscope.model.network import bulk_flows
from bufferscope.stats.estimate import estimate
from bufferscope.studies.choice.bottleneck import find
from bufferscope.studies.choice.candidates import QueueCandidate
from bufferscope.studies.choice.judging import MeasuredCandidate, judge

Cli = Callable[..., Answer]


SIZES = [
    measured(f"pfifo {limit}", mbit, ms, limit=limit)
    for limit, mbit, ms in [(100, 10, 200), (20, 9.85, 60), (5, 8, 20)]
]


def test_the_smallest_size_keeps_98_percent_of_the_goodput() -> None:
    verdict = judge(SIZES)
    assert verdict.smallest is SIZES[1]
    assert verdict.best is SIZES[1]  # smaller ones do not compete, larger ones neither


def test_no_size_may_keep_the_goodput() -> None:
    codel = measured("codel", 12, 40)
    assert judge([*SIZES, codel]).smallest is None
    assert judge([*SIZES, codel]).best is codel


def test_the_discipline_with_the_shortest_times_is_taken_if_it_keeps_nine_tenths() -> None:
    codel, greedy = measured("codel", 9.2, 40), measured("greedy", 8.9, 21)
    verdict = judge([*SIZES, codel, greedy])
    assert verdict.best is codel
    assert verdict.as_good == ()


def test_a_queue_that_only_limits_its_length_must_keep_the_goodput() -> None:
    codel, bytes_, head = measured("codel", 9.5, 40), measured("bfifo", 9.7, 30), measured("pfifo_head_drop", 9.85, 50)
    verdict = judge([*SIZES, codel, bytes_, head])
    assert verdict.best is codel
    assert bytes_ not in verdict.rivals
    assert head in verdict.rivals


def test_the_call_counts_more_than_pings() -> None:
    clear, quick = measured("clear", 9.8, 60, mos=4.3), measured("quick", 9.8, 30, mos=3.9)
    verdict = judge([clear, quick])
    assert verdict.best is clear
    assert [criterion.name for criterion in verdict.criteria] == ["call", "latency"]


def test_calls_alike_are_told_apart_by_pings() -> None:
    slow, quick = measured("slow", 9.8, 60, mos=4.33), measured("quick", 9.8, 30, mos=4.3)
    assert judge([slow, quick]).best is quick


def test_what_the_repetitions_scatter_is_no_difference() -> None:
    one, other = measured("one", 9.8, 40, scatter=0.2), measured("other", 9.8, 44, scatter=0.2)
    assert judge([one, other]).as_good == (other,)
    one, other = measured("one", 9.8, 40, scatter=0.001), measured("other", 9.8, 44, scatter=0.001)
    assert judge([one, other]).as_good == ()


def test_of_queues_that_are_alike_a_usual_one_is_taken() -> None:
    times_ms = {"fq_pie": 36.52, "fq_codel": 36.54, "sfq": 36.53}
    exotic, usual, alike = (measured(name, 9.8, ms) for name, ms in times_ms.items())
    verdict = judge([exotic, usual, alike])
    assert verdict.best is usual
    assert verdict.as_good == (exotic, alike)
    assert judge([exotic, measured("fq_codel", 9.8, 41), alike]).best is exotic  # a difference that matters counts


def test_one_repetition_knows_only_what_is_too_small_to_notice() -> None:
    one, near, far = (measured(name, 9.8, ms, n=1) for name, ms in [("one", 40), ("near", 40.9), ("far", 42)])
    assert judge([one, near, far]).as_good == (near,)


def test_hidden_times_lose_and_if_all_are_hidden_the_median_decides() -> None:
    lossy, clean = measured("lossy", 9.8, math.inf), measured("clean", 9.8, 300)
    assert judge([lossy, clean]).best is clean
    first, second = (
        MeasuredCandidate(QueueCandidate(name, {}), "", estimate([9.0]), estimate([ms]), estimate([math.inf]))
        for name, ms in [("first", 50.0), ("second", 40.0)]
    )
    assert judge([first, second]).best is second


def test_the_bottleneck_is_where_the_rate_is_smallest(tmp_path: Path) -> None:
    point = load(write(tmp_path, HOME)).points[0].scenario
    bottleneck = find(point)
    assert (bottleneck.port.name, bottleneck.side, bottleneck.rate_bps, bottleneck.round_trip_ns) == (
        "home>isp",
        "reverse",
        5_000_000,
        30_000_000,
    )
    assert bottleneck.others == ("wan.forward",)
    assert bottleneck.carried == ("upload",)
    assert bottleneck.key == "link.wan.reverse.queue"
    assert find(point, "wan.forward").port.name == "isp>home"
    assert find(point, "core").port.link == "core"


@pytest.mark.parametrize(
    ("link", "words"),
    [
        ("wna", "found 'wna'; allowed: core, wan, spare; did you mean wan?"),
        ("wan.down", "allowed: wan, or with a direction, wan.forward or wan.reverse"),
        ("spare", "it has no rate, so no queue can build up"),
    ],
)
def test_an_impossible_link_is_refused(tmp_path: Path, link: str, words: str) -> None:
    with pytest.raises(InputError, match="--link") as refused:
        find(load(write(tmp_path, HOME)).points[0].scenario, link)
    assert words in str(refused.value)


def test_a_network_without_rates_or_without_data_has_no_queue(tmp_path: Path) -> None:
    unrated = HOME.replace('rate = "1gbit"\n', "").replace('forward.rate = "20mbit"\nreverse.rate = "5mbit"\n', "")
    with pytest.raises(InputError, match="no link on the path of the data has a rate"):
        find(load(write(tmp_path, unrated)).points[0].scenario)
    calls = HOME.replace('kind = "tcp"', 'kind = "voip"')
    with pytest.raises(InputError, match="no traffic that carries data"):
        find(load(write(tmp_path, calls)).points[0].scenario)


def test_every_discipline_is_tried_or_said_to_be_left_out(tmp_path: Path) -> None:
    study = study_of(tmp_path, SMALL)
    tried = {candidate.queue["qdisc"] for candidate in study.candidates}
    left_out = {kind for kind in _core.QDISCS if any(note.startswith(f"{kind} is not tried") for note in study.notes)}
    assert tried | left_out == set(_core.QDISCS) - set(SHAPERS)
    assert tried >= {"pfifo", "codel", "red", "pie", "pfifo_fast"}


def test_each_candidate_is_what_tc_gets(tmp_path: Path) -> None:
    study = study_of(tmp_path, SMALL)
    for candidate, tc, point in zip(study.candidates, study.commands, study.experiment.points, strict=True):
        queue = point.scenario["links"][0]["forward"]["queue"]
        assert queue["qdisc"] == candidate.queue["qdisc"] == tc.split()[0]
    commands = dict(zip((candidate.name for candidate in study.candidates), study.commands, strict=True))
    assert commands["codel"] == "codel"
    assert commands["cake"] == "cake"
    assert commands["bfifo"].startswith("bfifo limit ")
    assert commands["pfifo 17"] == "pfifo limit 17"  # 10 Mbit/s for 20 ms are 16.5 packets of 1514 bytes


def test_the_queue_of_the_file_is_tried_and_marked(tmp_path: Path) -> None:
    assert [each.name for each in study_of(tmp_path, SMALL).candidates if each.is_own] == ["pfifo 20"]
    codel = SMALL.replace('{ qdisc = "pfifo", limit = "20p" }', '{ qdisc = "codel" }')
    assert [each.name for each in study_of(tmp_path, codel).candidates if each.is_own] == ["codel"]
    quick = SMALL.replace('{ qdisc = "pfifo", limit = "20p" }', '{ qdisc = "codel", target = "2ms" }')
    study = study_of(tmp_path, quick)
    assert [each.name for each in study.candidates if each.is_own] == ["codel own"]
    assert "codel target 2ms" in study.commands


@pytest.mark.parametrize("kind", list(_core.QDISCS))
def test_the_queue_of_the_file_is_found_or_its_absence_is_told(tmp_path: Path, kind: str) -> None:
    needed = {
        "bfifo": 'limit = "30kb"',
        "choke": 'limit = "100p", bandwidth = "10mbit"',
        "red": 'limit = "100kb", avpkt = "1000b"',
        "tbf": 'rate = "5mbit", burst = "5kb", limit = "50kb"',
    }
    own = "{ " + ", ".join([f'qdisc = "{kind}"', *([needed[kind]] if kind in needed else [])]) + " }"
    text = SMALL.replace('{ qdisc = "pfifo", limit = "20p" }', own)
    queue = load(write(tmp_path, text)).points[0].scenario["links"][0]["forward"]["queue"]
    study = study_of(tmp_path, text)
    tried = [point.scenario["links"][0]["forward"]["queue"] for point in study.experiment.points]
    found = [made for made, candidate in zip(tried, study.candidates, strict=True) if candidate.is_own]
    if kind in ("htb", "netem"):
        assert found == []
        assert "the queue of the file is not among those tried: it cannot be written as one table" in study.notes
    else:
        assert found == [queue]


def test_a_ping_is_added_where_none_crosses_the_port(tmp_path: Path) -> None:
    study = study_of(tmp_path, HOME)
    added = study.experiment.points[0].scenario["traffic"][-1]
    assert (added["name"], added["kind"]) == ("latency", "ping")
    assert "a ping from home to internet is added; the experiment has none across home>isp" in study.notes
    assert not [note for note in study_of(tmp_path, SMALL).notes if "ping" in note]


def test_swept_keys_keep_the_value_of_the_point_and_swept_queues_are_replaced(tmp_path: Path) -> None:
    swept = SMALL + '\n[sweep]\n"traffic.bulk.flows" = [1, 3]\n"link.line.queue.limit" = ["5p", "30p"]\n'
    study = study_of(tmp_path, swept, position=3)
    flows = {bulk_flows(point.scenario) for point in study.experiment.points}
    assert flows == {3}
    assert [each.name for each in study.candidates if each.is_own] == ["pfifo 30"]
    assert len(study.experiment.points) == len(study.candidates)


@pytest.mark.parametrize(
    "override", ['link.line.forward={delay="5ms"}', 'link.line.forward.queue={qdisc="codel"}', 'sweep.duration=["1s"]']
)
def test_changes_of_what_is_chosen_are_refused(tmp_path: Path, override: str) -> None:
    with pytest.raises(InputError, match=r"--set .*: choose"):
        study_of(tmp_path, SMALL, override)


def test_other_changes_are_kept(tmp_path: Path) -> None:
    study = study_of(tmp_path, SMALL, "link.line.rate=5mbit", "duration=1s")
    assert study.bottleneck.rate_bps == 5_000_000
    assert {point.scenario["duration_ns"] for point in study.experiment.points} == {10**9}


def test_a_choice_from_python(tmp_path: Path) -> None:
    """Three uploads beside a call, behind a modem."""
    home = HOME.replace('name = "upload"', 'name = "upload"\nflows = 3').replace(
        "[[traffic]]",
        '[[traffic]]\nname = "call"\nkind = "voip"\nboth_ways = false\nfrom = "home"\nto = "internet"\n\n[[traffic]]',
        1,
    )
    lan = '[[link]]\nname = "lan"\nends = ["home", "desk"]\n[[link]]'
    home = (
        home.replace("[[link]]", lan, 1).replace('from = "home"', 'from = "desk"').replace('to = "home"', 'to = "desk"')
    )
    changes = {"duration": "8s", "warmup": "2s", "traffic.download.flows": 0}
    choice = bs.choose(write(tmp_path, home), changes, repeat=2, out=tmp_path / "out")
    assert len(choice.measured) == len(choice.study.candidates)
    assert (choice.bottleneck.port.name, choice.repetitions) == ("home>isp", 2)
    assert choice.own is not None
    assert choice.own.name == "pfifo 1000"
    assert choice.best.call_mos is not None
    assert choice.own.call_mos is not None
    assert choice.best.call_mos.mean > choice.own.call_mos.mean + 0.5
    assert choice.best.goodput_mbit.mean >= 0.9 * choice.verdict.most_mbit > 3
    assert choice.own.rtt_p95_ms.mean > 3 * choice.best.rtt_p95_ms.mean
    assert choice.command == f"tc qdisc replace dev DEV root {choice.best.tc}"
    assert choice.result.figures["trade_offs"].to_dict()["concat"]


def test_the_command_says_what_to_take_and_draws_the_figure(cli: Cli, tmp_path: Path) -> None:
    lab = write(tmp_path, SMALL)
    shown = cli("choose", str(lab), "--repeat", "2", "--out", str(tmp_path / "out"), "--report", str(tmp_path / "page"))
    assert shown.status == 0
    assert "Which queue for h1>h2? 10 Mbit/s, 20 ms without queues" in shown.out.replace("\N{NO-BREAK SPACE}", " ")
    for words in (
        "take this",
        "as in the file",
        "\nTake ",
        "The smallest tail-drop queue that keeps 98%",
        "  tc qdisc replace dev DEV root ",
    ):
        assert words in shown.out
    assert "trade_offs" in (tmp_path / "page" / "index.html").read_text()


def test_one_repetition_is_said_to_say_nothing_about_chance(cli: Cli, tmp_path: Path) -> None:
    arguments = ("--repeat", "1", "--no-report", "--out", str(tmp_path / "out"))
    shown = cli("choose", str(write(tmp_path, SMALL)), *arguments)
    assert "One repetition says nothing about chance" in shown.out


def test_json_is_one_document(cli: Cli, tmp_path: Path) -> None:
    shown = cli(
        "choose", str(write(tmp_path, HOME)), "--link", "wan", "--repeat", "2", "--json", "--out", str(tmp_path / "out")
    )
    told = json.loads(shown.out)
    assert (told["port"], told["link"], told["direction"], told["rate_bps"]) == (
        "home>isp",
        "wan",
        "reverse",
        5_000_000,
    )
    assert told["best"] in [queue["name"] for queue in told["queues"]]
    assert told["command"].startswith("tc qdisc replace dev DEV root ")
    assert {queue["goodput_mbit"]["n"] for queue in told["queues"]} == {2}
    assert any("a ping" in note for note in told["notes"])
    assert "report" not in told


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--link", "nowhere"], "--link: found 'nowhere'; allowed: line"),
        (["--engine", "sim,guest"], "--engine: found 'sim,guest'; allowed: sim"),
        (["--repeat", "0"], "--repeat: found 0"),
        (["--report", "page", "--no-report"], "exclude one another"),
        (["--point", "traffic.bulk.flows=2"], "no sweep"),
    ],
)
def test_wrong_usage_is_told(cli: Cli, tmp_path: Path, arguments: list[str], words: str) -> None:
    shown = cli("choose", str(write(tmp_path, SMALL)), "--out", str(tmp_path / "out"), *arguments)
    assert shown.status == 2
    assert words in shown.err
    assert not (tmp_path / "out").exists()


def test_every_discipline_is_listed_with_its_purpose(cli: Cli) -> None:
    told = json.loads(cli("list", "--qdiscs", "--json").out)
    assert [row["name"] for row in told["qdiscs"]] == list(_core.QDISCS)
    assert all(row["engines"]["sim"] is True and row["purpose"] and row["source"] for row in told["qdiscs"])
    assert "Tail drop: one queue" in cli("list", "--qdiscs").out


def test_the_catalogue_compares_every_discipline() -> None:
    queues = [point.scenario["links"][1]["forward"]["queue"]["qdisc"] for point in load("disciplines").points]
    assert set(queues) == set(_core.QDISCS) - set(SHAPERS)


def test_a_file_says_how_often_to_repeat(tmp_path: Path) -> None:
    lab = write(tmp_path, SMALL.replace("duration", "repeat = 2\nduration", 1))
    assert [run.seed for run in bs.run(lab, out=tmp_path / "a").runs] == [1, 2]
    assert [run.seed for run in bs.run(lab, repeat=1, out=tmp_path / "b").runs] == [1]


def test_a_file_in_a_later_toml_than_python_reads_is_refused(tmp_path: Path) -> None:
    comma = SMALL.replace('{ qdisc = "pfifo", limit = "20p" }', '{ qdisc = "pfifo", limit = "20p", }')
    with pytest.raises(InputError, match=r"choose takes files in TOML 1\.0 only: "):
        study_of(tmp_path, comma)
