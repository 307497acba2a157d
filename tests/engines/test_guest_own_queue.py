"""How a sender reacts to packets that its own host's queue drops, compared with a kernel."""

from pathlib import Path

import polars as pl
import pytest
from guests import build_guest

import bufferscope as bs
from bufferscope import metrics

EXAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "own-queue.toml"
MSS = 1448
RED = (
    '{ qdisc = "red", limit = "400kb", min = "15kb", max = "45kb", avpkt = "1500b", probability = 0.1, '
    'bandwidth = "10mbit" }'
)


@pytest.fixture(scope="session")
def built() -> None:
    build_guest()


def starved(flows: pl.DataFrame) -> set[tuple[str, int, int]]:
    """State, window and threshold in packets, as last sampled, of flows with less than half of what the best has."""
    last = flows.sort("t_ns").group_by("flow").last().with_columns(pl.col("delivered_bytes").fill_null(0))
    held = last.filter(2 * pl.col("delivered_bytes") < pl.col("delivered_bytes").max())
    return set(held.select("state", pl.col("cwnd_bytes") // MSS, pl.col("ssthresh_bytes") // MSS).iter_rows())


@pytest.mark.guest
def test_what_there_was_no_room_for_is_not_sent_and_reduces_the_window(tmp_path: Path, built: None) -> None:
    changes = ["sweep.traffic.bulk.flows=[16]", "duration=6s"]
    result = bs.run(EXAMPLE, changes, engine=["sim", "guest"], out=tmp_path)
    for run in result.runs:
        found = metrics.compute(run)
        # Hundreds of packets were dropped, but none was lost: no acknowledgement is missing.
        assert found["drops.h1>h2"] > 50
        assert found["retransmits.total"] == 0
        # Ten could have the queue to themselves. Others get in now and then: some microseconds pass from when a packet
        # leaves the queue to when its sender fills the place.
        assert 9.5 / 16 <= found["goodput.jain"] <= 11.5 / 16
        # A window of ten is reduced at the first attempt, and again where a first segment got out and was answered.
        starving = starved(run.flows)
        assert starving
        assert all(state in {"cwr", "open"} and cwnd <= 10 and ssthresh <= 7 for state, cwnd, ssthresh in starving)


@pytest.mark.guest
def test_what_red_drops_early_is_sent_again_and_reduces_the_window_once(tmp_path: Path, built: None) -> None:
    changes = ["sweep.traffic.bulk.flows=[8]", f"link.uplink.queue={RED}", "duration=20s"]
    result = bs.run(EXAMPLE, changes, engine=["sim", "guest"], out=tmp_path)
    sim, guest = (metrics.compute(run) for run in result.runs)
    assert sim["retransmits.total"] == pytest.approx(guest["retransmits.total"], rel=0.25)
    assert sim["cwnd.bulk.mean_packets"] == pytest.approx(guest["cwnd.bulk.mean_packets"], rel=0.15)
    assert sim["rtt.p50_ms"] == pytest.approx(guest["rtt.p50_ms"], rel=0.05)
    for found in (sim, guest):
        assert found["retransmits.total"] > 50
        assert found["goodput.bulk_mbit"] > 9.4


@pytest.mark.guest
def test_data_goes_first_where_acknowledgements_wait_for_the_application(tmp_path: Path, built: None) -> None:
    result = bs.run(EXAMPLE.with_name("two-ways.toml"), engine=["sim", "guest"], out=tmp_path)
    goodput = {
        (run.engine, run.point["host.h2.tcp.rmem_default"]): metrics.compute(run)["goodput.total_mbit"]
        for run in result.runs
    }
    # Four repetitions each have 19.0, and 16.8 or 17.1 Mbit/s, with standard deviations of 0.1 to 0.3.
    for buffer, least, most in [("131072b", 18.5, 19.5), ("4mb", 16.4, 17.8)]:
        assert least < goodput["sim", buffer] < most
        assert least < goodput["guest", buffer] < most
