"""Files to import may be damaged, huge or hostile: each ends in an error that says what was found."""

import gzip
import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bufferscope.base.errors import InputError
from bufferscope.interop.importing import content
from bufferscope.interop.importing.content import Unusable
from bufferscope.interop.importing.conversion import import_file
from bufferscope.interop.importing.kinds import FORMATS, JSON, read

FLENT: dict[str, Any] = {"version": 4, "metadata": {"NAME": "rrul"}, "x_values": [], "results": {}, "raw_values": {}}
PING = {"Ping (ms) ICMP": [{"t": 1.0, "val": 1.0, "seq": 1}, {"t": 2.0, "val": 1.0, "seq": 4_000_000_000}]}
SHORT = {"socket": 1, "start": 0, "end": 1}

REFUSED: dict[str, tuple[bytes, str]] = {
    "nothing": (b"", "found an unknown format; allowed: flent: a data file"),
    "noise": (bytes(range(256)) * 40, "found an unknown format"),
    "JSON of nobody": (b'{"a": 1}', "found JSON, but of no known program"),
    "JSON that is cut off": (b'{"start": {}, "intervals": [', "not JSON, or cut off"),
    "nesting": (b'{"a":' + b"[" * 100_000, "nested too deeply"),
    "a number of a million digits": (b'{"a": ' + b"9" * 1_000_000 + b"}", "not JSON, or cut off"),
    "gzip that is cut off": (gzip.compress(b"x" * 1000)[:-12], "cut off: the compressed content has no end"),
    "gzip that is damaged": (gzip.compress(b"x")[:10] + b"\xff\xff\xff", "not to be decompressed"),
    "a database of RRDtool": (b"RRD\x000003\x00", "found a database of RRDtool, as Smokeping has them"),
    "a capture": (
        bytes.fromhex("d4c3b2a1") + bytes(20),
        "found a capture of packets, which `bufferscope inspect` reads",
    ),
    "a capture in nanoseconds": (bytes.fromhex("a1b23c4d") + bytes(20), "which `bufferscope inspect` reads"),
    "a compressed pcapng": (gzip.compress(bytes.fromhex("0a0d0d0a1c000000")), "which `bufferscope inspect` reads"),
    "iperf3 without --json": (
        b"[  5] local 192.0.2.2 port 41234 connected to 192.0.2.1 port 5201\n[ ID] Interval           Transfer\n",
        "found the table that iperf prints, with rounded numbers; allowed: `iperf3 --json`",
    ),
    "nping": (
        b"\nStarting Nping 0.7.93 ( https://nmap.org/nping )\n"
        b"RCVD (0.0561s) ICMP [192.0.2.9 > 192.0.2.1 Echo reply (type=0/code=0) id=4 seq=1] IP [ttl=56 iplen=28]\n",
        "found the lines of nping, which have the times of packets, not round trips",
    ),
    "qlog in a sequence of JSON": (b'\x1e{"qlog_version": "0.3"}\n', "found JSON, but of no known program"),
    "a newer Flent": (json.dumps({**FLENT, "version": 99}).encode(), "version: found 99; allowed: at most 4"),
    "Flent without a result": (json.dumps(FLENT).encode(), "without any result; was the test cut short"),
    "Flent with a list for an object": (json.dumps({**FLENT, "results": []}).encode(), "results: found a list"),
    "Flent with a string for a sample": (
        json.dumps({**FLENT, "raw_values": {"TCP upload": ["x"]}}).encode(),
        r"raw_values.TCP upload\[0\]: found a string; expected an object",
    ),
    "sequence numbers from here to the moon": (
        json.dumps({**FLENT, "raw_values": PING}).encode(),
        "found 2 probes with sequence numbers from 1 to",
    ),
    "iperf3 that failed": (b'{"start": {}, "intervals": [], "error": "refused"}', "iperf3 failed: refused"),
    "iperf3 without bytes": (
        json.dumps({"start": {}, "intervals": [{"streams": [SHORT]}]}).encode(),
        r"intervals\[0\].streams\[0\]: expected numbers",
    ),
    "irtt of another format": (
        b'{"version": {"json_format": 7}, "round_trips": []}',
        "version.json_format: found 7; expected 1",
    ),
    "irtt without times": (b'{"version": {}, "round_trips": [{}]}', r"round_trips\[0\].timestamps: found nothing"),
    "CSV with a short row": (b"time,rtt_ms\n1\n", "line 2: found 1 values; expected 2: time, rtt_ms"),
    "CSV with a word": (b"time,rtt_ms\n1,soon\n", "line 2: found the round trip 'soon'; expected a number"),
    "CSV with another time": (b"time,rtt_ms\nnoon,1\n", "line 2: found the time 'noon'; expected seconds"),
    "Smokeping with a short row": (b"ping1 ping2\n\n100: 0.1\n", "the row of 100: found 1 values; expected 2"),
    "times that are a century apart": (b"time,rtt_ms\n1,1\n3200000000,1\n", "more than a year apart"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_file_that_cannot_be_used_is_refused(tmp_path: Path, name: str) -> None:
    found, message = REFUSED[name]
    file = tmp_path / "found"
    file.write_bytes(found)
    with pytest.raises(InputError, match=message) as raised:
        import_file(file, tmp_path / "results")
    assert str(file) in str(raised.value)
    assert "\n" not in str(raised.value)
    assert not (tmp_path / "results").exists()


@pytest.mark.parametrize(("path", "message"), [(".", "found a directory"), ("none", "No such file"), ("\0", "null")])
def test_what_is_no_file_is_refused(path: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        import_file(Path(path), Path("results"))


def test_a_long_file_takes_time_in_proportion(tmp_path: Path) -> None:
    """Anything quadratic would take minutes with so many lines."""
    file = tmp_path / "ping.txt"
    lines = (f"[{1_767_225_600 + n}.02] 64 bytes: icmp_seq={n % 65536} ttl=1 time=20 ms\n" for n in range(100_000))
    file.write_text("".join(lines))
    assert import_file(file, tmp_path / "results").meta["tables"]["probes"] == 100_000


def test_stamps_beyond_any_calendar_are_not_used(tmp_path: Path) -> None:
    """`ping -D` with seconds of the year 11476: the pings count, their times do not."""
    file = tmp_path / "ping.txt"
    line = "[30000000000{n}.1] 64 bytes from 1.2.3.4: icmp_seq={n} ttl=64 time=1.0 ms\n"
    file.write_text("PING a (1.2.3.4) 56(84) bytes of data.\n" + line.format(n=1) + line.format(n=2))
    run = import_file(file, tmp_path / "results")
    assert run.probes["rtt_ns"].to_list() == [1_000_000, 1_000_000]
    assert "time" in " ".join(run.warnings), run.warnings


def test_several_parts_of_gzip_are_one_content() -> None:
    assert content.decompressed(gzip.compress(b"one ") + gzip.compress(b"two")) == b"one two"


def test_control_characters_do_not_reach_the_terminal(tmp_path: Path) -> None:
    file = tmp_path / "ping.txt"
    file.write_text("PING \x1b[31mred (192.0.2.1): 56 data bytes\n64 bytes: icmp_seq=0 ttl=1 time=1 ms\n")
    run = import_file(file, tmp_path / "results")
    assert run.meta["title"] == r"ping \x1b[31mred"


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=8,
)
TEMPLATES: dict[str, Any] = {
    "flent": {
        **FLENT,
        "x_values": [0, 1],
        "results": {"TCP upload": [1, 2]},
        "raw_values": {"Ping (ms) ICMP": [{"t": 1, "val": 2, "seq": 1}], "TCP upload": [{"t": 1, "val": 1, "dur": 1}]},
    },
    "irtt": {
        "version": {"json_format": 1},
        "config": {"params": {"interval": 1, "length": 1}},
        "round_trips": [
            {"seqno": 0, "lost": "false", "delay": {"rtt": 1}, "timestamps": {"client": {"send": {"wall": 1}}}}
        ],
    },
    "iperf3": {
        "start": {"timestamp": {"timesecs": 1}, "test_start": {"protocol": "TCP"}},
        "intervals": [{"streams": [{"socket": 1, "start": 0, "end": 1, "bytes": 1, "rtt": 1, "snd_cwnd": 1}]}],
        "end": {"sum_received": {"jitter_ms": 1}},
    },
}


def _places(value: Any, here: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [here, *(place for key, each in inner for place in _places(each, (*here, key)))]


def _replaced(value: Any, place: tuple[Any, ...], other: Any) -> Any:
    if not place:
        return other
    changed = dict(value) if isinstance(value, dict) else list(value)
    changed[place[0]] = _replaced(value[place[0]], place[1:], other)
    return changed


@pytest.mark.parametrize("name", TEMPLATES)
@given(data=st.data())
@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_value_at_any_place_is_read_or_refused(tmp_path: Path, name: str, data: st.DataObject) -> None:
    template = TEMPLATES[name]
    place = data.draw(st.sampled_from(_places(template)))
    file = tmp_path / "file.json"
    file.write_text(json.dumps(_replaced(template, place, data.draw(JSON_VALUES))))
    with suppress(InputError):
        assert import_file(file, tmp_path / "results", name).metrics is not None


TEXTS = st.text(alphabet="PING 019.:[]-,=\nmsicq_e", max_size=300)


@given(st.sampled_from([name for name in FORMATS if name not in JSON]), TEXTS)
def test_any_text_is_read_or_refused(name: str, text: str) -> None:
    with suppress(Unusable):
        read(text, name)
