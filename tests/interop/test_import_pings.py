"""Ping is read in any language, in several runs, with any time stamps: nothing that was answered is lost."""

from pathlib import Path

import pinglogs
import pytest

from bufferscope.base.errors import InputError
from bufferscope.interop.importing.content import Unusable, text_of
from bufferscope.interop.importing.conversion import import_file
from bufferscope.interop.importing.kinds import read
from bufferscope.interop.importing.result import Reading

MS = 1_000_000
LINE = "64 bytes from {host}: icmp_seq={seq} ttl=57 time={ms} ms"
HEADER = "PING {0} ({0}) 56(84) bytes of data."


def _rtts(found: Reading, name: str = "ping") -> list[tuple[int, float | None]]:
    return [(probe.seq, probe.rtt_ns and probe.rtt_ns / MS) for probe in found.probes[name]]


def _times_s(found: Reading) -> list[float]:
    (probes,) = found.probes.values()
    return [round((probe.sent_ns - probes[0].sent_ns) / 1e9, 2) for probe in probes]


def _lines(numbers: list[int], host: str = "192.0.2.1", ms: float = 20) -> str:
    return "".join(LINE.format(host=host, seq=seq, ms=ms) + "\n" for seq in numbers)


@pytest.mark.parametrize("ident", ["", " ident=77"], ids=["plain", "verbose"])
@pytest.mark.parametrize("address", ["192.0.2.1", "2001:db8::1"], ids=["v4", "v6"])
@pytest.mark.parametrize("language", pinglogs.UNIX)
def test_words_do_not_matter(language: str, address: str, ident: str) -> None:
    found = read(pinglogs.unix(language, address, ident))
    assert _rtts(found) == [(1, 10.1), (2, None), (3, None), (4, 350), (5, None), (6, 360)]
    assert _times_s(found) == [0, 0.2, 0.4, 0.6, 0.8, 1.0]
    assert found.traffic[0].settings["payload_bytes"] == 56
    assert "duplicates, which are left out: 1" in found.warnings


@pytest.mark.parametrize("encoding", ["latin-1", "utf-16", "utf-8-sig"])
def test_ping_of_linux_is_read_in_any_encoding(encoding: str) -> None:
    assert len(_rtts(read(text_of(pinglogs.unix("French").replace("\u202f", " ").encode(encoding))))) == 6


def _encoded(language: str, encoding: str) -> bytes:
    text = pinglogs.windows(language)
    return text.encode(pinglogs.WINDOWS[language].code_page if encoding == "code page" else encoding)


@pytest.mark.parametrize("encoding", ["code page", "utf-8", "utf-16", "utf-16-le"])
@pytest.mark.parametrize("language", pinglogs.WINDOWS)
def test_ping_of_windows_is_read_in_any_language_and_code_page(language: str, encoding: str) -> None:
    found = read(text_of(_encoded(language, encoding)))
    assert _rtts(found) == [(0, 14), (1, 380), (2, None), (3, 0.5)]
    assert _times_s(found) == [0, 1, 2, 3]
    assert found.traffic[0].settings["payload_bytes"] == 32
    assert "round trips that are only known to be below 1 ms: 1; half of it is taken" in found.warnings
    assert not any("lines are missing" in warning for warning in found.warnings)


@pytest.mark.parametrize("language", pinglogs.WINDOWS)
def test_windows_over_ipv6_and_with_nothing_answered(language: str) -> None:
    assert _rtts(read(pinglogs.windows(language, "2001:db8::1"))) == [(0, 14), (1, 380), (2, None), (3, 0.5)]
    assert _rtts(read(pinglogs.windows(language, answered=False))) == [(seq, None) for seq in range(4)]


def test_windows_counts_are_held_against_its_lines() -> None:
    cut = "".join(line for line in pinglogs.windows("English").splitlines(keepends=True) if "380" not in line)
    assert "ping sent 4 probes to 192.0.2.1 and lost 1; the file has lines of 3, 1 of them lost" in str(
        read(cut).warnings
    )


def test_a_line_of_powershell_has_its_time_before_ping() -> None:
    text = "".join(
        f"25/11/2026 23:59:{58 + n if n < 2 else n - 2:02} - {line}\r\n".replace("23:59:0", "00:00:0")
        for n, line in enumerate(["Reply from 192.0.2.1: bytes=32 time=10ms TTL=57"] * 4)
    )
    assert _times_s(read(text)) == [0, 1, 2, 3]


def test_runs_of_ping_in_one_file_follow_one_another() -> None:
    one = f"{HEADER.format('192.0.2.1')}\n{_lines([1, 2])}"
    found = read(one + one)
    assert _rtts(found) == [(seq, 20) for seq in (1, 2, 3, 4)]
    assert any("found 2 runs of ping to 1 host" in warning for warning in found.warnings)


@pytest.mark.parametrize(
    ("numbers", "answers"),
    [
        ([1, 2, 3, 1, 2], [1, 2, 3, 4, 5]),
        ([65534, 65535, 0, 1], [65534, 65535, 65536, 65537]),
        ([39999, 40000, 1, 2], [39999, 40000, 40001, 40002]),
    ],
    ids=["started again", "16 bits", "started again after half of 16 bits"],
)
def test_numbers_that_begin_anew_are_no_losses(numbers: list[int], answers: list[int]) -> None:
    assert _rtts(read(_lines(numbers))) == [(seq, 20) for seq in answers]


def test_a_late_answer_is_of_the_same_run() -> None:
    late = _lines([1, 3]) + _lines([2], ms=1500) + _lines([4])
    assert _rtts(read(late)) == [(1, 20), (2, 1500), (3, 20), (4, 20)]


def test_lines_of_two_pings_at_once_belong_to_the_address_that_they_name() -> None:
    hosts = ("192.0.2.1", "192.0.2.2")
    lines = [HEADER.format(host) for host in hosts]
    lines += [LINE.format(host=host, seq=seq, ms=10) for seq in (1, 2, 4) for host in hosts]
    found = read("\n".join(lines))
    for host in hosts:
        assert _rtts(found, host) == [(1, 10), (2, 10), (3, None), (4, 10)]


def test_lines_of_two_targets_without_their_first_lines_stay_apart() -> None:
    found = read(_lines([1, 2]) + _lines([1, 2], host="192.0.2.2", ms=640))
    assert _rtts(found, "192.0.2.1") == [(1, 20), (2, 20)]
    assert _rtts(found, "192.0.2.2") == [(1, 640), (2, 640)]


END = "\n--- 192.0.2.1 ping statistics ---\n{sent} packets transmitted, {got} received, 0% packet loss, time 900ms\n"


def test_ping_without_round_trips_is_refused() -> None:
    for text in (HEADER.format("192.0.2.1") + "\n" + END.format(sent=5, got=5), "16 bytes from h: icmp_seq=1 ttl=57\n"):
        with pytest.raises(Unusable, match="round-trip times"):
            read(text)


def test_lines_that_were_cut_out_are_no_losses() -> None:
    found = read(
        HEADER.format("192.0.2.1") + "\n" + _lines([1]) + "...\n" + _lines([300]) + END.format(sent=300, got=298)
    )
    assert _rtts(found) == [(1, 20), (300, 20)]
    assert any("ping received 298 answers, but the file has 2 of them" in warning for warning in found.warnings)


def test_an_answer_without_time_is_neither_lost_nor_answered() -> None:
    found = read(_lines([1]) + "64 bytes from h: icmp_seq=2 ttl=57 (truncated)\n" + _lines([3]))
    assert _rtts(found) == [(1, 20), (3, 20)]
    assert "answers without a round-trip time, which are left out: 1" in found.warnings


def test_a_clock_that_was_set_back_makes_no_round_trip_of_0(tmp_path: Path) -> None:
    file = tmp_path / "ping.txt"
    file.write_text(
        HEADER.format("192.0.2.1")
        + "\n"
        + _lines([1])
        + "Warning: time of day goes back (-1523us), taking countermeasures\n"
        + LINE.format(host="192.0.2.1", seq=2, ms="0.000")
        + "\n"
        + _lines([3])
    )
    run = import_file(file, tmp_path / "results")
    assert run.probes["seq"].to_list() == [1, 3]
    assert run.probes["rtt_ns"].to_list() == [20 * MS, 20 * MS]
    assert any("round trips of 0 of ping" in warning and warning.endswith(": 1") for warning in run.warnings)


def test_rows_of_0_are_neither_lost_nor_answered() -> None:
    found = read("time,rtt_ms\n0,20\n1,0\n2,0.0\n3,\n")
    assert _rtts(found) == [(0, 20), (3, None)]
    assert any(warning.endswith("left out: 2") for warning in found.warnings)


def test_windows_whole_milliseconds_may_be_0() -> None:
    text = pinglogs.windows("English").replace("time<1ms", "time=0ms")
    assert "=0ms" in text
    assert _rtts(read(text)) == [(0, 14), (1, 380), (2, None), (3, 0.5)]
    assert "round trips that are only known to be below 1 ms: 1; half of it is taken" in read(text).warnings


def test_probes_on_their_way_when_ping_was_stopped_are_named() -> None:
    text = (
        HEADER.format("192.0.2.1") + "\n" + _lines([1, 2], ms=640) + END.replace("900ms", "600ms").format(sent=4, got=2)
    )
    assert any("may have been on their way when ping was stopped" in warning for warning in read(text).warnings)
    assert not any("on their way" in warning for warning in read(text.replace("640", "20")).warnings)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("PING ::1(::1) 56 data bytes\n64 bytes from ::1: icmp_seq=1 ttl=64 time=0.178 ms\n", [(1, 0.178)]),
        ("16 bytes from 2001:db8::2, icmp_seq=0 hlim=57 time=10.1 ms\n", [(0, 10.1)]),
        ("PING h: 56 data bytes\n64 bytes from h (192.0.2.1): icmp_seq=1. time=1. ms\n", [(0, None), (1, 1)]),
        ("PING h: (192.0.2.1): 56 data bytes\n64 bytes from 192.0.2.1: icmp_seq=0 ttl=255 time=0 ms\n", [(0, 0.5)]),
        ("PING h (192.0.2.1) 56 data bytes\n" + _lines([0, 2]), [(0, 20), (1, None), (2, 20)]),
        ("64 bytes from 192.0.2.1: icmp_seq=0 ttl=57 time=10,123 ms\n", [(0, 10.123)]),
        ("64 bytes from 192.0.2.1: icmp_seq=0 ttl=57 time<1 ms\n", [(0, 0.5)]),
        ("From 192.0.2.9: icmp_seq=1 Redirect Host(New nexthop: 192.0.2.8)\n" + _lines([1]), [(1, 20)]),
        (_lines([1]) + "From 192.0.2.9 icmp_seq=2 Frag needed and DF set (mtu = 1400)\n", [(1, 20), (2, None)]),
    ],
    ids=[
        "v6 of iputils",
        "v6 of BSD",
        "Solaris",
        "AIX",
        "numbers from 0",
        "a comma",
        "a bound",
        "a redirect",
        "a message with a number",
    ],
)
def test_other_pings(text: str, expected: list[tuple[int, float | None]]) -> None:
    assert _rtts(read(text)) == expected


LOGGED = [HEADER.format("192.0.2.1"), *_lines(list(range(1, 9))).splitlines(), "", "--- h ---"]
STEPS = (0, 1.0, 1.01, 0.99, 1.02, 1.0, 0.98, 1.0, 1.01, 0, 0)


def _stamped(stamps: list[str]) -> str:
    return "\n".join(f"{stamp} {line}" for stamp, line in zip(stamps, LOGGED, strict=True))


SECONDS = range(len(LOGGED))
STAMPED = {
    "ts": [f"Nov 25 23:59:{55 + n}" if n < 5 else f"Nov 26 00:00:{n - 5:02}" for n in SECONDS],
    "ts -s": [f"00:00:{n:02}" for n in SECONDS],
    "ts %.s": [f"{1_700_000_000 + n}.250000" for n in SECONDS],
    "ts -s %.s": [f"{n}.000123" for n in SECONDS],
    "ts %F %T": [f"2026-11-25 12:00:{n:02}" for n in SECONDS],
    "ts %FT%T%z": [f"2026-11-25T12:00:{n:02}+0100" for n in SECONDS],
    "ts %T": [f"23:59:{55 + n}" if n < 5 else f"00:00:{n - 5:02}" for n in SECONDS],
    "date": [f"Wed Nov 25 12:00:{n:02} UTC 2026:" for n in SECONDS],
}


@pytest.mark.parametrize("form", STAMPED)
def test_times_before_the_lines_are_read(form: str) -> None:
    found = read(_stamped(STAMPED[form]))
    assert _rtts(found) == [(seq, 20) for seq in range(1, 9)]
    assert _times_s(found) == list(range(8))
    assert found.clock == (form in ("ts %.s", "ts %FT%T%z"))
    assert not any("are taken to have been sent every" in warning for warning in found.warnings)


def test_times_since_the_line_before_are_summed() -> None:
    times = _times_s(read(_stamped([f"{step:.6f}" for step in STEPS])))
    assert times == pytest.approx([0, 1.01, 2.0, 3.02, 4.02, 5.0, 6.0, 7.01], abs=0.02)


def test_times_that_may_count_from_anything_are_not_used() -> None:
    found = read(_stamped([f"00:00:0{int(n > 0)}" for n in SECONDS]))
    assert _times_s(found) == list(range(8))
    assert any("the zero of the timestamps is not known (ts -i?)" in warning for warning in found.warnings)


def test_a_file_of_two_tests_is_no_single_run(tmp_path: Path) -> None:
    file = tmp_path / "two.json"
    test = '{"start": {}, "intervals": [{"streams": [{"socket": 1, "start": 0, "end": 1, "bytes": 1}]}], "end": {}}'
    file.write_text(f"{test}\n{test}\n")
    with pytest.raises(InputError, match="found 2 tests; allowed: at most 1"):
        import_file(file, tmp_path / "results")
