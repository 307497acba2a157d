"""Makes a page's pictures and chart library in separate processes, because vl-convert holds Python's global lock."""

import json
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager, suppress
from contextvars import ContextVar
from functools import cache
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from bufferscope.figures import pictures
from bufferscope.report import printer
from bufferscope.report.printer import CHART_LIBRARY, Order


class _Process:
    """A process of its own, and a thread that passes orders to it one by one."""

    def __init__(self, orders: str) -> None:
        # Its own process group and no standard error: we handle Ctrl-C at the terminal, and report its errors.
        self._process = subprocess.Popen(
            [sys.executable, "-P", printer.__file__, orders],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            encoding="utf-8",
            process_group=0,
        )
        self._orders: SimpleQueue[tuple[Order, Future[list[str]]] | None] = SimpleQueue()
        self._answers: list[Future[list[str]]] = []
        self._is_abandoned = False
        # A daemon thread, so that a command that Ctrl-C ends does not wait for pictures.
        self._thread = threading.Thread(target=self._pass_on, name=orders, daemon=True)
        self._thread.start()

    def ask(self, order: Order) -> Future[list[str]]:
        """Queue an order; returns its future answer."""
        answer: Future[list[str]] = Future()
        self._answers.append(answer)
        self._orders.put((order, answer))
        return answer

    def abandon(self) -> None:
        """Kill the process; unfinished orders get no answer."""
        self._is_abandoned = True
        self._process.kill()
        self._end()

    def finish(self) -> None:
        """Wait until all orders are carried out; raises the error of an order that failed."""
        self._end()
        for answer in self._answers:
            answer.result()

    def _end(self) -> None:
        self._orders.put(None)
        self._thread.join()
        self._process.communicate()

    def _pass_on(self) -> None:
        while waiting := self._orders.get():
            order, answer = waiting
            received = self._answer(order)
            if self._is_abandoned:
                return
            try:
                answer.set_result(printer.carry_out(order) if received is None else received)
            except BaseException as error:
                answer.set_exception(error)

    def _answer(self, order: Order) -> list[str] | None:
        """The answer of the process; None if it has died during this order or earlier."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with suppress(BrokenPipeError):
            self._process.stdin.write(json.dumps(order) + "\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline()
            if line.endswith("\n"):
                answer: list[str] = json.loads(line)
                return answer
        return None


class _Stills:
    """Two processes, because a PNG takes about as long as its chart: one for the charts, and one for their PNGs."""

    def __init__(self) -> None:
        self._charts, self._pngs = _Process(printer.CHARTS), _Process(printer.PNGS)

    def draw(self, chart: Order, png: str) -> Future[str]:
        """Queue a chart and its PNG; returns its future SVG without the heading."""
        still: Future[str] = Future()

        def drawn(answer: Future[list[str]]) -> None:
            try:
                without_heading, svg = answer.result()
            except BaseException as error:
                still.set_exception(error)
            else:
                self._pngs.ask(Order(svg=svg, png=png))
                still.set_result(without_heading)

        self._charts.ask(chart).add_done_callback(drawn)
        return still

    def abandon(self) -> None:
        """Kill the processes."""
        self._charts.abandon()
        self._pngs.abandon()

    def finish(self) -> None:
        """Wait until all pictures are there; raises the error of one that failed."""
        try:
            self._charts.finish()
        finally:
            self._pngs.finish()


_stills: ContextVar[_Stills | None] = ContextVar("stills", default=None)
_library: ContextVar[Future[list[str]] | None] = ContextVar("library", default=None)


@contextmanager
def beside(*, stills: bool) -> Iterator[None]:
    """Make in separate processes what the page of this block needs: its stills, if wanted, and the chart library.

    The library needs no process if it is kept from an earlier page. All is there when the block ends.
    """
    with ExitStack() as ending:
        if stills:
            drawing = _Stills()
            ending.enter_context(_finished(drawing))
            ending.callback(_stills.reset, _stills.set(drawing))
        if not (chart_library.cache_info().currsize or printer.has_library()):
            bundling = _Process(printer.LIBRARY)
            ending.enter_context(_finished(bundling))
            ending.callback(_library.reset, _library.set(bundling.ask(CHART_LIBRARY)))
        yield


@contextmanager
def _finished(own: _Stills | _Process) -> Iterator[None]:
    """Wait until everything requested within the block is there; an error in the block ends the processes."""
    try:
        yield
    except BaseException:
        own.abandon()
        raise
    own.finish()


def draw(spec: Mapping[str, Any], svg: Path) -> Future[str] | None:
    """Within `beside(stills=True)`, write a figure's SVG and, beside it, its PNG, before that block ends.

    The future's result is the SVG without the heading. Elsewhere nothing is drawn, and the result is None.
    """
    own = _stills.get()
    if own is None:
        return None
    svg.parent.mkdir(parents=True, exist_ok=True)
    chart = Order(spec=pictures.still(spec), svg=str(svg.resolve()))
    return own.draw(chart, str(svg.with_suffix(".png").resolve()))


@cache
def chart_library() -> str:
    """Vega, Vega-Lite and vega-embed in one script, which calls the last `vegaEmbed`: `compressed`, as in a page."""
    ordered = _library.get()
    (library,) = ordered.result() if ordered else printer.carry_out(CHART_LIBRARY)
    return library
