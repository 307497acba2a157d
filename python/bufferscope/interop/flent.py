"""A run as a data file of Flent (format 4): the test of Flent that it resembles, with Flent's names of the series.

Which test it is depends on the traffic: all parts of `rrul` or `rrul_be`; otherwise how many TCP connections send each
way. Flent's `download` is what flows to the end that sends the probes. Rates are of what was delivered, in steps of
Flent's default size; each probe is a raw value, lost ones without a round trip. The key `BUFFERSCOPE` of the metadata
has what Flent has no place for, so that importing the file gives the same metrics.
"""

import gzip
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from bufferscope import _core
from bufferscope.base.errors import InputError
from bufferscope.metrics.window import Window, window
from bufferscope.model.network import NANOSECONDS, probers, traffic_named
from bufferscope.model.scenario import Scenario, TcpTraffic
from bufferscope.stats.estimate import jain_index
from bufferscope.store.run import BaseRun

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

FORMAT = 4
SUFFIX = ".flent.gz"
STEP_NS = 200_000_000
"""Flent's default step, at which results are sampled."""
FARTHEST_STEPS = 5
"""Between values that are farther apart, Flent does not interpolate."""
RRUL = ("be", "bk", "cs5", "ef")
RRUL_BE = ("be", "be2", "be3", "be4")
TESTS: Mapping[str, Sequence[str]] = {"rrul": RRUL, "rrul_be": RRUL_BE}
"""Flent's tests whose connections have names."""
WAYS = ("up", "down")
MBIT_BYTES = 1e6 / 8
MS = 1e6

Series = dict[str, list[float | None]]


@dataclass(frozen=True)
class Test:
    """The test of Flent that a run resembles."""

    name: str
    tcp: Mapping[str, str]
    """The flow of each series of rates."""
    probes: Mapping[str, str]
    """The probe of each series of round trips."""
    left: Sequence[str]
    """The traffic that the test has no place for."""


def file_name(run: BaseRun) -> str:
    """The name of a run's data file."""
    return f"{run.experiment}-{run.id}{SUFFIX}"


def write(run: BaseRun, file: Path) -> list[str]:
    """Write a run as a data file of Flent; returns notes on what it lacks. Raises `InputError` if no test fits."""
    test = test_of(run)
    text = json.dumps(_content(run, test), allow_nan=False)
    file.write_bytes(gzip.compress(text.encode(), mtime=0))
    return [f"{file.name}: Flent's test {test.name} has no place for {', '.join(test.left)}"] if test.left else []


def test_of(run: BaseRun) -> Test:
    """The test of Flent that a run resembles; raises `InputError` if it resembles none."""
    scenario = run.scenario
    near = _near(scenario)
    known = [entry for entry in traffic_named(scenario, "tcp") if entry.get("transfers", 1) == 1]
    ways = {
        "up": [entry for entry in known if entry["from"] == near],
        "down": [entry for entry in known if entry["to"] == near and entry["from"] != near],
    }
    probes = _probe_series(scenario)
    flows = {way: [name for entry in entries for name in _flows(run, entry)] for way, entries in ways.items()}
    placed = {entry["name"] for entries in ways.values() for entry in entries} | set(probes.values())
    left = [entry["name"] for entry in scenario["traffic"] if entry["name"] not in placed]
    if not probes and not any(flows.values()):
        kinds = ", ".join(dict.fromkeys(entry["kind"] for entry in scenario["traffic"])) or "no traffic"
        raise InputError(
            f"{run.id}: found {kinds}; allowed for --format flent: tcp to or from the end that pings, ping or irtt"
        )
    name, tcp = _tcp_series(ways, flows)
    return Test(name, tcp, probes, left)


def _near(scenario: Scenario) -> int | None:
    """The end at which Flent would run: the one that sends the probes, or else the first connection's."""
    first = next(iter([*probers(scenario), *traffic_named(scenario, "tcp")]), None)
    return first["from"] if first else None


def _flows(run: BaseRun, entry: TcpTraffic) -> list[str]:
    """The names of an entry's connections that were sampled, in the order of their numbers."""
    import polars as pl

    own = pl.col("flow").str.extract(r"^(.*)/\d+$", 1) == entry["name"]
    names: list[str] = run.flows.filter(own)["flow"].unique().to_list()
    return sorted(names, key=lambda name: int(name.rpartition("/")[2]))


def _tcp_series(
    ways: Mapping[str, Sequence[TcpTraffic]], flows: Mapping[str, Sequence[str]]
) -> tuple[str, dict[str, str]]:
    """The test's name, and the flow of each series of rates."""
    for test, parts in TESTS.items():
        if all(_parts(ways[way], way) == set(parts) and len(flows[way]) == len(parts) for way in WAYS):
            by_part = {(way, flow.rpartition("/")[0].rpartition(".")[2]): flow for way in WAYS for flow in flows[way]}
            return test, {f"TCP {way}load {part.upper()}": by_part[way, part] for way in WAYS for part in parts}
    up, down = len(flows["up"]), len(flows["down"])
    if max(up, down) <= 1:
        name = {(1, 1): "tcp_bidirectional", (1, 0): "tcp_upload", (0, 1): "tcp_download"}.get((up, down), "ping")
        return name, {f"TCP {way}load": flows[way][0] for way in WAYS if flows[way]}
    if up and down:
        return "rrul_be_nflows", {
            f"TCP {way}load BE::{number}": flow for way in WAYS for number, flow in enumerate(flows[way], start=1)
        }
    way = "up" if up else "down"
    return f"tcp_n{way}", {f"TCP {way}load::{number}": flow for number, flow in enumerate(flows[way], start=1)}


def _parts(entries: Sequence[TcpTraffic], way: str) -> set[str]:
    """The last words of the names of a test's entries in one direction, as `be` of `rrul.up.be`."""
    found = [re.fullmatch(rf".*\.{way}\.(\w+)", entry["name"]) for entry in entries]
    return {match[1] for match in found if match}


def _probe_series(scenario: Scenario) -> dict[str, str]:
    """The probe of each series of round trips."""
    found: dict[str, str] = {}
    entries = probers(scenario)
    over_udp = [entry["name"] for entry in entries if entry["kind"] == "irtt"]
    for entry in entries:
        name, word = entry["name"], entry["name"].rpartition(".")[2].upper()
        if entry["kind"] == "irtt":
            series = f"Ping (ms) UDP {word}" if len(over_udp) > 1 or ".udp." in name else "Ping (ms) UDP BE"
        else:
            series = "Ping (ms) ICMP" if "Ping (ms) ICMP" not in found else f"Ping (ms) ICMP {name} (extra)"
        found[series if series not in found else f"{series} {name}"] = name
    return found


def _content(run: BaseRun, test: Test) -> dict[str, object]:
    started = datetime.fromisoformat(run.meta["started"])
    t0_s = started.timestamp()
    duration_ns = run.scenario["duration_ns"]
    grid_ns = range(0, duration_ns + 1, STEP_NS)
    results: Series = {}
    raw: dict[str, list[dict[str, object]]] = {}
    for series, flow in test.tcp.items():
        results[series], raw[series] = _rates(run, flow, grid_ns, t0_s)
    for series, probe in test.probes.items():
        results[series], raw[series] = _round_trips(run, probe, grid_ns, t0_s)
    results |= _computed(test.name, results)
    return {
        "version": FORMAT,
        "metadata": _metadata(run, test, started, list(results)),
        "x_values": [t_ns / NANOSECONDS for t_ns in grid_ns],
        "results": results,
        "raw_values": raw,
    }


def _metadata(run: BaseRun, test: Test, started: datetime, series: Sequence[str]) -> dict[str, object]:
    seconds = run.scenario["duration_ns"] / NANOSECONDS
    moment = started.replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"
    streams = {f"{way}load_streams": str(sum(name.startswith(f"TCP {way}") for name in test.tcp)) for way in WAYS}
    note = f"made by bufferscope {_core.__version__} of the run {run.id} (engine {run.engine})"
    left = f"; without {', '.join(test.left)}" if test.left else ""
    return {
        "NAME": test.name,
        "TITLE": _title(run),
        "NOTE": note + left,
        "TIME": moment,
        "T0": moment,
        "LENGTH": seconds,
        "TOTAL_LENGTH": seconds,
        "STEP_SIZE": STEP_NS / NANOSECONDS,
        "HOST": "far",
        "HOSTS": ["far"],
        "LOCAL_HOST": "near",
        "IP_VERSION": 4,
        "FLENT_VERSION": f"bufferscope {_core.__version__}",
        "DATA_FILENAME": file_name(run),
        "TEST_PARAMETERS": {name: count for name, count in streams.items() if count != "0"},
        "SERIES_META": _series_meta(run, test, series),
        "BUFFERSCOPE": {
            "experiment": run.experiment,
            "run": run.id,
            "engine": run.engine,
            "warmup_ns": run.scenario["warmup_ns"],
            "duration_ns": run.scenario["duration_ns"],
            "unloaded_ns": window(run.scenario).end_ns,
            "mss_bytes": run.meta["mss_bytes"],
            "series": {**test.tcp, **test.probes},
        },
    }


def _title(run: BaseRun) -> str:
    """What distinguishes the run from others, briefly: Flent's legends repeat it. Repetitions have the same title."""
    others = [f"{path.rpartition('.')[2]} {value}" for path, value in run.settings.items() if path not in run.point]
    return ", ".join([*(run.point.values() or [run.experiment]), *others, run.engine])


def _series_meta(run: BaseRun, test: Test, series: Sequence[str]) -> dict[str, dict[str, object]]:
    """Units, and the means that Flent prints: those of the run's metrics, so of the time that they measure."""
    means = {**_mean_rates(run, test), **_mean_round_trips(run, test)}
    for way in WAYS:
        own = [value for name, value in means.items() if name.startswith(f"TCP {way}load")]
        means |= {f"TCP {way}load sum": sum(own), f"TCP {way}load avg": sum(own) / len(own)} if own else {}
        means |= {f"TCP {way}load fairness": jain_index(own)} if sum(own) else {}
    return {
        name: {"UNITS": "ms" if name.startswith("Ping") else "Mbits/s", "MEAN_VALUE": means.get(name)}
        for name in series
    }


def _mean_rates(run: BaseRun, test: Test) -> dict[str, float]:
    """The goodput of each connection, and of all together."""
    from bufferscope.metrics.batch import Batch
    from bufferscope.metrics.goodput import gains

    seconds = window(run.scenario).seconds
    if not seconds:
        return {}
    gained = dict(gains(Batch([run])).select("flow", "delivered_bytes").collect().iter_rows())
    rates = {name: (gained.get(flow) or 0) / MBIT_BYTES / seconds for name, flow in test.tcp.items()}
    return {**rates, "TCP totals": sum(rates.values())}


def _mean_round_trips(run: BaseRun, test: Test) -> dict[str, float]:
    """The mean round trip of each probe, and of all together."""
    import polars as pl

    own = Window.of(run).rows(run.probes, "sent_ns").drop_nulls("rtt_ns").with_columns(ms=pl.col("rtt_ns") / MS)
    means = dict(own.group_by("probe").agg(pl.col("ms").mean()).iter_rows())
    found = {name: means[probe] for name, probe in test.probes.items() if probe in means}
    together = own.filter(pl.col("probe").is_in(list(test.probes.values())))["ms"]
    return {**found, **({"Ping (ms) avg": float(together.sum()) / len(together)} if len(together) else {})}


def _rates(run: BaseRun, flow: str, grid_ns: range, t0_s: float) -> tuple[list[float | None], list[dict[str, object]]]:
    """A connection's goodput in steps: interpolated results, and raw values with the window and the round trip."""
    import numpy as np
    import polars as pl

    from bufferscope.metrics.goodput import deliveries

    delivered = deliveries(run).filter(pl.col("flow") == flow).drop_nulls("delivered_bytes")
    if delivered.is_empty():
        return [None] * len(grid_ns), []
    times, counted = delivered["t_ns"].to_numpy(), delivered["delivered_bytes"].to_numpy()
    begin_ns, end_ns = min(_start_ns(run, flow), int(times[0])), int(times[-1])
    edges = np.unique(np.append(np.arange(begin_ns, end_ns, STEP_NS), end_ns))
    at = np.searchsorted(times, edges, side="right") - 1
    total = np.where(at >= 0, counted[at], 0)
    total[0] = 0
    spans = np.diff(edges)
    rates = np.diff(total) / MBIT_BYTES / (spans / NANOSECONDS)
    raw: list[dict[str, object]] = [
        {"t": t0_s + int(t_ns) / NANOSECONDS, "dur": int(span) / NANOSECONDS, "val": float(rate), **state}
        for t_ns, span, rate, state in zip(edges[1:], spans, rates, _states(run, flow, edges[1:]), strict=True)
    ]
    return _interpolated(edges[1:], rates, grid_ns), raw


def _start_ns(run: BaseRun, flow: str) -> int:
    traffic = flow.rpartition("/")[0]
    return next(entry["start_ns"] for entry in run.scenario["traffic"] if entry["name"] == traffic)


def _states(run: BaseRun, flow: str, times_ns: "npt.NDArray[np.int64]") -> Iterator[dict[str, object]]:
    """The sender's state at these times, with Flent's names: window in packets, smoothed round trip in ms."""
    import polars as pl

    own = run.flows.filter(pl.col("flow") == flow).sort("t_ns")
    asked = pl.DataFrame({"t_ns": times_ns}, schema={"t_ns": pl.Int64})
    found = asked.join_asof(own.select("t_ns", "cwnd_bytes", "srtt_ns", "retransmits"), on="t_ns")
    for cwnd_bytes, srtt_ns, retransmits in found.drop("t_ns").iter_rows():
        known = {
            "tcp_cwnd": None if cwnd_bytes is None else cwnd_bytes / run.meta["mss_bytes"],
            "tcp_rtt": None if srtt_ns is None else srtt_ns / MS,
            "tcp_retransmits": retransmits,
        }
        yield {key: value for key, value in known.items() if value is not None}


def _round_trips(
    run: BaseRun, probe: str, grid_ns: range, t0_s: float
) -> tuple[list[float | None], list[dict[str, object]]]:
    """A probe's round trips: interpolated results, and every probe as a raw value, with the time of its answer."""
    import polars as pl

    own = run.probes.filter(pl.col("probe") == probe).sort("sent_ns")
    raw: list[dict[str, object]] = []
    for seq, sent_ns, rtt_ns in own.select("seq", "sent_ns", "rtt_ns").iter_rows():
        if rtt_ns is None:
            raw.append({"t": t0_s + sent_ns / NANOSECONDS, "seq": seq, "lost": True})
        else:
            raw.append({"t": t0_s + (sent_ns + rtt_ns) / NANOSECONDS, "seq": seq, "val": rtt_ns / MS})
    answered = own.drop_nulls("rtt_ns").select(t_ns=pl.col("sent_ns") + pl.col("rtt_ns"), ms=pl.col("rtt_ns") / MS)
    arrived = answered.sort("t_ns")
    return _interpolated(arrived["t_ns"].to_numpy(), arrived["ms"].to_numpy(), grid_ns), raw


def _interpolated(
    times_ns: "npt.NDArray[np.int64]", values: "npt.NDArray[np.float64]", grid_ns: range
) -> list[float | None]:
    """The values at fixed steps, as Flent interpolates them: null beyond the ends and in long gaps."""
    import numpy as np

    if len(times_ns) == 0:
        return [None] * len(grid_ns)
    grid = np.array(grid_ns)
    found = np.interp(grid, times_ns, values, left=np.nan, right=np.nan)
    after = np.searchsorted(times_ns, grid).clip(0, len(times_ns) - 1)
    gaps = times_ns[after] - times_ns[(after - 1).clip(0)]
    found[(gaps > FARTHEST_STEPS * STEP_NS) & (times_ns[after] != grid)] = np.nan
    return [None if np.isnan(value) else round(float(value), 6) for value in found]


def _computed(test: str, results: Series) -> Series:
    """The series that Flent computes of others: sums and means at each step."""
    found: Series = {}
    totals = [values for name, values in results.items() if name.startswith("TCP")]
    for way in WAYS:
        own = [values for name, values in results.items() if name.startswith(f"TCP {way}load")]
        if own and not test.startswith("tcp_bi") and test not in ("tcp_upload", "tcp_download"):
            found[f"TCP {way}load avg"] = _each_step(own, lambda known: sum(known) / len(known))
            found[f"TCP {way}load sum"] = _each_step(own, sum)
        if own and test.startswith("tcp_n"):
            found[f"TCP {way}load fairness"] = _each_step(own, jain_index)
    if test.startswith("rrul"):
        found["TCP totals"] = _each_step(totals, sum)
        pings = [values for name, values in results.items() if name.startswith("Ping")]
        found["Ping (ms) avg"] = _each_step(pings, lambda known: sum(known) / len(known))
    return found


def _each_step(
    series: Sequence[Sequence[float | None]], combined: Callable[[Sequence[float]], float]
) -> list[float | None]:
    """The combination of the values of each step that are known; null if none is."""
    steps = ([value for value in values if value is not None] for values in zip(*series, strict=True))
    return [combined(known) if known else None for known in steps]
