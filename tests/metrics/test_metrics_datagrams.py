"""Metrics of traffic over UDP on records whose answer is known by arithmetic; the E-model at its published points."""

import math
from collections.abc import Sequence

import numpy as np
import pytest
from handmade import DNS, MS, PING, SECOND, TCP, UDP, VOIP, HandmadeRun, Rows, probes, scenario

from bufferscope import metrics
from bufferscope.metrics import emodel, voip


def call(delays_ms: Sequence[float | None], stream: int = 1, interval_ms: int = 20) -> Rows:
    """The packets of one direction of a call; None for a lost one."""
    return [
        {"probe": f"call/{stream}", "seq": n, "sent_ns": n * interval_ms * MS, "rtt_ns": None,
         "owd_up_ns": None if delay is None else round(delay * MS), "owd_down_ns": None}
        for n, delay in enumerate(delays_ms)
    ]  # fmt: skip


def measured(rows: Rows) -> metrics.Metrics:
    return metrics.compute(HandmadeRun(scenario({"call": VOIP}), {"probes": rows}))


def rating(delay_ms: float, loss_percent: float = 0) -> float:
    return float(emodel.rating(np.array([delay_ms]), np.array([loss_percent]))[0])


def test_the_default_parameters_give_the_rating_that_g107_states() -> None:
    """Table 2: "with all parameters at their defaults R = 93.2"; annex B: that is a mean opinion score of 4.41."""
    assert rating(0) == pytest.approx(93.2, abs=0.05)
    assert emodel.mos(93.2) == pytest.approx(4.41, abs=0.005)


@pytest.mark.parametrize(("r", "score"), [(90, 4.34), (80, 4.03), (70, 3.60), (60, 3.10), (50, 2.58)])
def test_scores_are_those_of_g107s_table(r: float, score: float) -> None:
    """G.107, annex B, table B.1: the limits of user satisfaction; the equation gives 4.024 where the table has 4.03."""
    assert emodel.mos(r) == pytest.approx(score, abs=0.0061)


def test_scores_end_where_the_scale_does() -> None:
    assert (emodel.mos(-5), emodel.mos(0), emodel.mos(100), emodel.mos(120)) == (1, 1, 4.5, 4.5)
    # 1 + 0.035 * 3 + 3 * (3 - 60) * (100 - 3) * 7e-6 is 0.989: the cubic leaves the scale.
    assert emodel.mos(3) == 1
    scores = [emodel.mos(rating / 10) for rating in range(-100, 1100)]
    assert scores == sorted(scores), "a better rating is no worse a score"


@pytest.mark.parametrize("delay_ms", [50, 100, 150, 200, 250, 300, 400])
def test_delay_costs_what_others_have_fitted_to_the_model(delay_ms: float) -> None:
    """Cole and Rosenbluth 2001: Id is about 0.024 d, and 0.11 (d - 177.3) more above 177.3 ms: two straight lines."""
    fit = 0.024 * delay_ms + 0.11 * max(0.0, delay_ms - 177.3)
    assert rating(0) - rating(delay_ms) == pytest.approx(fit, abs=3.5)


def test_long_delay_by_hand() -> None:
    """Idd at 200 ms: X = 1, so 25 (2^(1/6) - 3 (1 + 3^-6)^(1/6) + 2)."""
    expected = 25 * (2 ** (1 / 6) - 3 * (1 + 3**-6) ** (1 / 6) + 2)
    assert float(emodel._long_delay(np.array([200.0]))[0]) == pytest.approx(expected)
    assert float(emodel._long_delay(np.array([99.0]))[0]) == 0


def test_talker_echo_begins_at_one_millisecond() -> None:
    below, above = emodel._talker_echo(np.array([0.1, 0.9])), emodel._talker_echo(np.array([5.0, 50.0]))
    assert (below == 0).all()
    assert (above > 0).all()


def test_loss_costs_what_g113_says_of_g711_with_concealment() -> None:
    """Ie-eff = 95 P / (P + 25.1): 3.64 at 1 %, 15.8 at 5 %."""
    assert rating(0) - rating(0, 1) == pytest.approx(95 / 26.1)
    assert rating(0) - rating(0, 5) == pytest.approx(95 * 5 / 30.1)


def test_a_call_without_loss_is_as_good_as_its_delay() -> None:
    found = measured(call([30] * 100) + call([80] * 100, stream=2))
    assert found["voip.call.mos"] == pytest.approx(emodel.mos(rating(80 + 20))), "of both ways the worse"
    assert found["voip.call.delay_ms"] == 80
    assert found["voip.call.jitter_ms"] == 0
    assert found["voip.call.loss_percent"] == 0


def test_lost_packets_are_counted_and_heard() -> None:
    found = measured(call([30.0, 30.0, 30.0, None] * 25))
    assert found["voip.call.loss_percent"] == 25
    assert found["voip.call.mos"] == pytest.approx(emodel.mos(rating(50, 25)))


def _best(delays: list[float]) -> float:
    """The best rating of one period."""
    (found,) = voip.best_ratings(np.array(delays), np.zeros(len(delays), np.int64))
    return found


def test_the_jitter_buffer_weighs_waiting_against_losing() -> None:
    """One packet of 100 comes after a second: better to lose it (3.6 of R) than to have everything wait (far more)."""
    delays = [30.0] * 99 + [1000.0]
    assert _best(delays) == pytest.approx(rating(50, 1))
    # Half of them come 10 ms later: better to wait.
    assert _best([30.0, 40.0] * 50) == pytest.approx(rating(60))


def test_each_ten_seconds_have_a_playout_delay_of_their_own() -> None:
    found = measured(call([30] * 500 + [300] * 500))
    # The window of this run ends with the packet sent at 10 s: 500 packets of the first period, one of the second.
    assert found["voip.call.mos"] == pytest.approx((emodel.mos(rating(50)) + emodel.mos(rating(320))) / 2)


def test_a_call_of_which_nothing_arrives_is_as_bad_as_can_be() -> None:
    found = measured(call([None] * 10))
    assert (found["voip.call.mos"], found["voip.call.loss_percent"]) == (1, 100)
    assert "voip.call.delay_ms" not in found
    assert "voip.call.jitter_ms" not in found


def test_jitter_is_rfc_3550s() -> None:
    """|D| is 16 ms for each pair: J = 16 (1 - (15/16)^n) after n pairs."""
    found = measured(call([30.0, 46.0] * 4))
    expected = [16 * (1 - (15 / 16) ** n) for n in range(1, 8)]
    assert found["voip.call.jitter_ms"] == pytest.approx(sum(expected) / 7)


def test_jitter_looks_at_packets_in_the_order_of_arrival() -> None:
    """The second overtakes the first: the differences are 10 - 50 = -40 and 30 - 50, then 30 - 10."""
    rows = call([50.0, 10.0, 30.0])  # arrive at 50, 30, 70 ms
    first = 40 / 16
    assert measured(rows)["voip.call.jitter_ms"] == pytest.approx((first + first + (20 - first) / 16) / 2)


def test_packets_of_a_call_are_no_probes() -> None:
    run = HandmadeRun(scenario({"ping": PING, "call": VOIP}), {"probes": probes([10, 20]) + call([500] * 10)})
    found = metrics.compute(run)
    assert (found["rtt.sent"], found["rtt.lost"], found["rtt.max_ms"]) == (2, 0, 20)


def test_loss_and_goodput_of_udp_are_what_its_receiver_counts() -> None:
    flows = [
        {"t_ns": 0, "flow": "udp/1", "delivered_bytes": 0, "lost": 0, "retransmits": None, "cwnd_bytes": None},
        {"t_ns": 10 * SECOND, "flow": "udp/1", "delivered_bytes": 750_000, "lost": 250, "retransmits": None},
        {"t_ns": 10 * SECOND, "flow": "bulk/1", "delivered_bytes": 250_000, "lost": 7, "retransmits": 7},
    ]
    found = metrics.compute(HandmadeRun(scenario({"udp": UDP, "bulk": TCP}), {"flows": flows}))
    assert found["goodput.udp_mbit"] == pytest.approx(0.6)
    assert found["goodput.total_mbit"] == pytest.approx(0.8)
    assert found["loss.udp_percent"] == 25
    assert found["goodput.jain"] == 1, "of the TCP connections alone"
    assert found["retransmits.total"] == 7
    assert "loss.bulk_percent" not in found
    assert "cwnd.udp.mean_packets" not in found


def test_what_was_lost_before_the_warmup_does_not_count() -> None:
    flows = [
        {"t_ns": SECOND, "flow": "udp/1", "delivered_bytes": 100_000, "lost": 900},
        {"t_ns": 10 * SECOND, "flow": "udp/1", "delivered_bytes": 300_000, "lost": 900},
    ]
    assert metrics.compute(HandmadeRun(scenario({"udp": UDP}, warmup_s=1), {"flows": flows}))["loss.udp_percent"] == 0


def test_look_ups_have_times_and_no_goodput() -> None:
    transfers = [
        {"traffic": "dns", "flow": "dns/1", "started_ns": 0, "finished_ns": 20 * MS, "bytes": 108},
        {"traffic": "dns", "flow": "dns/1", "started_ns": SECOND, "finished_ns": SECOND + 5020 * MS, "bytes": 108},
        {"traffic": "dns", "flow": "dns/1", "started_ns": 2 * SECOND, "finished_ns": None, "bytes": 108},
    ]
    found = metrics.compute(HandmadeRun(scenario({"dns": DNS, "bulk": TCP}), {"transfers": transfers}))
    assert found["transfer.dns.mean_s"] == pytest.approx(2.52)
    assert found["transfer.dns.max_s"] == pytest.approx(5.02)
    assert found["transfer.dns.unfinished"] == 1
    assert found["transfer.dns.p95_s"] == math.inf
    assert found["goodput.total_mbit"] == 0
