"""The page's lead and tiles: the same link with tail drop and with CoDel, all numbers from the runs."""

from pathlib import Path

from handmade import HandmadeRun, probes
from reports import KEY, document, run, stored

from bufferscope import report
from bufferscope.report import lead, tiles
from bufferscope.report.reasons import StatementCounts
from bufferscope.results.result import Result

CODEL = {"qdisc": "codel", "limit_packets": 1000, "target_ns": 5_000_000, "interval_ns": 100_000_000, "ecn": False}
NOTHING_SAID = StatementCounts(total=0, reproduced=0, differ=0, not_applicable=0)


def managed(experiment: str = "two-queues") -> HandmadeRun:
    """The run of 50 packets with CoDel in its place; its pings take 22, 24 and 26 ms."""
    made = run("50p", experiment=experiment)
    made.scenario["links"][1]["forward"]["queue"] = CODEL
    made.point, made.position, made.id = {KEY: "codel"}, 1, "limit-codel-sim-s1-0abc1234"
    made.rows["probes"] = probes([22, 24, 26])
    return made


def answered(experiment: str = "two-queues") -> HandmadeRun:
    """The run of 50 packets without a lost ping."""
    made = run("50p", experiment=experiment)
    made.rows["probes"] = probes([20, 30, 50, 60])
    return made


def found(results: list[Result]) -> lead.Pair:
    """The pair that leads."""
    pair = lead.find(results)
    assert pair is not None
    return pair


def result(tmp_path: Path, *runs: HandmadeRun) -> Result:
    return stored(list(runs), tmp_path / "results")


def test_the_same_link_with_tail_drop_and_with_codel_is_the_lead(tmp_path: Path) -> None:
    pair = found([result(tmp_path, answered(), managed())])
    assert (pair.tail_drop.label, pair.managed.label) == ("50p", "codel")
    assert (pair.tail_drop_ms, pair.managed_ms) == (40, 24)  # 20, 30, 50 and 60 ms answered; 22, 24 and 26


def test_without_such_a_pair_there_is_no_lead(tmp_path: Path) -> None:
    assert lead.find([result(tmp_path, run("50p"), run("100p"))]) is None


def test_points_that_differ_in_more_than_the_queue_are_no_pair(tmp_path: Path) -> None:
    slower = managed()
    slower.scenario["links"][1]["forward"]["delay_ns"] += 1
    assert lead.find([result(tmp_path / "delay", answered(), slower)]) is None
    busier = managed()
    busier.scenario["traffic"][0]["flows"] = 2
    assert lead.find([result(tmp_path / "traffic", answered(), busier)]) is None


def test_the_example_of_the_readme_leads_and_else_the_first(tmp_path: Path) -> None:
    slow = run("50p", experiment="slow")
    slow.rows["probes"] = probes([400])
    others = [result(tmp_path, answered(), managed()), result(tmp_path, slow, managed("slow"))]
    assert found(others).result.experiment == "two-queues"
    example = result(tmp_path, answered(lead.EXAMPLE), managed(lead.EXAMPLE))
    assert found([*others, example]).result.experiment == lead.EXAMPLE


def test_answers_do_not_lead_if_many_pings_have_none(tmp_path: Path) -> None:
    lossy = result(tmp_path, run("50p"), managed())  # one of five
    assert lead.find([lossy]) is None
    some = answered()
    some.rows["probes"] = probes([20, 30, 40, 50, 60, 20, 30, 40, 50, 60, 40, None])
    told = found([result(tmp_path / "some", some, managed())])
    assert told.lost == (1 / 12, 0)
    text = report.build([told.result], tmp_path / "report").read_text(encoding="utf-8")
    assert "the pings that were lost, 8.3\N{NO-BREAK SPACE}% with tail drop and 0\N{NO-BREAK SPACE}% with CoDel" in text


def test_pings_without_an_answer_make_no_lead(tmp_path: Path) -> None:
    silent = managed()
    silent.rows["probes"] = probes([None, None])
    assert lead.find([result(tmp_path, answered(), silent)]) is None


def test_the_tiles_are_computed_from_the_runs(tmp_path: Path) -> None:
    results = [result(tmp_path, answered(), managed())]
    told = {tile.label: tile.value for tile in tiles.tiles(results, ["two-queues"], lead.find(results), NOTHING_SAID)}
    # The path takes 4 * 5 ms; with tail drop at most 60 ms, with CoDel 26: 40 and 6 ms of waiting. Both send the same.
    assert told == {
        "the longest that a ping waited beyond its path's own 20\N{NO-BREAK SPACE}ms": "40\N{NO-BREAK SPACE}ms",
        "of the longest wait remains with CoDel in place of tail drop": "15\N{NO-BREAK SPACE}%",
        "of the goodput is kept with CoDel": "100\N{NO-BREAK SPACE}%",
        "runs": "2",
    }


def test_a_page_of_several_experiments_opens_with_sentence_and_figure(tmp_path: Path) -> None:
    other = run("50p", experiment="other", document=document(title="Another"))
    results = [result(tmp_path, answered(), managed()), result(tmp_path, other)]
    text = report.build(results, tmp_path / "report").read_text(encoding="utf-8")
    assert 'with tail drop a ping takes <em class="bad">40\N{NO-BREAK SPACE}ms</em> on average, with CoDel' in text
    assert 'id="lead-rtt"' in text
    assert text.index('id="lead-rtt"') < text.index('class="tiles"') < text.index('id="verdicts"')


def test_a_page_of_one_experiment_does_not_show_the_same_figure_twice(tmp_path: Path) -> None:
    page = report.build([result(tmp_path, answered(), managed())], tmp_path / "report")
    text = page.read_text(encoding="utf-8")
    assert 'id="lead-title"' in text
    assert "lead-rtt" not in text
    assert not list((page.parent / "figures").glob("lead-*"))


def test_pairs_that_lose_a_fifth_of_the_pings_make_no_lead(tmp_path: Path) -> None:
    """The means of what was answered leave out the worst."""
    lossy = run("50p")
    lossy.rows["probes"] = probes([20.0, 30.0, None, 50.0, 60.0] * 4)
    assert lead.find([result(tmp_path / "before", lossy, managed())]) is None
    after = managed()
    after.rows["probes"] = probes([22.0, None, 24.0, 26.0] * 4)
    assert lead.find([result(tmp_path / "after", run("50p"), after)]) is None


def test_a_time_out_is_no_longest_wait(tmp_path: Path) -> None:
    """With a time-out of a second, pings of more are lost; the longest answered one says nothing of them."""
    cut = run("50p")
    cut.rows["probes"] = probes([20.0, 990.0, None, None])
    (ping,) = [entry for entry in cut.scenario["traffic"] if entry["kind"] == "ping"]
    ping["timeout_ns"] = 1_000_000_000
    results = [result(tmp_path, cut, managed())]
    told = {tile.label: tile.value for tile in tiles.tiles(results, ["two-queues"], lead.find(results), NOTHING_SAID)}
    assert "of the longest wait remains with CoDel in place of tail drop" not in told
    assert [value for label, value in told.items() if "longer waits ended in a time-out" in label] == [
        "at least\N{NO-BREAK SPACE}970\N{NO-BREAK SPACE}ms"
    ]
