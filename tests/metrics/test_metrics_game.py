"""The metrics of games: which ticks are late, by hand."""

from collections.abc import Sequence

from handmade import GAME, MS, HandmadeRun, Rows, scenario

from bufferscope import metrics


def ticks(delays_ms: Sequence[float | None], stream: int = 1) -> Rows:
    """The packets of one direction, a tick apart; None for a lost one."""
    return [
        {"probe": f"game/{stream}", "seq": n, "sent_ns": n * 10 * MS, "rtt_ns": None,
         "owd_up_ns": None if delay is None else round(delay * MS), "owd_down_ns": None}
        for n, delay in enumerate(delays_ms)
    ]  # fmt: skip


def measured(rows: Rows) -> metrics.Metrics:
    return metrics.compute(HandmadeRun(scenario({"game": GAME}), {"probes": rows}))


def test_a_tick_is_late_if_it_takes_more_than_late_beyond_the_propagation_or_never_comes() -> None:
    """The path's two links have 5 ms each, and late is 10 ms: 20 ms are in time, more are not."""
    found = measured(ticks([10.1, 20.0, 20.1, None, 12.0]))
    assert found["game.game.late_percent"] == 40
    assert found["game.game.loss_percent"] == 20


def test_the_worse_direction_counts_for_each_metric() -> None:
    """Of the player's ticks half are late, and none is lost; of the server's a fourth is lost, and so late."""
    found = measured(ticks([11.0, 100.0]) + ticks([11.0, 11.0, 11.0, None], stream=2))
    assert found["game.game.late_percent"] == 50
    assert found["game.game.loss_percent"] == 25


def test_ticks_are_no_probes_and_a_game_without_them_has_no_metrics() -> None:
    assert "rtt.sent" not in measured(ticks([11.0]))
    assert not [name for name in measured([]) if name.startswith("game.")]
