"""Draws a page's pictures in a separate process while the page is made: the library holds Python's global lock."""

import json
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import cache
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from bufferscope.figures import pictures
from bufferscope.report import printer
from bufferscope.report.printer import CHART_LIBRARY, Order


class _Printer:
    """The process, and a thread that passes orders to it one by one."""

    def __init__(self) -> None:
        # Its own process group and no standard error: we handle Ctrl-C at the terminal, and report its errors.
        self._process = subprocess.Popen(
            [sys.executable, "-P", printer.__file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            encoding="utf-8",
            process_group=0,
        )
        self._orders: SimpleQueue[tuple[Order, Future[str]] | None] = SimpleQueue()
        self._answers: list[Future[str]] = []
        self._is_abandoned = False
        # A daemon thread, so that a command that Ctrl-C ends does not wait for pictures.
        self._thread = threading.Thread(target=self._hand_on, name="printing", daemon=True)
        self._thread.start()
        # The chart library comes first, because the page's figures are not ready yet.
        self.library = None if chart_library.cache_info().currsize else self.ask(CHART_LIBRARY)

    def ask(self, order: Order) -> Future[str]:
        """Queue an order; returns its future answer."""
        answer: Future[str] = Future()
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

    def _hand_on(self) -> None:
        while waiting := self._orders.get():
            order, answer = waiting
            told = self._told(order)
            if self._is_abandoned:
                return
            try:
                answer.set_result(printer.carry_out(order) if told is None else told)
            except BaseException as error:
                answer.set_exception(error)

    def _told(self, order: Order) -> str | None:
        """The answer of the process; None if it has died during this order or earlier."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with suppress(BrokenPipeError):
            self._process.stdin.write(json.dumps(order) + "\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline()
            if line.endswith("\n"):
                told: str = json.loads(line)
                return told
        return None


_printer: ContextVar[_Printer | None] = ContextVar("printer", default=None)


@contextmanager
def beside() -> Iterator[None]:
    """Draw the pictures requested within the block in a separate process; all are finished when the block ends."""
    own = _Printer()
    token = _printer.set(own)
    try:
        yield
    except BaseException:
        own.abandon()
        raise
    finally:
        _printer.reset(token)
    own.finish()


def draw(spec: Mapping[str, Any], svg: Path) -> Future[str]:
    """Write a figure's SVG and, beside it, its PNG: at once, or, within `beside()`, before its block ends.

    The future's result is the SVG without the heading.
    """
    order = Order(spec=pictures.still(spec), svg=str(svg.resolve()), png=str(svg.with_suffix(".png").resolve()))
    if own := _printer.get():
        return own.ask(order)
    answer: Future[str] = Future()
    answer.set_result(printer.carry_out(order))
    return answer


@cache
def chart_library() -> str:
    """Vega, Vega-Lite and vega-embed in one script, which calls the last `vegaEmbed`: `compressed`, as in a page."""
    own = _printer.get()
    return own.library.result() if own and own.library else printer.carry_out(CHART_LIBRARY)
