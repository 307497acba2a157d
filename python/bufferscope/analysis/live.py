"""The verdict of a live measurement as tables and words, for the terminal, for pages and for explanations."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from bufferscope.base.fmt import number
from bufferscope.store.live import LiveMeasurement, ends
from bufferscope.store.verdict import (
    Direction,
    DirectionNumbers,
    EndName,
    EpisodeKind,
    LiveVerdict,
    Location,
    PhaseKind,
    PhaseVerdict,
    Place,
    Spread,
)

MS = 1e6
MBIT = 1e6
UNKNOWN = "-"
PHASES: dict[PhaseKind, str] = {
    "idle": "idle",
    "download": "download",
    "upload": "upload",
    "both": "both directions",
    "cool_down": "cool-down",
}
"""What the phases are called."""
WAYS: dict[Direction, str] = {"down": "down", "up": "up"}
ENDS: dict[EndName, str] = {"client": "this machine", "server": "the server"}
OUTCOMES = {
    "queue": "a queue grows",
    "managed": "the queue is managed",
    "not_filled": "the path was not filled",
    "other_traffic": "other traffic",
    "path_changed": "the path changed",
    "clean": "no queue",
    "cannot_tell": "cannot tell",
}
PLACES: dict[Place, str] = {
    "client_send_buffer": "this machine's send buffer",
    "client_qdisc": "this machine's queueing discipline",
    "client_driver": "this machine's driver, ring or radio",
    "router_uplink": "the router's uplink, or a modem behind it",
    "router_downlink": "the router, towards this machine",
    "access_downlink": "the provider's side of the line, or a modem before the router",
    "modem": "the modem behind the router",
    "hop": "a hop",
    "last_hop": "the last hop, or the server",
    "server_driver": "the server's driver or ring",
    "server_qdisc": "the server's queueing discipline",
    "server_send_buffer": "the server's send buffer",
}


@dataclass(frozen=True)
class TextTable:
    """A table of texts."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def numbers(verdict: LiveVerdict) -> TextTable:
    """The numbers of each phase with a load, and the idle path."""
    columns = (
        *("Phase", "Outcome", "RTT p50 (ms)", "p95", "p99", "max", "Added p95 (ms)", "Grade"),
        *("Down (Mbit/s)", "Up (Mbit/s)", "Lost down", "Lost up", "RPM"),
    )
    idle = ("idle", UNKNOWN, *_spread(verdict["idle"]["rtt"]), *[UNKNOWN] * 7)
    return TextTable("Numbers of each phase", columns, (idle, *(_row(phase) for phase in verdict["phases"])))


def directions(verdict: LiveVerdict) -> TextTable:
    """The numbers of each direction under load."""
    columns = (
        *("Phase", "Direction", "Added p50 (ms)", "p95", "p99", "max", "Filled in (s)", "Standing (ms)", "Buffer (kB)"),
        *("Goodput p10 (Mbit/s)", "CV", "Retransmitted"),
    )
    rows = tuple(
        (PHASES[phase["kind"]], WAYS[each["direction"]], *_direction(each))
        for phase in verdict["phases"]
        for each in phase["numbers"]["directions"]
        if each["loaded"] or each["rises"]
    )
    return TextTable("Each direction under load", columns, rows)


def worst_cases(verdict: LiveVerdict) -> TextTable:
    """The worst case of the buffers, which a flood has shown, beside what the load filled."""
    rows = tuple(
        (
            WAYS[each["direction"]],
            ms(each["delay_ns"]),
            UNKNOWN if each["bytes"] is None else number(round(each["bytes"] / 1000)),
            mbit(each["rate_bps"]),
            percent(each["loss"]),
            "yes" if each["full"] else "no: it may be larger",
        )
        for each in verdict.get("worst_cases", ())
    )
    columns = ("Direction", "Standing (ms)", "Buffer (kB)", "Rate (Mbit/s)", "Lost", "Full")
    return TextTable("Worst case, by a flood", columns, rows)


def locations(verdict: LiveVerdict) -> TextTable:
    """In which queue the delay is, with probabilities: the places with at least half a per cent."""
    rows = tuple(
        (PHASES[phase["kind"]], WAYS[where["direction"]], place(each["location"]), percent(each["probability"]))
        for phase in verdict["phases"]
        for where in phase["where"]
        for each in where["posterior"]
        if each["probability"] >= 0.005
    )
    return TextTable("Where the delay is", ("Phase", "Direction", "Queue", "Probability"), rows)


def ladder(phase: PhaseVerdict) -> TextTable:
    """The hops of both ladders in a phase."""
    rows = tuple(
        (
            ENDS[hop["end"]],
            str(hop["ttl"]),
            hop["address"] or "no answer",
            ms(hop["idle_p50_ns"]),
            ms(hop["rise_ns"]),
            f"{hop['idle_count']} and {hop['loaded_count']}",
            "" if hop["used"] else hop["note"] or "not used",
        )
        for hop in phase["hops"]
    )
    columns = ("Seen from", "Hop", "Address", "Idle RTT (ms)", "Rise (ms)", "Answers", "Not used because")
    return TextTable(f"Hops, {PHASES[phase['kind']]}", columns, rows)


def grades(verdict: LiveVerdict) -> TextTable:
    """The table by which grades are given."""
    rows = tuple(
        (step["grade"], "longer" if step["below_ns"] is None else f"below {ms(step['below_ns'])} ms")
        for step in verdict["grade_table"]["steps"]
    )
    return TextTable(f"Grades by {verdict['grade_table']['statistic']}", ("Grade", "Delay"), rows)


def evidence(verdict: LiveVerdict) -> TextTable:
    """The facts that the verdict rests on."""
    rows = tuple((fact["text"], fact["value"]) for fact in verdict["evidence"])
    return TextTable("Evidence", ("Fact", "Value"), rows)


EPISODES: dict[EpisodeKind, str] = {
    "delay": "delay",
    "loss": "loss",
    "gap": "not measured",
    "path": "path",
    "address": "address",
    "other_test": "another test",
    "load": "test with load",
}
"""What the kinds of episodes are called."""


def episodes(live: LiveMeasurement, started: str) -> TextTable:
    """What happened while a connection was watched, in local time. `started` is the time of the run's time 0."""
    begin = datetime.fromisoformat(started)
    rows = tuple(
        (
            local_time(begin, each["start_ns"]),
            local_time(begin, each["end_ns"]),
            length(each["end_ns"] - each["start_ns"]),
            EPISODES[each["kind"]],
            WAYS[each["direction"]] if each["direction"] else UNKNOWN,
            ms(each["added_p50_ns"]),
            ms(each["added_max_ns"]),
            each["text"],
        )
        for each in sorted(live.get("episodes", ()), key=lambda each: each["start_ns"])
    )
    columns = ("From", "To", "Length", "What", "Direction", "Later p50 (ms)", "Later max (ms)", "In words")
    return TextTable("What happened (local time)", columns, rows)


def local_time(begin: datetime, time_ns: int) -> str:
    """A time of a run in this machine's time zone: `2026-11-26 20:15:03`."""
    return f"{(begin + timedelta(microseconds=time_ns / 1000)).astimezone():%Y-%m-%d %H:%M:%S}"


def length(time_ns: int) -> str:
    """How long something took.

    >>> length(48_000_000_000), length(12 * 60_000_000_000), length(192 * 60_000_000_000)
    ('48 s', '12 min', '3 h 12 min')
    """
    seconds = round(time_ns / 1e9)
    if seconds < 120:
        return f"{seconds} s"
    minutes = (seconds + 30) // 60
    return f"{minutes} min" if minutes < 120 else f"{minutes // 60} h {minutes % 60} min"


def not_reported(live: LiveMeasurement) -> Iterator[str]:
    """What the two ends could not find out, in sentences."""
    for name, end in ends(live).items():
        if unknown := end.get("unknown"):
            yield f"{ENDS[name].capitalize()} does not report: {', '.join(unknown)}."


def place(location: Location) -> str:
    """A place in words.

    >>> place({"place": "hop", "direction": "up", "link": 3, "address": "203.0.113.1"})
    'a hop, onto link 3 (203.0.113.1)'
    """
    words = PLACES[location["place"]]
    if location["place"] == "hop":
        words += f", onto link {location['link']}"
    return f"{words} ({location['address']})" if location["address"] else words


def percent(share: float) -> str:
    """A share as a percentage: `96 %`, `0.5 %`."""
    return f"{100 * share:.3g} %"


def ms(time_ns: int | None) -> str:
    """A time in milliseconds, without its unit: one decimal below 100 ms."""
    if time_ns is None:
        return UNKNOWN
    value = time_ns / MS
    return number(round(value, 1) if abs(value) < 100 else round(value))


def mbit(bits_per_second: int | None) -> str:
    """A rate in Mbit/s, without its unit."""
    return UNKNOWN if bits_per_second is None else number(float(f"{bits_per_second / MBIT:.3g}"))


def percentile(spread: Spread, key: str) -> str:
    """A percentile in milliseconds; one that falls among the lost probes is longer than the longest known."""
    value: int | None = spread[key]  # type: ignore[literal-required]
    if value is None and spread["censored"]:
        return f"> {ms(spread['max_ns'])}"
    return ms(value)


def of_phase(verdict: LiveVerdict, kind: PhaseKind) -> PhaseVerdict | None:
    """The verdict about the first phase of a kind."""
    return next((phase for phase in verdict["phases"] if phase["kind"] == kind), None)


def responsiveness(live: LiveMeasurement | None) -> list[str]:
    """The score of each phase with its parts, and its parameters, if the test used the protocol; else nothing."""
    used = live["parameters"].get("responsiveness") if live else None
    if not live or not isinstance(used, Mapping):
        return []
    sentences = []
    for phase in live["verdict"]["phases"]:
        name, found = PHASES[phase["kind"]], phase["rpm"]
        if found["rpm"] is None or found["foreign"] is None or found["own"] is None:
            sentences.append(f"{name}: no RPM: {found['reason'] or 'not measured'}.")
            continue
        sentences.append(
            f"{name}: {number(round(found['rpm']))} RPM, {found['confidence'] or 'unknown'} confidence: "
            f"{number(round(found['foreign']))} on new connections, {number(round(found['own']))} on those of the load."
        )
    named = {name: used.get(name) for name in ("mad", "id_ns", "tmp", "sdt", "inp", "inc", "mnp", "mps", "ptc")}
    if all(isinstance(value, (int, float)) for value in named.values()):
        values = {name: float(value) for name, value in named.items() if isinstance(value, (int, float))}
        sentences.append(
            f"RPM by draft-ietf-ippm-responsiveness-09: MAD {values['mad']:g}, ID {values['id_ns'] / 1e9:g} s, "
            f"TMP {100 * values['tmp']:g} %, SDT {100 * values['sdt']:g} %, INP {values['inp']:g}, "
            f"INC {values['inc']:g}, MNP {values['mnp']:g}, MPS {values['mps']:g}/s, PTC {100 * values['ptc']:g} %."
        )
    return sentences


def in_direction(phase: PhaseVerdict, direction: Direction) -> DirectionNumbers | None:
    """The numbers of a direction in a phase."""
    return next((each for each in phase["numbers"]["directions"] if each["direction"] == direction), None)


def _spread(spread: Spread) -> Sequence[str]:
    return [*(percentile(spread, f"p{which}_ns") for which in (50, 95, 99)), ms(spread["max_ns"])]


def _row(phase: PhaseVerdict) -> tuple[str, ...]:
    found = phase["numbers"]
    known = {direction: in_direction(phase, direction) for direction in WAYS}
    rates = [mbit(each["goodput"]["mean_bps"]) if each and each["goodput"] else UNKNOWN for each in known.values()]
    lost = [UNKNOWN if not each or each["loss"] is None else percent(each["loss"]) for each in known.values()]
    rpm = phase["rpm"]["rpm"]
    return (
        PHASES[phase["kind"]],
        OUTCOMES[phase["outcome"]["kind"]],
        *_spread(found["loaded"]),
        percentile(found["added"], "p95_ns"),
        phase["grade"] or UNKNOWN,
        *rates,
        *lost,
        UNKNOWN if rpm is None else f"{number(round(rpm))} ({phase['rpm']['confidence'] or 'unknown'} confidence)",
    )


def _direction(each: DirectionNumbers) -> tuple[str, ...]:
    goodput, buffer, load = each["goodput"], each["buffer"], each["load"]
    return (
        *_spread(each["added"]),
        UNKNOWN if each["fill_ns"] is None else number(round(each["fill_ns"] / 1e9, 1)),
        ms(buffer["delay_ns"]) if buffer else UNKNOWN,
        UNKNOWN if not buffer or buffer["bytes"] is None else number(round(buffer["bytes"] / 1000)),
        mbit(goodput["p10_bps"]) if goodput else UNKNOWN,
        UNKNOWN if not goodput or goodput["variation"] is None else f"{goodput['variation']:.2g}",
        UNKNOWN if not load or load["retransmits"] is None else percent(load["retransmits"]),
    )
