"""Sizing a buffer: the documents' equations with the documents' numbers, and the search by simulation."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from laboratory import Answer

import bufferscope as bs
from bufferscope.base.errors import InputError
from bufferscope.model.experiment import Experiment
from bufferscope.results.result import Result
from bufferscope.stats.estimate import estimate
from bufferscope.studies.sizing import MeasuredQueue, SizedLine, answers, read_line, settings
from bufferscope.studies.sizing.equations import drain_s, round_trip_s
from bufferscope.studies.sizing.search import Queues, search
from bufferscope.studies.sizing.sizing import Sizing, sizing

Cli = Callable[..., Answer]


@pytest.fixture(scope="module")
def sized(tmp_path_factory: pytest.TempPathFactory) -> Sizing:
    return bs.size("10mbit", "40ms", congestion="reno", repeat=2, out=tmp_path_factory.mktemp("size"))


def test_gettys_and_nichols_have_2500_bytes_in_flight_on_its_uplink() -> None:
    """2 Mbit/s and 10 ms: "the true BDP was 2.5 KB"."""
    assert answers(read_line("2mbit", "10ms"))[0].value == 2500


@pytest.mark.parametrize(("size_bytes", "rate_bps", "says_s"), [(128e3, 3e6, 0.34), (128e3, 1e6, 1.0), (500e3, 2e6, 2)])
def test_buffers_drain_as_gettys_and_nichols_say(size_bytes: float, rate_bps: float, says_s: float) -> None:
    """128 KB at 3 Mbit/s take 340 ms, at 1 Mbit/s "about 1 second"; 500 KB at 2 Mbit/s are two seconds of delay."""
    assert drain_s(size_bytes, rate_bps) == pytest.approx(says_s, rel=0.03)


def test_the_round_trip_is_that_of_the_lab_report() -> None:
    """Links of 1 Gbit/s and 10 Mbit/s, 4 ms of propagation; a packet takes 12,112 bits: 1.2112 ms and 12 µs."""
    line = SizedLine(rate_bps=10_000_000, rtt_ns=4_000_000)
    queued_s, once_s = 20 * 1.2112e-3, 2 * 1.2112e-3 + 2 * 12.112e-6
    assert round_trip_s(line, 20, access_bps=1e9) == pytest.approx(queued_s + 4e-3 + once_s)


def test_sixteen_flows_need_a_quarter_of_the_bandwidth_delay_product() -> None:
    bdp, root, *_ = answers(read_line("10mbit", "40ms", flows=16))
    assert (bdp.value, root.value) == (50_000, 12_500)
    assert "not proven for 16 flows" in root.note
    assert "not proven" not in answers(read_line("10mbit", "40ms", flows=400))[1].note


def test_the_delay_of_a_given_buffer_is_told() -> None:
    *_, drain = answers(read_line("1mbit", "20ms", buffer="125000b"))
    assert drain.value == 1.0
    assert drain.note.startswith("50 times the BDP")


@pytest.mark.parametrize("rtt", ["10ms", "40ms", "300ms"])
def test_codel_keeps_its_defaults_where_they_suit(rtt: str) -> None:
    assert {tuple(each.queue) for each in settings(read_line("10mbit", rtt))} == {("qdisc",)}


def test_codel_waits_for_a_long_round_trip_and_for_a_slow_packet() -> None:
    far, slow = (settings(read_line(rate, rtt))[0].queue for rate, rtt in [("10mbit", "600ms"), ("1mbit", "40ms")])
    assert far == {"qdisc": "fq_codel", "interval": "600000us", "target": "30000us"}
    assert slow == {"qdisc": "fq_codel", "target": "12112us"}


def test_a_limit_below_the_bandwidth_delay_product_is_raised() -> None:
    by_name = {each.name: each.queue for each in settings(read_line("10gbit", "100ms"))}
    held = read_line("10gbit", "100ms").packets(125e6)
    assert by_name["fq_codel"]["limit"] == by_name["codel"]["limit"] == by_name["pie"]["limit"] == f"{held}p"


def test_one_packet_less_than_the_smallest_misses_the_target(sized: Sizing) -> None:
    found = sized.found
    assert found is not None
    assert found.below is not None
    assert found.smallest.limit_packets == (found.below.limit_packets or 0) + 1
    assert found.share(found.below) < 0.98 <= found.share(found.smallest)


def test_reno_needs_about_what_its_equation_says(sized: Sizing) -> None:
    """The equation is for 100 % of the rate; 98 % need somewhat less, and no more."""
    assert sized.found is not None
    held = sized.line.packets(sized.line.bdp_bytes)
    assert held / 2 <= (sized.found.smallest.limit_packets or 0) <= held


def test_the_smallest_found_delays_less_than_the_longest(sized: Sizing) -> None:
    assert sized.found is not None
    assert sized.found.smallest.sojourn_p95_ms.mean < sized.found.longest.sojourn_p95_ms.mean / 4
    assert [each.name for each in sized.found.managed] == ["fq_codel", "cake", "codel", "pie"]
    assert all(each.sojourn_p95_ms.mean < sized.found.longest.sojourn_p95_ms.mean / 4 for each in sized.found.managed)


def test_the_commands_set_what_was_found(sized: Sizing) -> None:
    (pfifo, tail), (bfifo, bytes_) = sized.settings[:2]
    assert tail == f"tc qdisc replace dev DEV root pfifo limit {sized.limit_packets}"
    assert bytes_ == f"tc qdisc replace dev DEV root bfifo limit {sized.limit_packets * 1514}"
    assert (pfifo.name, bfifo.name) == ("pfifo", "bfifo")


@given(threshold=st.integers(1, 256))
def test_the_search_finds_any_threshold(threshold: int) -> None:
    """With a goodput that reaches the target at a threshold, that is what is found."""

    def trying(queues: Queues) -> dict[str, MeasuredQueue]:
        found = {}
        for name, queue in queues.items():
            limit = int(str(queue["limit"])[:-1]) if queue["qdisc"] == "pfifo" else None
            value = estimate([10.0 if limit is None or limit >= threshold else 9.0] * 2)
            found[name] = MeasuredQueue(name, limit, value, value, value)
        return found

    found = search(read_line("10mbit", "40ms"), trying)
    assert found.smallest.limit_packets == threshold
    assert (found.below.limit_packets if found.below else 0) == threshold - 1


def _never(_experiment: Experiment) -> Result:
    raise AssertionError("nothing may run")


def test_what_would_take_hours_is_not_simulated_and_says_why() -> None:
    found = sizing(read_line("10gbit", "100ms"), _never)
    assert found.found is None
    assert "not checked by a simulation: a flow of cubic falls back only every" in found.notes[0]


@given(rate=st.integers(1000, 10**11), rtt_us=st.integers(1, 10**7), flows=st.integers(1, 1000))
def test_every_possible_line_has_answers_and_settings(rate: int, rtt_us: int, flows: int) -> None:
    try:
        line = read_line(f"{rate}bit", f"{rtt_us}us", flows=flows)
    except InputError as error:
        assert "the BDP is" in str(error)  # noqa: PT017
        return
    sized = Sizing(line, None)
    assert all(each.value > 0 for each in sized.answers)
    assert all(command.startswith("tc qdisc replace dev DEV root ") for _, command in sized.settings)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("--rate 0mbit --rtt 40ms", '--rate: found "0mbit"; allowed: a rate from 1kbit'),
        ("--rate -1mbit --rtt 40ms", '--rate: found "-1mbit" (negative)'),
        ("--rate 10kb --rtt 40ms", 'did you mean "10kbit"?'),
        ("--rate 10mbit --rtt 40", '--rtt: found "40" (no unit)'),
        ("--rate 10mbit --rtt 0ms", "--rtt: found '0ms'; allowed: at least 2 ns"),
        ("--rate 10mbit --rtt 9999999s", "--rtt: found"),
        ("--rate 400gbit --rtt 60s", "allowed: a queue of at most 2836834"),
        ("--rate 10mbit --rtt 40ms --flows 0", "--flows: found 0; allowed: 1 to 1000"),
        ("--rate 10mbit --rtt 40ms --target 98", "--target: found '98'; allowed: 50% to 100%"),
        ("--rate 10mbit --rtt 40ms --target 1e9%", "--target: found"),
        ("--rate 10mbit --rtt 40ms --packet 1mb", "--packet: found '1mb'; allowed: a size of an IP packet"),
        ("--rate 10mbit --rtt 40ms --buffer 100p", '--buffer: found "100p" (unknown unit "p")'),
        ("--rate 10mbit --rtt 40ms --congestion x", '--congestion: found "x"; allowed: reno, cubic'),
        ("--rate 10mbit --rtt 40ms --repeat 0", "--repeat: found 0"),
        ("--rate 10mbit --rtt 40ms --no-simulate --reuse", "exclude one another"),
    ],
)
def test_impossible_values_are_refused(cli: Cli, arguments: str, said: str) -> None:
    answer = cli("size", *arguments.split())
    assert answer.status == 2
    assert said in answer.err


def test_python_values_without_units_are_refused() -> None:
    with pytest.raises(InputError, match="--rate: found 10; allowed: a string with a unit"):
        read_line(10, "40ms")  # type: ignore[arg-type]


def test_the_equations_alone_run_nothing(cli: Cli, tmp_path: Path) -> None:
    out = tmp_path / "results"
    answer = cli("size", "--rate", "1mbit", "--rtt", "20ms", "--no-simulate", "--json", "--out", str(out))
    document = json.loads(answer.out)
    assert document["smallest"] is None
    assert document["answers"][0]["value"] == 2500
    assert not out.exists()


def test_the_json_has_the_smallest_and_the_size_below(cli: Cli, tmp_path: Path) -> None:
    line = ("--rate", "1mbit", "--rtt", "40ms", "--repeat", "1", "--target", "90%")
    document = json.loads(cli("size", *line, "--json", "--out", str(tmp_path)).out)
    assert document["smallest"]["limit_packets"] == document["below"]["limit_packets"] + 1
    assert document["below"]["share"] < 0.9 <= document["smallest"]["share"]
    assert {each["name"] for each in document["managed"]} == {"fq_codel", "cake", "codel", "pie"}


def test_a_rate_in_bytes_gets_the_note_that_files_get(cli: Cli) -> None:
    answer = cli("size", "--rate", "20mbps", "--rtt", "40ms", "--no-simulate")
    assert '--rate: "20mbps" is 160 Mbit/s: in tc' in answer.out.replace("\n", " ")
    assert "Note" not in cli("size", "--rate", "20mbit", "--rtt", "40ms", "--no-simulate").out
    assert sizing(read_line("10gbps", "100ms"), _never).notes[0].startswith('--rate: "10gbps" is 80 Gbit/s')


def test_the_commands_leave_out_what_is_the_default(cli: Cli) -> None:
    document = json.loads(cli("size", "--rate", "10mbit", "--rtt", "40ms", "--no-simulate", "--json").out)
    commands = {each["name"]: each["command"].partition(" root ")[2] for each in document["settings"]}
    assert commands["fq_codel"] == "fq_codel"
    assert commands["cake"] == "cake"
    assert commands["pfifo"] == "pfifo limit 34"
    document = json.loads(cli("size", "--rate", "1mbit", "--rtt", "600ms", "--no-simulate", "--json").out)
    commands = {each["name"]: each["command"].partition(" root ")[2] for each in document["settings"]}
    assert commands["codel"] == "codel target 30ms interval 600ms"
    assert commands["cake"] == "cake rtt 600ms"


def test_the_page_begins_with_the_size_the_table_and_the_lines_to_type(cli: Cli, tmp_path: Path) -> None:
    line = ("--rate", "1mbit", "--rtt", "40ms", "--repeat", "1", "--target", "90%")
    answer = cli("size", *line, "--out", str(tmp_path / "out"), "--report", str(tmp_path / "page"))
    assert "The page: " in answer.out
    assert "explain gives the BDP" in " ".join(answer.out.split())
    page = (tmp_path / "page" / "index.html").read_text()
    main = page[page.index("<main>") :]
    parts = (
        ">The smallest queue that keeps 90 %",
        '<table class="answer">',
        "tc qdisc replace dev DEV root pfifo",
        "<h3>Network",
    )
    order = [main.index(part) for part in parts]
    assert order == sorted(order)


def test_no_wrong_text_is_taken_for_another_error() -> None:
    with pytest.raises(InputError, match=r"--rate: found"):
        read_line('10mbit"\n[x]\ud800', "40ms")
