"""The explorer's page: what it opens, and the server that brings it to a browser.

The page is one file that needs nothing else. What it opens is in the fragment of its address, which a browser does not
send to any server.
"""

import gzip
import json
import webbrowser
from base64 import urlsafe_b64encode
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from os import environ
from pathlib import Path
from sys import platform
from typing import Any, ClassVar

from bufferscope.base.commit import PACKAGE
from bufferscope.base.errors import EngineError, ExperimentError, InputError
from bufferscope.model.experiment import Experiment, load
from bufferscope.store.live import live_of
from bufferscope.store.run import Run

BESIDE = "explorer.html"
"""The name of the explorer beside a page of results."""
FORMAT = 1
"""Version of what the fragment contains."""
MOST_FRAGMENT_BYTES = 100_000
"""Browsers accept such an address, also in a header and as an argument of a program."""
POLICY = (
    "default-src 'none'; script-src 'unsafe-inline' 'wasm-unsafe-eval'; style-src 'unsafe-inline'; worker-src blob:; "
    "img-src data: blob:; media-src data: blob:; font-src data:; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
)
"""What the page may do: all but talk to anybody."""


@dataclass(frozen=True)
class Opened:
    """What the page shows first."""

    text: str
    """The experiment's file."""
    files: dict[str, str]
    """The files that it names."""
    sets: tuple[str, ...] = ()
    """Overrides, `PATH=VALUE`."""
    point: int = 0
    """The index of the point."""
    seed: int = 1

    @classmethod
    def of(cls, experiment: Experiment, point: int, seed: int) -> "Opened":
        """A point of an experiment."""
        files = {name: content.decode(errors="replace") for name, content in experiment.named.known.items()}
        return cls(experiment.text, files, experiment.overrides, point, seed)

    def fragment(self) -> str:
        """The fragment of the address that opens it. Raises `InputError` if that is too long."""
        document: dict[str, Any] = {"v": FORMAT, "toml": self.text}
        document |= {"files": self.files} if self.files else {}
        document |= {"sets": self.sets} if self.sets else {}
        document |= {"point": self.point, "seed": self.seed}
        packed = gzip.compress(json.dumps(document, ensure_ascii=False).encode(), mtime=0)
        fragment = "e=" + urlsafe_b64encode(packed).decode().rstrip("=")
        if len(fragment) > MOST_FRAGMENT_BYTES:
            raise InputError(
                f"the experiment and the files that it names take {len(fragment)} bytes in an address, compressed; "
                f"allowed: {MOST_FRAGMENT_BYTES}. Open the explorer without an experiment, and then the file in it"
            )
        return fragment


def of_run(run: Run) -> Opened:
    """The scenario of a stored run, from the experiment that it was made of.

    Raises `InputError` if there is no such experiment, or if it now makes another scenario.
    """
    if live_of(run.meta["summary"]):
        raise InputError(
            f"{run.path}: a live measurement has no experiment; `bufferscope model {run.path}` makes one of it"
        )
    origin = run.meta["path"] or run.experiment
    try:
        experiment = load(origin, run.meta["overrides"])
        point = experiment.points[run.position] if run.position < len(experiment.points) else experiment.points[0]
        scenario = (point.member(run.seed) if experiment.document.get("population") else point).scenario
    except (ExperimentError, InputError) as error:
        raise InputError(f"{run.path}: the experiment of this run, {origin}, can't be read: {error}") from error
    if scenario != run.scenario:
        raise InputError(
            f"{run.path}: the experiment of this run, {origin}, has changed since; `bufferscope explore {origin}` "
            "opens it as it is now"
        )
    return Opened.of(experiment, run.position, run.seed)


def beside(run: Run) -> str:
    """The address that opens the scenario of a run in the explorer beside a page; empty if it cannot."""
    try:
        page()
        return f"{BESIDE}#{of_run(run).fragment()}"
    except (EngineError, InputError):
        return ""


@cache
def page() -> bytes:
    """The page. Raises `EngineError` if it was not built."""
    path = PACKAGE / "explorer" / "index.html"
    try:
        return path.read_bytes()
    except OSError as error:
        raise EngineError(
            f"no explorer at {path}: build it with `make explorer`, or install a package that was built with "
            "`make wheel`"
        ) from error


class Server(ThreadingHTTPServer):
    """Serves the page on this machine, to this machine."""

    daemon_threads = True

    def __init__(self, opened: Opened | None, port: int) -> None:
        """Listen on a port; 0: on any that is free. Raises `InputError` if that is not possible."""
        self.page = page()
        self.fragment = f"#{opened.fragment()}" if opened else ""
        try:
            super().__init__(("127.0.0.1", port), _Handler)
        except OSError as error:
            raise InputError(
                f"--http-port {port}: {error.strerror}; choose another one, or leave it out for one that is free"
            ) from error

    @property
    def address(self) -> str:
        """The address to open. It leads to the one with the fragment, which is long."""
        return f"http://127.0.0.1:{self.server_port}/open"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Server
    timeout: ClassVar[float] = 30

    def do_GET(self) -> None:
        if self.path == "/open":
            self._answer(HTTPStatus.FOUND, {"Location": f"/{self.server.fragment}"})
        elif self.path == "/":
            headers = {"Content-Type": "text/html; charset=utf-8", "Content-Security-Policy": POLICY}
            self._answer(HTTPStatus.OK, headers, self.server.page)
        else:
            self._answer(HTTPStatus.NOT_FOUND, {})

    def _answer(self, status: HTTPStatus, headers: dict[str, str], body: bytes = b"") -> None:
        self.send_response(status)
        common = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff", "Content-Length": str(len(body))}
        for name, value in {**headers, **common}.items():
            self.send_header(name, value)
        self.end_headers()
        # A browser may leave before it has everything.
        with suppress(ConnectionError):
            self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing about requests."""


def open_browser(address: str) -> bool:
    """Open an address in a graphical browser, if there is one."""
    if platform == "linux" and not (environ.get("DISPLAY") or environ.get("WAYLAND_DISPLAY")):
        return False
    return webbrowser.open(address)


def run_of(path: Path, runs: Sequence[Run]) -> Run:
    """The only run of a directory. Raises `InputError` if there are several."""
    if len(runs) == 1:
        return runs[0]
    raise InputError(f"{path}: found {len(runs)} runs; allowed: one, such as {runs[0].path}")
