"""What `bufferscope measure --continuous` shows: one moving line, and a line for each episode, in local time."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from bufferscope.analysis import live as words
from bufferscope.cli.measuring import SHOWN, MeasurementState, line, queued, sparkline
from bufferscope.cli.saying import note
from bufferscope.engines.live.events import Event, StateEvent
from bufferscope.store.verdict import Episode

if TYPE_CHECKING:
    from rich.console import Group

LINE_S = 60.0
"""The time between two lines of the state, without a terminal."""
MOMENTS = ("path", "address")
"""Episodes that have no length."""


class WatchState:
    """What is known of the connection so far."""

    def __init__(self, host: str, now: Callable[[], datetime] = lambda: datetime.now().astimezone()) -> None:
        """Begin; `now` gives the present time."""
        self.host = host
        self._now = now
        self.begin = now()
        self.state: StateEvent | None = None
        self.trips = MeasurementState(host).trips
        self.load: MeasurementState | None = None
        """A test with load that waits or runs."""

    def take(self, event: Event) -> str | None:
        """Learn from an event; returns a line that is to stay."""
        if event["event"] == "state":
            self.state = event
            self.begin = self._now() - timedelta(microseconds=event["t_ns"] / 1000)
            self.trips.append(event["rtt_ms"])
        elif event["event"] == "episode":
            return self.told(event["episode"])
        elif event["event"] == "warning":
            return f"Warning: {event['text']}"
        elif event["event"] == "loaded":
            self.load = None
            return "\n".join(f"  {sentence}" for sentence in event["end"]["verdict"]["sentences"])
        elif event["event"] in ("queued", "phase", "progress"):
            self.load = self.load or MeasurementState(self.host)
            self.load.take(event)
        return None

    def told(self, episode: Episode) -> str:
        """An episode on one line: `20:15:03 to 20:27:40, 13 min: packets were 180 ms late (median) ...`."""
        begin = self.clock(episode["start_ns"])
        if episode["kind"] in MOMENTS:
            return f"{begin}: {episode['text']}"
        length = words.length(episode["end_ns"] - episode["start_ns"])
        return f"{begin} to {self.clock(episode['end_ns'])}, {length}: {episode['text']}"

    def clock(self, time_ns: int) -> str:
        """A time in local time; with the date, if that is another day."""
        then, now = self.begin + timedelta(microseconds=time_ns / 1000), self._now()
        return f"{then:%H:%M:%S}" if then.date() == now.date() else f"{then:%Y-%m-%d %H:%M:%S}"

    def now(self) -> str:
        """The state on one line."""
        if self.load is not None:
            waits = self.load.position is not None
            return queued(self.load.position or 0) if waits else f"Test with load: {line(self.load)}"
        state = self.state
        if state is None:
            return f"Connecting to {self.host}"
        if state["gap_since_ns"] is not None:
            return f"Not measured since {self.clock(state['gap_since_ns'])}: {state['gap_reason'] or 'no connection'}"
        if state["rtt_ms"] is None:
            return "No answer"
        parts = [f"Round trip {state['rtt_ms']:.1f} ms"]
        if state["base_ms"] is not None:
            parts[0] += f" (undisturbed {state['base_ms']:.1f} ms)"
        if state["late_since_ns"] is not None:
            parts.append(f"late since {self.clock(state['late_since_ns'])}")
        if state["lossy_since_ns"] is not None:
            parts.append(f"losses since {self.clock(state['lossy_since_ns'])}")
        return ", ".join(parts)


@contextmanager
def watched(host: str, *, silent: bool) -> Iterator[Callable[[Event], None]]:
    """A function that takes the events and shows them for the duration of the block."""
    state = WatchState(host)
    if silent:
        yield lambda _event: None
    elif sys.stderr.isatty():
        from rich.live import Live
        from rich.text import Text

        from bufferscope.cli.terminal import PlainConsole

        console = PlainConsole(stderr=True)
        with Live(display(state), console=console, transient=True, refresh_per_second=4) as live:

            def show(event: Event) -> None:
                if (stays := state.take(event)) is not None:
                    live.console.print(Text(stays))
                live.update(display(state))

            yield show
    else:
        yield WatchLines(state).take


class WatchLines:
    """A line for each episode, and one a minute for the state."""

    def __init__(self, state: WatchState, clock: Callable[[], float] = time.monotonic) -> None:
        """Begin; `clock` gives seconds."""
        self._state = state
        self._clock = clock
        self._last = -LINE_S

    def take(self, event: Event) -> None:
        """Show an event, if a line is due."""
        if (stays := self._state.take(event)) is not None:
            note(stays)
        now = self._clock()
        if event["event"] == "start":
            note(f"Watching the connection to {self._state.host}; Ctrl-C ends it")
        elif event["event"] == "state" and now >= self._last + LINE_S:
            note(self._state.now())
            self._last = now


def display(state: WatchState) -> "Group":
    """The state as a block of lines for a terminal."""
    from rich.console import Group
    from rich.text import Text

    head = Text(f"Watching the connection to {state.host}", style="bold")
    if state.state is not None and state.state["left_s"] is not None:
        head.append(f", {words.length(round(state.state['left_s'] * 1e9))} left", "dim")
    trips = list(state.trips)[-SHOWN:]
    return Group(
        head,
        Text.assemble(state.now(), "  ", (sparkline(trips), "cyan")),
        Text("Ctrl-C ends it and stores the run.", style="dim"),
    )
