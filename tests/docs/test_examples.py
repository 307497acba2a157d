"""The experiments of docs/examples load, and do what their descriptions say."""

from pathlib import Path

import pytest

import bufferscope as bs
from bufferscope import metrics
from bufferscope.results.verdicts import Verdict

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"


def verdicts(name: str, out: Path) -> list[Verdict]:
    """What the measurements say about an example's expectations."""
    return [evaluated.verdict for evaluated in bs.run(EXAMPLES / f"{name}.toml", out=out).expectations]


def by_labels(name: str, out: Path, *overrides: str) -> dict[tuple[str, ...], metrics.Metrics]:
    """The metrics of every point of an example on the simulator, by its labels."""
    result = bs.run(EXAMPLES / f"{name}.toml", overrides, out=out)
    return {tuple(run.point.values()): metrics.compute(run) for run in result.runs}


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.toml")), ids=lambda path: path.stem)
def test_an_example_runs(path: Path, tmp_path: Path) -> None:
    result = bs.run(path, out=tmp_path)
    assert all(metrics.compute(run) and not run.warnings for run in result.runs)


def test_a_call_beside_an_upload_is_as_good_as_the_queue_is_short(tmp_path: Path) -> None:
    found = by_labels("call-beside-upload", tmp_path)
    deep, managed = found["tail-drop",], found["codel",]
    # 100 packets of 1514 bytes take 0.6 s at 2 Mbit/s: G.114 calls 0.4 s the limit of what is acceptable.
    assert deep["voip.call.delay_ms"] > 300
    assert deep["voip.call.mos"] < 3
    assert managed["voip.call.delay_ms"] < 60
    # G.109: above 3.6, at most some users are dissatisfied; below 3.1, nearly all are.
    assert managed["voip.call.mos"] > 3.6
    assert deep["transfer.names.mean_s"] > 5 * managed["transfer.names.mean_s"]
    # Calls and pings wait in the same queue; the call's mean is that of one direction.
    assert deep["voip.call.delay_ms"] == pytest.approx(deep["rtt.mean_ms"] - 15, rel=0.05)


def test_a_game_beside_an_upload_has_late_ticks_unless_its_packets_overtake_the_queue(tmp_path: Path) -> None:
    found = by_labels("game-beside-upload", tmp_path)
    # 100 packets of 1514 bytes take 242 ms at 5 Mbit/s, and CUBIC keeps at least 70 % of them: far more than a tick.
    assert found["tail-drop",]["game.game.late_percent"] > 90
    # A flow that sends little waits for the packet on the wire: 2.4 ms.
    assert found["fq-codel",]["game.game.late_percent"] == 0
    assert found["fq-codel",]["game.game.loss_percent"] == 0


def test_a_video_beside_downloads_starts_late_and_looks_bad_behind_a_long_queue(tmp_path: Path) -> None:
    found = by_labels("video-beside-downloads", tmp_path)
    deep, fair = ({name: each[f"video.film.{name}"] for name in ("startup_s", "rate_mbit", "stalls")}
                  for each in (found["tail-drop",], found["fq-codel",]))  # fmt: skip
    # A third of 3.8 Mbit/s of payload, times 0.9: 1.1 Mbit/s, after a first segment of 0.73.
    assert 1.0 < fair["rate_mbit"] <= 1.1
    assert deep["rate_mbit"] < fair["rate_mbit"] / 2
    # 250 packets take 0.76 s. The first segment needs a handshake and five more round trips in slow start.
    assert deep["startup_s"] > 4 > fair["startup_s"]
    alone = by_labels("video-beside-downloads", tmp_path, "traffic.downloads.flows=0")
    for each in alone.values():
        # 0.9 times 3.8 Mbit/s allow 3 Mbit/s, whatever the queue.
        assert each["video.film.rate_mbit"] > 2.8
        assert each["video.film.stalls"] == 0


def test_a_mark_for_what_waits_in_the_sender_costs_delay_only_there(tmp_path: Path) -> None:
    found = by_labels("send-buffer", tmp_path)
    marked, unbounded = found["16kb",], found["1gb",]
    # Half a mark to a mark waits: 13 ms at 10 Mbit/s are 16 KB.
    assert 5 < marked["unsent.upload_ms"] < 14
    in_queues_ms = unbounded["rtt.mean_ms"] - 40
    assert unbounded["unsent.upload_ms"] == pytest.approx(in_queues_ms, rel=0.2)
    assert marked["goodput.upload_mbit"] == pytest.approx(unbounded["goodput.upload_mbit"], rel=0.01)


def test_a_full_queue_of_the_sender_itself_costs_pings_and_no_retransmission(tmp_path: Path) -> None:
    found = by_labels("own-queue", tmp_path)
    for flows in (1, 4):
        # Two packets of each connection wait, or one is about to.
        assert found[str(flows),]["queue.h1>h2.mean_packets"] == pytest.approx(2 * flows, abs=0.2)
        assert found[str(flows),]["drops.h1>h2"] == found[str(flows),]["rtt.lost"] == 0
    full = found["16",]
    assert full["drops.h1>h2"] > 100
    assert full["retransmits.total"] == 0
    assert full["rtt.lost"] > 0.5 * full["rtt.sent"]
    # Ten of sixteen have most of the link: (10 x)^2 / (16 * 10 x^2).
    assert full["goodput.jain"] == pytest.approx(10 / 16, abs=0.1)
    assert full["goodput.bulk_mbit"] == pytest.approx(found["1",]["goodput.bulk_mbit"], rel=0.01)


def test_offload_doubles_the_delay_of_a_queue_counted_in_packets(tmp_path: Path) -> None:
    # At 10 s, one flow is repairing a loss. What it has received behind the hole would count after the warm-up.
    found = by_labels("offload", tmp_path, "warmup=11s")
    alone, joined = found["1",], found["45",]
    # Of 20 ms of path and what the queue adds: the same packets hold nearly twice as much.
    assert joined["rtt.p95_ms"] - 20 == pytest.approx(2 * (alone["rtt.p95_ms"] - 20), rel=0.1)
    for one in found.values():
        assert one["queue.r1>h2.max_packets"] == 100
        assert one["goodput.bulk_mbit"] == pytest.approx(9.56, abs=0.01)


def test_datagrams_queue_as_their_pattern_says_and_a_flood_loses_the_rest(tmp_path: Path) -> None:
    found = by_labels("udp-load", tmp_path)
    assert found["constant", "7774kbit"]["queue.h1>h2.mean_packets"] < 0.1
    # M/D/1 at a load of 0.8: rho^2 / (2 (1 - rho)) = 1.6 packets wait.
    assert found["poisson", "7774kbit"]["queue.h1>h2.mean_packets"] == pytest.approx(1.6, rel=0.2)
    for pattern in ("constant", "poisson"):
        below, above = found[pattern, "7774kbit"], found[pattern, "20mbit"]
        # 18,800 datagrams in the window: of a Poisson process four deviations of the number are 3 %.
        assert below["goodput.load_mbit"] == pytest.approx(7.774, rel=0.03)
        assert below["loss.load_percent"] < 0.1
        assert above["queue.h1>h2.p50_packets"] >= 99
        assert above["utilization.h1>h2"] == pytest.approx(1, abs=1e-3)
        # 10 Mbit/s hold 9.718 of payload.
        assert above["loss.load_percent"] == pytest.approx(100 * (1 - 9.718 / 20), abs=0.5)


def test_packets_in_flight_add_throughput_up_to_what_the_path_holds_and_then_only_delay(tmp_path: Path) -> None:
    found = by_labels("throughput-and-delay", tmp_path)
    # A frame takes 1.2112 ms, propagation 40 ms. A pair of packets is acknowledged together, so a round trip takes the
    # propagation and both of them; 35 packets fill it.
    frame_ms, propagation_ms = 1514 * 8 / 10e3, 40
    round_trip_ms = propagation_ms + 2 * frame_ms
    for (window,), measured in found.items():
        packets = int(window.removesuffix("p"))
        rate_mbit = min(packets / round_trip_ms, 1 / frame_ms) * 1448 * 8 / 1e3
        # Where a write ends, one packet alone is acknowledged. In a small window another is then left over, and waits
        # for the next round.
        assert 0.94 * rate_mbit < measured["goodput.sender_mbit"] < 1.01 * rate_mbit
        waits_ms = max(0, packets * frame_ms - round_trip_ms)
        # A ping may come behind the pair, and before it.
        assert propagation_ms + waits_ms < measured["rtt.p50_ms"] < propagation_ms + waits_ms + 2 * frame_ms
        assert measured["drops.r1>h2"] == 0
    assert len(found) == 14


def test_a_published_lab_is_met_within_a_few_per_cent(tmp_path: Path) -> None:
    assert verdicts("published-lab", tmp_path) == [Verdict.REPRODUCED] * 10


def test_a_step_above_a_frames_time_decides_who_wins_on_a_slow_link(tmp_path: Path) -> None:
    found = by_labels("dualpi2-step", tmp_path)
    now, then = found["Linux 6.17",], found["2020",]
    assert now["goodput.cubic_mbit"] > 2 * now["goodput.prague_mbit"]
    # The published shares are 3.28 and 5.93 Mbit/s.
    assert then["goodput.cubic_mbit"] == pytest.approx(3.28, rel=0.2)
    assert then["goodput.prague_mbit"] == pytest.approx(5.93, rel=0.2)
