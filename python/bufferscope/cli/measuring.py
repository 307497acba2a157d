"""What `bufferscope measure` shows while it measures, on standard error: a display on a terminal, lines elsewhere."""

import sys
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from bufferscope.cli.saying import note
from bufferscope.engines.live.events import Event, ProgressEvent

if TYPE_CHECKING:
    from rich.console import Group
    from rich.text import Text

LINE_S = 2.0
"""The time between two lines."""
SHOWN = 60
"""The round trips of the moving curve."""
BARS = "▁▂▃▄▅▆▇█"
NAMES = {
    "idle": "idle",
    "download": "download",
    "upload": "upload",
    "both": "both directions",
    "cool_down": "cool-down",
}
"""What the phases are called."""
BAR_WIDTH = 24


@dataclass
class MeasurementState:
    """What is known of the measurement so far."""

    host: str
    phases: Sequence[str] = ()
    phase: str = ""
    position: int | None = None
    """The tests before this one."""
    at_most_s: float = 0.0
    left_s: float | None = None
    rtt_ms: float | None = None
    down_mbit: float | None = None
    up_mbit: float | None = None
    trips: deque[float | None] = field(default_factory=lambda: deque(maxlen=SHOWN))
    warnings: list[str] = field(default_factory=list)

    def take(self, event: Event) -> None:
        """Learn from an event."""
        if event["event"] == "start":
            self.host, self.phases, self.position = event["host"], event["phases"], None
        elif event["event"] == "queued":
            self.position = event["position"]
        elif event["event"] == "phase":
            self.phase, self.at_most_s, self.left_s, self.position = event["phase"], event["at_most_s"], None, None
            self.rtt_ms = self.down_mbit = self.up_mbit = None
        elif event["event"] == "progress":
            self._progress(event)
        elif event["event"] == "warning":
            self.warnings.append(event["text"])

    def _progress(self, event: ProgressEvent) -> None:
        self.phase, self.left_s, self.rtt_ms = event["phase"], event["left_s"], event["rtt_ms"]
        self.down_mbit, self.up_mbit = event["down_mbit"], event["up_mbit"]
        self.trips.append(self.rtt_ms)


@contextmanager
def shown(host: str, *, silent: bool) -> Iterator[Callable[[Event], None]]:
    """A function that takes the events and shows them for the duration of the block."""
    state = MeasurementState(host)
    if silent:
        yield lambda _event: None
    elif sys.stderr.isatty():
        from rich.live import Live

        from bufferscope.cli.terminal import PlainConsole

        with Live(display(state), console=PlainConsole(stderr=True), transient=True, refresh_per_second=8) as live:

            def show(event: Event) -> None:
                state.take(event)
                live.update(display(state))

            yield show
    else:
        yield MeasurementLines(state).take


class MeasurementLines:
    """A line for each phase, and one every two seconds."""

    def __init__(self, state: MeasurementState, clock: Callable[[], float] = time.monotonic) -> None:
        """Begin; `clock` gives seconds."""
        self._state = state
        self._clock = clock
        self._last = -LINE_S
        self._told = 0

    def take(self, event: Event) -> None:
        """Show an event, if a line is due."""
        self._state.take(event)
        now = self._clock()
        for warning in self._state.warnings[self._told :]:
            note(f"Warning: {warning}")
        self._told = len(self._state.warnings)
        if event["event"] in ("start", "queued", "phase") or (
            event["event"] == "progress" and now >= self._last + LINE_S
        ):
            note(line(self._state))
            self._last = now


def line(state: MeasurementState) -> str:
    """The state on one line."""
    if state.position is not None:
        return queued(state.position)
    if not state.phase:
        return f"Measuring the connection to {state.host}"
    parts = [phase_name(state.phase)]
    if state.left_s is not None:
        parts.append(f"at most {state.left_s:.0f} s left")
    elif state.at_most_s:
        parts.append(f"at most {state.at_most_s:.0f} s")
    parts += rates(state)
    if state.rtt_ms is not None:
        parts.append(f"round trip {state.rtt_ms:.1f} ms")
    return ", ".join(parts)


def queued(position: int) -> str:
    """Why nothing is measured yet.

    >>> queued(1)
    'Waiting: 1 other test runs first'
    """
    return f"Waiting: {position} other {'test runs' if position == 1 else 'tests run'} first"


def phase_name(phase: str) -> str:
    """A phase in words."""
    name = NAMES.get(phase, phase)
    return name[:1].upper() + name[1:]


def rates(state: MeasurementState) -> list[str]:
    """The rates that are known."""
    known = {"down": state.down_mbit, "up": state.up_mbit}
    return [f"{way} {value:.1f} Mbit/s" for way, value in known.items() if value]


def sparkline(values: Sequence[float | None]) -> str:
    """Values as bars, from 0 to the largest; a space for one that is not known.

    >>> sparkline([0, 50, None, 100])
    '▁▅ █'
    """
    largest = max((value for value in values if value is not None), default=0) or 1
    return "".join(
        " " if value is None else BARS[min(len(BARS) - 1, int(max(0.0, value) / largest * len(BARS)))]
        for value in values
    )


def display(state: MeasurementState) -> "Group":
    """The state as a block of lines for a terminal."""
    from rich.console import Group
    from rich.text import Text

    head = Text(f"Measuring the connection to {state.host}", style="bold")
    if state.position is not None:
        return Group(head, Text(queued(state.position)))
    rows = [head, _phases(state), _time(state), Text("  ".join(rates(state)) or " ")]
    now = "" if state.rtt_ms is None else f"{state.rtt_ms:.1f} ms"
    rows.append(Text.assemble(("Round trip ", "dim"), f"{now:>10} ", (sparkline(state.trips), "cyan")))
    rows += [Text(f"Warning: {warning}", style="yellow") for warning in state.warnings[-3:]]
    rows.append(Text("Ctrl-C ends the measurement early; what was measured is kept.", style="dim"))
    return Group(*rows)


def _phases(state: MeasurementState) -> "Text":
    """All phases, with the current one marked."""
    from rich.text import Text

    text = Text()
    known = list(state.phases) or [state.phase]
    place = known.index(state.phase) if state.phase in known else -1
    for number, phase in enumerate(known):
        style = "bold" if number == place else "green" if number < place else "dim"
        mark = "▸ " if number == place else "✓ " if number < place else "  "
        text.append(f"{mark}{NAMES.get(phase, phase)}  ", style)
    return text


def _time(state: MeasurementState) -> "Text":
    from rich.text import Text

    if state.left_s is None or not state.at_most_s:
        return Text(" ")
    share = min(1.0, max(0.0, 1 - state.left_s / state.at_most_s))
    done = round(share * BAR_WIDTH)
    return Text.assemble(
        ("━" * done, "cyan"), ("━" * (BAR_WIDTH - done), "dim"), f"  at most {state.left_s:.0f} s left"
    )
