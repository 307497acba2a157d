"""The packets of simulated runs as pcapng files, for Wireshark.

A simulation is deterministic, so packets need not be stored: the run is simulated again, and its packets are written on
the way. What comes out is compared with the totals of the stored run, so that a file never shows another run's packets.
"""

import json
import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bufferscope import _core
from bufferscope.errors import EngineError, InputError, check_number, printable
from bufferscope.names import closest
from bufferscope.scenario import SIDES, Scenario
from bufferscope.store import PARTIAL
from bufferscope.store.run import BaseRun

FORMAT = "pcapng"
LAYERS = {
    "qdisc": "packets as they arrive at the queueing discipline, which may drop them",
    "ring": "packets as they pass from the queueing discipline into the driver's ring",
    "wire": "packets as their transmission begins",
    "arrived": "packets as they arrive at the other end of the link",
    "dropped": "packets that were dropped or lost, each with the reason as a comment",
}
"""Where in a port packets are seen, and what an interface of the file shows there."""
ON_AIR = "packets as they arrive over the air, after retries"
SNAPLEN, MOST_SNAPLEN = 128, 262_144
"""Bytes stored of each packet: all headers; and the most that readers accept."""

Progress = Callable[[int, int], bool]
"""Called with the simulated time and the run's duration in nanoseconds; False stops."""


def export_packets(
    runs: Sequence[BaseRun],
    directory: Path,
    *,
    ports: Sequence[str] = (),
    layers: Sequence[str] = (),
    snaplen: int = SNAPLEN,
    force: bool = False,
    progress: Progress = lambda _now_ns, _duration_ns: True,
) -> list[Path]:
    """Write one pcapng file per run into a directory; returns their paths.

    Without `ports` and `layers`, a file shows what `tcpdump` on the first sender would see. Without `layers`, ports
    that are named show their wire, and without `ports`, layers that are named are those of all ports. Raises
    `InputError` for names that do not exist, for runs whose packets can't be had, and if a file already exists, unless
    `force` is set; `EngineError` if the run can't be simulated.
    """
    check_number("snaplen", snaplen, 1, MOST_SNAPLEN)
    _check_layers(layers)
    for run in runs:
        _check_run(run)
    chosen = [(run, interfaces(run.scenario, ports, layers)) for run in runs]
    files = [directory / f"{run.id}.{FORMAT}" for run in runs]
    for file in files:
        if files.count(file) > 1:
            raise InputError(
                f"{file}: two of the runs have this name; export them one at a time, each with its own --out"
            )
        if file.exists() and not force:
            raise InputError(f"{file}: already exists; --force replaces it, --out writes elsewhere")
    for (run, shown), file in zip(chosen, files, strict=True):
        with _complete(file) as place:
            _write(run, shown, place, snaplen, progress)
    return files


Interface = tuple[int, str, str, str]
"""The index of a port, one of `LAYERS`, and the interface's name and description."""


def interfaces(scenario: Scenario, ports: Sequence[str] = (), layers: Sequence[str] = ()) -> list[Interface]:
    """The interfaces of these ports and layers. If none is named, those of the host that sends the first traffic."""
    on_air = {station["link"] for wifi in scenario.get("wifi", []) for station in wifi["stations"]}
    nodes = [node["name"] for node in scenario["nodes"]]
    sender = nodes[scenario["traffic"][0]["from"]]
    found: list[Interface] = []
    names = []
    for index, link in enumerate(scenario["links"]):
        ends = [nodes[end] for end in link["ends"]]
        for side, key in enumerate(SIDES):
            name = f"{ends[side]}>{ends[1 - side]}"
            names.append(name)
            has = {"wire", "arrived", "dropped"}
            has |= {"qdisc"} if link[key]["rate"] is not None else set()
            has |= {"ring"} if link[key].get("ring") or index in on_air else set()
            wanted = layers or _shown_by_default(sender, ends[side], ends[1 - side], of_any_port=bool(ports))
            if ports and name not in ports:
                continue
            for layer, words in LAYERS.items():
                if layer in has and layer in wanted:
                    told = ON_AIR if layer == "wire" and index in on_air else words
                    found.append((2 * index + side, layer, f"{name} {layer}", f"{name}: {told}"))
    for port in ports:
        if port not in names:
            raise InputError(
                f"--port: found {printable(port)!r}{closest(port, names)}; the run has: {', '.join(names)}"
            )
    if not found:
        raise InputError(f"--layer: no port that was chosen has the layer {' or '.join(layers)}")
    return found


def _shown_by_default(sender: str, start: str, end: str, *, of_any_port: bool) -> Sequence[str]:
    """The layers that are shown of a port between two nodes: one, so that no packet appears twice at one place."""
    if of_any_port or start == sender:
        return ("wire",)
    return ("arrived",) if end == sender else ()


def _check_layers(layers: Sequence[str]) -> None:
    for layer in layers:
        if layer not in LAYERS:
            raise InputError(
                f"--layer: found {printable(layer)!r}{closest(layer, LAYERS)}; allowed: {', '.join(LAYERS)}"
            )


def _check_run(run: BaseRun) -> None:
    """Raise `InputError` if the packets of a run can't be had."""
    if run.engine != "sim":
        raise InputError(
            f"{run.id}: made by the engine {run.engine}, which kept no packets; only a simulated run (sim) can be "
            "repeated packet by packet"
        )
    if run.meta["summary"].get("changes"):
        raise InputError(
            f"{run.id}: was changed while it ran, and can't be repeated from its file; run the experiment with the "
            "changed values, and export that"
        )


def _write(run: BaseRun, shown: list[Interface], file: Path, snaplen: int, progress: Progress) -> None:
    comment = f"{run.experiment}, {run.id}: packets of a simulation; times are those of its records"
    try:
        summary, _ = _core.capture(json.dumps(run.scenario), run.seed, file, shown, snaplen, comment, progress)
    except _core.SimulationError as error:
        raise EngineError(f"{run.id}: {error}") from None
    except ValueError as error:
        raise InputError(f"{run.id}: {printable(str(error))}") from None
    difference = _difference(json.loads(summary), dict(run.meta["summary"]))
    if difference:
        raise InputError(
            f"{run.id}: simulated again, the run came out differently ({difference}), so these would not be its "
            f"packets; another build of bufferscope ({run.meta['bufferscope']}) made it: run the experiment again"
        )


def _difference(again: dict[str, Any], stored: dict[str, Any]) -> str:
    """What differs between the totals of two runs; empty if nothing does."""
    for key in ("events", "hops", "ended_ns"):
        if again[key] != stored.get(key):
            return f"{key}: {again[key]}, was {stored.get(key)}"
    return next((f"packets by {key[:-1]}" for key in ("ports", "flows") if again[key] != stored.get(key)), "")


@contextmanager
def _complete(file: Path) -> Iterator[Path]:
    """A temporary path that becomes the file if the block succeeds, and is removed if not."""
    place = file.with_name(f"{PARTIAL}{file.stem}-{secrets.token_hex(4)}")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        yield place
        place.replace(file)
    except OSError as error:
        raise InputError(f"{file}: cannot write here: {error.strerror}") from None
    finally:
        place.unlink(missing_ok=True)
