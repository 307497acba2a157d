"""The figures of captures: a colour and a name for each connection, and any damaged capture through the page."""

import random
import struct
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from captures import ACK, MS, Packet, download, growing, pcap, pcapng, pings, tcp

from bufferscope import figures
from bufferscope.base.errors import InputError
from bufferscope.figures import connections
from bufferscope.figures.choosing import chosen
from bufferscope.figures.source import NoDataError
from bufferscope.interop.inspection.inspecting import inspect
from bufferscope.results.result import Result
from bufferscope.store.run import Run

SMALL = download(60, rate_bps=10_000_000, rtt_ns=20 * MS, window=20)
STAMPED = growing(60, to_sender_ns=2 * MS, to_receiver_ns=20 * MS, added_ns=30 * MS, close=True)
FIGURES_OF_FLOWS: tuple[figures.FigureName, ...] = ("cwnd", "round_trips", "rtt_window", "goodput", "receive_window")
IP_BYTES = 20
PORTS = slice(IP_BYTES, IP_BYTES + 4)


@dataclass(frozen=True)
class _Several:
    """Runs of several experiments, as a comparison draws them."""

    runs: list[Run]


def _of_port(packets: list[Packet], port: int, server: int = 443) -> list[Packet]:
    """The same packets between other ports."""
    moved = []
    for packet in packets:
        data = bytearray(packet.data)
        known = {50_000: port, 443: server}
        data[PORTS] = struct.pack(">HH", *(known[each] for each in struct.unpack(">HH", data[PORTS])))
        moved.append(Packet(packet.t_ns, bytes(data)))
    return moved


def _result(tmp_path: Path, *transfers: list[Packet]) -> Result:
    file = tmp_path / "home.pcap"
    packets = [packet for transfer in transfers for packet in transfer]
    file.write_bytes(pcap(sorted(packets, key=lambda packet: packet.t_ns)))
    return Result([inspect([file], tmp_path / "out").run])


def _colours(spec: Any) -> Any:
    """The colour of the first layer that has one."""
    codes = (layer["encoding"].get("color") for layer in spec["layer"])
    return next(code for code in codes if code)


def test_each_connection_has_the_same_colour_and_name_in_all_figures(tmp_path: Path) -> None:
    result = _result(tmp_path, SMALL, _of_port(SMALL[:40], 50_001), _of_port(SMALL[:60], 50_002, 22))
    names = ["https from 203.0.113.5 (port 50000)", "ssh from 203.0.113.5", "https from 203.0.113.5 (port 50001)"]
    drawn = []
    for name in FIGURES_OF_FLOWS:
        color = _colours(figures.draw(result, name).to_dict())
        assert color["scale"]["domain"] == [*names, connections.OTHERS], name
        assert set(color["legend"]["values"]) <= set(names)
        drawn.append(color["legend"]["values"])
    assert drawn[1] == names


def test_a_single_connection_is_named_in_the_legend(tmp_path: Path) -> None:
    spec = figures.draw(_result(tmp_path, SMALL), "round_trips").to_dict()
    assert _colours(spec)["legend"]["values"] == ["https from 203.0.113.5"]


def test_of_many_connections_those_with_the_most_data_have_colours(tmp_path: Path) -> None:
    transfers = [_of_port(SMALL[: 20 + 4 * number], 50_000 + number) for number in range(10)]
    result = _result(tmp_path, *transfers)
    known = connections.names(result)
    assert len(known) == 7
    assert next(iter(known.values())) == "https from 203.0.113.5 (port 50009)"
    for name in ("goodput", "round_trips"):
        shown = _colours(figures.draw(result, name).to_dict())["legend"]["values"]
        assert shown == [*known.values(), connections.OTHERS], name


def test_several_captures_keep_a_colour_per_capture(tmp_path: Path) -> None:
    runs = []
    for name in ("one", "two"):
        (tmp_path / f"{name}.pcap").write_bytes(pcap(SMALL[: 40 if name == "one" else 60]))
        runs.append(inspect([tmp_path / f"{name}.pcap"], tmp_path / "out").run)
    for name in FIGURES_OF_FLOWS:
        try:
            spec = figures.draw(_Several(runs), name).to_dict()
        except NoDataError:
            continue
        assert _colours(spec)["field"] == "point", name


def _zeroed(content: bytes, draw: random.Random) -> bytes:
    start = draw.randrange(len(content))
    end = min(len(content), start + draw.randrange(1, 400))
    return content[:start] + bytes(end - start) + content[end:]


def _flipped(content: bytes, draw: random.Random) -> bytes:
    changed = bytearray(content)
    for _ in range(draw.choice((1, 10, 100))):
        changed[draw.randrange(24, len(changed))] ^= 1 << draw.randrange(8)
    return bytes(changed)


def _cut(content: bytes, draw: random.Random) -> bytes:
    return content[: draw.randrange(24, len(content))]


def _without(content: bytes, draw: random.Random) -> bytes:
    start = draw.randrange(24, len(content))
    return content[:start] + content[start + draw.randrange(1, 2000) :]


MUTATIONS = (_zeroed, _flipped, _cut, _without)
CONTENTS = (
    pcap(SMALL),
    pcap(STAMPED, snap_bytes=96),
    pcapng([*SMALL, *pings(5, 100 * MS, 30 * MS)], lost=3),
    pcap(pings(20, 10 * MS, 30 * MS, lost=[3])),
)
RARE = {
    "only acknowledgements": [tcp(n * MS, ("192.0.2.1", 5, "192.0.2.2", 6), 1, 1000 * n, ACK) for n in range(20)],
    "one segment": [tcp(0, ("192.0.2.1", 5, "192.0.2.2", 6), 1, 1, ACK, 100)],
    "no times": [packet.later(-packet.t_ns) for packet in SMALL],
    "backwards": SMALL[::-1],
    "no data back": [packet for packet in SMALL if packet.data[12] == 203],
}


def _draw_all(content: bytes, directory: Path) -> int:
    """The charts that are drawn of a capture; 0 if it is refused."""
    file = directory / "damaged.pcap"
    file.write_bytes(content)
    try:
        result = Result([inspect([file], directory / "out").run])
    except InputError:
        return 0
    drawn = 0
    for name in chosen(result.runs):
        try:
            drawn += bool(figures.draw(result, name).to_dict())
        except NoDataError:
            continue
    return drawn


@pytest.mark.parametrize("content", CONTENTS, ids=("pcap", "stamped", "pcapng", "pings"))
def test_every_chart_of_a_damaged_capture_is_drawn_or_says_what_is_missing(content: bytes, tmp_path: Path) -> None:
    draw = random.Random(len(content))
    drawn = [_draw_all(mutate(content, draw), tmp_path) for mutate in MUTATIONS]
    assert max(drawn) >= 2


@pytest.mark.parametrize("packets", RARE.values(), ids=RARE)
def test_every_chart_of_a_rare_capture_is_drawn_or_says_what_is_missing(packets: list[Packet], tmp_path: Path) -> None:
    _draw_all(pcap(packets), tmp_path)


@pytest.mark.parametrize("content", [_cut(CONTENTS[1], random.Random(1)), pcap(RARE["no data back"])])
def test_the_page_of_a_damaged_capture_is_made(cli: Callable[..., Any], tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a.pcap").write_bytes(content)
    answer = cli("inspect", "a.pcap")
    assert answer.status == 0, answer.err
    assert (tmp_path / "report" / "a" / "index.html").exists()
