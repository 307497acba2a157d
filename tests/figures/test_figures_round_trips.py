"""The round-trip times of captured connections over time."""

import polars as pl
from figure_specs import data_of, layers, spec_of, trips
from handmade import MS, TCP, UDP, HandmadeResult, HandmadeRun, Rows, scenario


def drawn(rows: Rows, again: Rows = ()) -> tuple[pl.DataFrame, str]:  # type: ignore[assignment]
    """The rows of the lines, and the subtitle."""
    run = HandmadeRun(scenario({"bulk": TCP, "load": UDP}), {"round_trips": rows, "retransmissions": list(again)})
    spec = spec_of(HandmadeResult([run]), "round_trips")
    return data_of(spec, layers(spec, "line")[0]), " ".join(spec["title"]["subtitle"])


def test_each_round_trip_is_a_place_on_the_line_of_its_connection() -> None:
    lines, _ = drawn(trips([20, 90, 70]))
    assert lines.select("flow", "time_s", "rtt_ms").rows() == [
        ("bulk/1", 0, 20),
        ("bulk/1", 0.1, 90),
        ("bulk/1", 0.2, 70),
    ]


def test_both_halves_are_shown_if_the_place_was_between_the_ends() -> None:
    lines, _ = drawn([*trips([20, 90]), *trips([5, 6], half="sender", method="timestamp")])
    assert set(lines["way"]) == {"to the receiver and back", "to the sender and back"}


def test_the_short_half_of_a_capture_at_an_end_is_left_out() -> None:
    lines, _ = drawn([*trips([20, 90]), *trips([0.01, 0.02], half="sender", method="timestamp")])
    assert set(lines["way"]) == {"to the receiver and back"}


def test_timestamps_count_only_where_segments_have_no_acknowledgements() -> None:
    lines, _ = drawn([*trips([20, 90]), *trips([21, 91], method="timestamp")])
    assert sorted(lines["rtt_ms"]) == [20, 90]


def test_what_was_sent_again_is_counted() -> None:
    again = [{"flow": "bulk/1", "t_ns": 50 * MS, "bytes": 1448, "kind": "fast", "spurious": None}]
    assert drawn(trips([20, 90]), again * 3)[1] == "Marks at the top: sent again (3)."
    assert drawn(trips([20, 90]))[1] == "Nothing was sent again."
