"""Data files of Flent, made by hand: ten seconds of load between five seconds of pings, of which every number is known.

`content` has the newest format; `before_version_4` makes an older file of it, as netperf and Flent wrote them.
"""

import copy
import gzip
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

START_S = 1_767_225_600
"""2026-01-01 00:00 UTC."""
DELAY_S, LENGTH_S = 5, 10
STEP_S = 0.2

Values = list[dict[str, Any]]


def rates(mbit: float, begin_s: float = DELAY_S, length_s: float = LENGTH_S, **state: Any) -> Values:
    """Netperf's rates over intervals of a step, with the state of the socket at each."""
    steps = round(length_s / STEP_S)
    times = [START_S + begin_s + (n + 1) * STEP_S for n in range(steps)]
    return [{"t": t, "dur": STEP_S, "val": mbit, **state} for t in times]


def pings(idle_ms: float, loaded_ms: float, *, numbered: bool = True) -> Values:
    """A ping each step: the first of the load is sent a millisecond after its begin, so no value lies on its edges."""
    found = []
    for n in range(round((LENGTH_S + 2 * DELAY_S) / STEP_S)):
        sent_s = n * STEP_S + 0.001
        rtt_ms = loaded_ms if DELAY_S <= sent_s < DELAY_S + LENGTH_S else idle_ms
        found.append({"t": START_S + sent_s + rtt_ms / 1000, "val": rtt_ms, **({"seq": n} if numbered else {})})
    return found


def transactions(rtt_ms: float) -> Values:
    """Round trips of netperf, as means over its intervals."""
    return rates(rtt_ms, 0, LENGTH_S + 2 * DELAY_S)


def content(
    name: str,
    series: Mapping[str, Values],
    meta: Mapping[str, Mapping[str, Any]] | None = None,
    results: Mapping[str, Sequence[float | None]] | None = None,
) -> dict[str, Any]:
    """A file of the newest format; `results` have a value each step, by default none."""
    steps = round((LENGTH_S + 2 * DELAY_S) / STEP_S)
    return {
        "version": 4,
        "metadata": {
            "NAME": name,
            "TITLE": "",
            "FLENT_VERSION": "2.1.1",
            "T0": "2026-01-01T00:00:00.000000Z",
            "STEP_SIZE": STEP_S,
            "LENGTH": LENGTH_S,
            "TOTAL_LENGTH": LENGTH_S + 2 * DELAY_S,
            "SERIES_META": {key: dict(value) for key, value in (meta or {}).items()},
        },
        "x_values": [n * STEP_S for n in range(steps)],
        "results": {**{key: [None] * steps for key in series}, **{k: list(v) for k, v in (results or {}).items()}},
        "raw_values": {key: list(values) for key, values in series.items()},
    }


def before_version_4(newest: Mapping[str, Any], version: int) -> dict[str, Any]:
    """The same test in an older format: round trips of netperf as transactions per second, times of pages in seconds.

    Version 1 has raw values in the metadata.
    """
    old: dict[str, Any] = copy.deepcopy(dict(newest))
    old["version"] = version
    for name, values in old["raw_values"].items():
        for each in values:
            if name.startswith("Ping") and "dur" in each:
                each["val"] = 1000 / each["val"]
            elif name == "HTTP latency":
                each["val"] /= 1000
    if version == 1:
        del old["version"]
        own = old["metadata"]["SERIES_META"]
        for name, values in old.pop("raw_values").items():
            own.setdefault(name, {})["RAW_VALUES"] = values
        old["metadata"]["NETPERF_WRAPPER_VERSION"] = old["metadata"].pop("FLENT_VERSION")
    return old


def write(directory: Path, made: Mapping[str, Any], name: str = "test.flent.gz") -> Path:
    """The file, compressed if its name says so."""
    text = json.dumps(made).encode()
    file = directory / name
    file.write_bytes(gzip.compress(text) if name.endswith(".gz") else text)
    return file
