"""What fping, Smokeping, iperf3 and irtt write, in all forms: no answer is lost, and what is not known is not 0."""

import json
from typing import Any

import pytest

from bufferscope.interop.importing.content import Unusable
from bufferscope.interop.importing.kinds import read, read_all
from bufferscope.interop.importing.result import Reading

MS = 1_000_000
START_S = 1_767_225_600


def _rtts(found: Reading, name: str = "ping") -> list[float | None]:
    return [probe.rtt_ns and probe.rtt_ns / MS for probe in found.probes[name]]


def _fping(numbers: list[int], host: str = "192.0.2.1") -> str:
    return "".join(f"{host} : [{seq}], 64 bytes, {10 + seq % 10}.0 ms (1 avg, 0% loss)\n" for seq in numbers)


def test_a_part_of_an_fping_log_begins_at_its_least_number() -> None:
    assert _rtts(read(_fping([5821, 5822, 5824]))) == [11, 12, None, 14]


def test_fping_that_is_started_again_goes_on() -> None:
    found = read(_fping([0, 1, 0, 1]))
    assert _rtts(found) == [10, 11, 10, 11]
    assert any("2 runs of fping follow one another" in warning for warning in found.warnings)


def test_summaries_of_several_runs_are_all_read() -> None:
    found = read("192.0.2.1 : 1.0 2.0\n192.0.2.2 : - 4\n192.0.2.1 : 3.0 -\n192.0.2.2 : 5 6\n")
    assert _rtts(found, "192.0.2.1") == [1, 2, 3, None]
    assert _rtts(found, "192.0.2.2") == [None, 4, 5, 6]


@pytest.mark.parametrize("end", ["192.0.2.2 : - -", "192.0.2.2 : xmt/rcv/%loss = 2/0/100%"])
def test_a_target_that_only_has_a_last_line_is_there(end: str) -> None:
    assert _rtts(read(_fping([0, 1]) + end + "\n"), "192.0.2.2") == [None, None]


def test_the_last_line_of_fping_shows_lost_probes_without_lines() -> None:
    counts = "192.0.2.1 : xmt/rcv/%loss = 3/1/66%, min/avg/max = 11/11/11\n"
    assert _rtts(read(_fping([1]) + counts)) == [None, 11, None]
    found = read(_fping([1000]) + counts.replace("3/1", "1001/900"))
    assert _rtts(found) == [10]
    assert any("fping received 900 answers" in warning for warning in found.warnings)


def test_names_with_addresses_are_targets() -> None:
    assert _rtts(read(_fping([0], "h.example (192.0.2.1)").replace(" : [", "     : ["))) == [10]


def test_fping_without_round_trips_is_refused() -> None:
    with pytest.raises(Unusable, match="use -C N instead of -c N -q"):
        read("192.0.2.1 : xmt/rcv/%loss = 3/3/0%, min/avg/max = 1.0/1.0/1.0\n")


def _smokeping(*rows: tuple[str, ...], step_s: int = 300) -> str:
    lines = [f"{START_S + n * step_s}: nan {' '.join(row)}" for n, row in enumerate(rows)]
    return "\n".join(["uptime loss ping1 ping2 ping3 ping4", "", *lines])


def test_a_step_with_total_loss_counts_and_one_without_a_value_does_not() -> None:
    found = read(_smokeping(("4", *["nan"] * 4), ("nan", *["-nan"] * 4), ("2", "nan", ".02", ".03", "nan")))
    assert _rtts(found) == [None, None, None, None, 20, 30, None, None]
    assert len(found.warnings) == 1


def test_steps_that_mix_rounds_are_named() -> None:
    found = read(_smokeping(("1.4", ".01", ".02", ".03", ".04"), ("3.9", ".01", ".02", ".03", ".04")))
    assert _rtts(found) == [10, 20, 30, None, None, None, None, None]
    assert any("2 of 2 steps mix rounds of pings" in warning for warning in found.warnings)
    coarse = read(_smokeping(("0", ".01", ".02", ".03", ".04"), ("0", ".01", ".02", ".03", ".04"), step_s=3600))
    assert any("a step of 3600 s is longer than Smokeping's usual" in warning for warning in coarse.warnings)


def test_a_negative_round_trip_is_no_loss() -> None:
    with pytest.raises(Unusable, match=r"found '-\.01'; expected a number of seconds"):
        read(_smokeping(("0", "-.01", ".02", ".03", ".04")))


def _interval(second: int, **stream: Any) -> dict[str, Any]:
    known = {"socket": 5, "start": second, "end": second + 1, "bytes": 1_250_000, "sender": True}
    return {"streams": [{**known, **stream}]}


def _test(**more: Any) -> dict[str, Any]:
    start = {"timestamp": {"timesecs": START_S}, "connecting_to": {"host": "h"}, "test_start": {"protocol": "TCP"}}
    sums = {"sum_sent": {"bits_per_second": 1e7, "retransmits": 17}, "sum_received": {"bits_per_second": 9e6}}
    return {"start": start, "intervals": [_interval(n, retransmits=n) for n in range(3)], "end": sums, **more}


def _bytes(found: Reading, flow: str = "iperf3.up/1") -> int | None:
    return found.flows[flow][-1].delivered_bytes


def test_a_stream_of_events_is_a_test() -> None:
    test = _test()
    events = [("start", test["start"]), *(("interval", each) for each in test["intervals"]), ("end", test["end"])]
    text = "\n".join(json.dumps({"event": event, "data": data}) for event, data in events)
    assert (_bytes(read(text)), read(text).flows["iperf3.up/1"][-1].retransmits) == (3_750_000, 3)
    cut = read(text[:-20])
    assert _bytes(cut) == 3_750_000
    assert any("JSON that is cut off" in warning for warning in cut.warnings)
    failed = read("\n".join([*text.splitlines()[:-1], json.dumps({"event": "error", "data": "interrupt"})]))
    assert any("ended with an error (interrupt)" in warning for warning in failed.warnings)
    assert len(read_all(text + "\n" + text)) == 2


def test_tests_that_follow_one_another_are_read_each() -> None:
    failed = {"start": {}, "intervals": [], "error": "unable to connect"}
    found = read_all("\n".join(json.dumps(each, indent=1) for each in (_test(), failed, _test())))
    assert [(each.part, _bytes(each)) for each in found] == [(1, 3_750_000), (3, 3_750_000)]
    assert "test 2 is left out: iperf3 failed: unable to connect" in found[-1].warnings


def test_what_iperf3_prints_behind_its_json_is_a_warning() -> None:
    found = read(json.dumps(_test()) + "\niperf3: error - unable to send control message: Broken pipe\n")
    assert _bytes(found) == 3_750_000
    assert any("iperf3: error - unable to send control message" in warning for warning in found.warnings)


def test_json_behind_other_lines_is_read() -> None:
    assert _bytes(read("Connecting to h\nseq=0 rtt=1ms\n" + json.dumps(_test(), indent=1))) == 3_750_000


def test_what_the_other_end_counted_is_reported() -> None:
    reverse = _test(intervals=[_interval(n, sender=False) for n in range(3)])
    found = read(json.dumps(reverse))
    assert found.reported == {"received_bps": 9e6, "retransmits": 17}
    assert found.flows["iperf3.down/1"][-1].retransmits is None


def test_what_an_interrupted_test_does_not_know_is_not_zero() -> None:
    end = {"sum_sent": {"retransmits": 3}, "sum_received": {"bits_per_second": 0, "jitter_ms": 0, "lost_percent": 0}}
    found = read(json.dumps(_test(end=end, error="interrupt - the client has terminated")))
    assert found.reported == {"retransmits": 3}
    assert _bytes(found) == 3_750_000
    assert any("what the other end counted is not known" in warning for warning in found.warnings)


def test_both_directions_have_their_own_results() -> None:
    both = [{"streams": [*_interval(0)["streams"], *_interval(0, socket=7, sender=False)["streams"]]}]
    end = {
        **_test()["end"],
        "sum_sent_bidir_reverse": {"retransmits": 4},
        "sum_received_bidir_reverse": {"bits_per_second": 8e6},
    }
    assert read(json.dumps(_test(intervals=both, end=end))).reported == {
        "up_received_bps": 9e6,
        "up_retransmits": 17,
        "down_received_bps": 8e6,
        "down_retransmits": 4,
    }


def test_a_server_only_knows_its_own_direction() -> None:
    start = {"accepted_connection": {"host": "client"}, "timestamp": {"timesecs": START_S}}
    received = {
        "intervals": [_interval(0, sender=False)],
        "end": {"sum_sent": {"retransmits": 0}, "sum_received": {"bits_per_second": 9e6}},
    }
    assert read(json.dumps({"start": start, **received})).reported == {"received_bps": 9e6}
    sent = {
        "intervals": [_interval(0)],
        "end": {"sum_sent": {"retransmits": 2}, "sum_received": {"bits_per_second": 0}},
    }
    assert read(json.dumps({"start": start, **sent})).reported == {"retransmits": 2}


def test_datagrams_that_come_late_are_taken_off_the_lost_ones() -> None:
    lost = [_interval(n, sender=False, lost_packets=count) for n, count in enumerate((5, -2, 1))]
    assert read(json.dumps(_test(intervals=lost))).flows["iperf3.down/1"][-1].lost == 4


def test_omitted_seconds_are_before_the_samples() -> None:
    test = _test(intervals=[_interval(0, omitted=True), _interval(0)])
    test["start"]["test_start"]["omit"] = 1
    first, last = read(json.dumps(test)).flows["iperf3.up/1"]
    assert (first.t_ns, last.t_ns) == ((START_S + 1) * 1000 * MS, (START_S + 2) * 1000 * MS)


def _irtt(duration_s: int) -> str:
    def trip(seq: int, lost: bool) -> dict[str, Any]:
        stamps = {"client": {"send": {"wall": (START_S * 10 + seq) * 100 * MS}}}
        return {
            "seqno": seq,
            "lost": str(lost).lower(),
            "timestamps": stamps,
            "delay": {} if lost else {"rtt": 150 * MS},
        }

    trips = [trip(seq, seq in (1, 9)) for seq in range(10)]
    params = {"duration": duration_s * 1000 * MS, "interval": 100 * MS, "length": 60}
    return json.dumps({"version": {"json_format": 1}, "config": {"params": params}, "round_trips": trips})


def test_probes_that_an_interrupted_irtt_did_not_wait_for_are_not_lost() -> None:
    assert _rtts(read(_irtt(1)), "irtt").count(None) == 2
    interrupted = read(_irtt(60))
    assert _rtts(interrupted, "irtt").count(None) == 1
    assert any("1 without an answer are left out, not lost" in warning for warning in interrupted.warnings)
