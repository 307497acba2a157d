"""A server with many browsers: 500 pages that are open, and 50 that test one after the other over a line of known rate.

`sudo python3 scripts/live/crowd.py [--idle N] [--active N] [--program PATH]` connects two network namespaces by two
veth pairs. The first one is limited by a token bucket in both directions. Over it, clients load the page, wait for
their turn, measure, and get the verdict. Over the second one, other clients load the page as a browser does, keep it
open and load it again. Each client has its own address and speaks HTTP and WebSocket as a browser; all of them are in
one process. Fails if a page is incomplete, if a test finds another rate or another added delay than the planted ones,
or if the server uses too much memory, too many threads or too many descriptors.
"""

import argparse
import asyncio
import base64
import contextlib
import json
import os
import random
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

PORT = 47300
# The environment variable with the server's process and secret, for the clients.
INSIDE = "BUFFERSCOPE_CROWD"
# Of each pair: the address of the server, that of the next hop, and the network of the clients.
SHAPED = ("10.233.0.1", "10.233.0.2", "10.234")
OTHER = ("10.233.0.5", "10.233.0.6", "10.235")
QUEUE_MS = 100
PACKET, PAYLOAD = 1514, 1448
# As the page does (page/probe.js).
FLOWS, PINGS, PING_S, TICK_S, REPORT_S = 6, 8, 0.025, 0.005, 0.1
UPLOAD = bytes(1_000_000)
REFERENCE = re.compile(rb'(?:src|href)="(/[a-z.]+)"')
OTHER_FILES = ["/probe.js", "/load.js", "/texts/en.json"]
# A server may have so much.
MOST_MIB, MOST_THREADS, MOST_DESCRIPTORS = 64, 64, 2048
# Tests that may be undecided because this process was late, and by how much results may differ from what is planted.
MOST_UNDECIDED, RATE_OFF, DELAY_OFF = 0.2, 0.1, 0.3


class Wrong(Exception):
    """Something is not as it must be."""


def main() -> int:
    """Run the crowd that the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--idle", type=int, default=500, help="pages that are open (default: 500)")
    parser.add_argument("--active", type=int, default=50, help="pages that test (default: 50)")
    parser.add_argument("--rate", type=int, default=20, metavar="MBIT/S", help="of the line (default: 20)")
    parser.add_argument("--load-s", type=float, default=4.0, help="length of each load in seconds (default: 4)")
    parser.add_argument("--reload-s", type=float, default=60.0, help="time after which an open page is loaded again")
    parser.add_argument("--program", type=Path, default=Path("target/x86_64-unknown-linux-gnu/live/bufferscope-live"))
    options = parser.parse_args()
    if inside := os.environ.get(INSIDE):
        pid, secret = inside.split()
        return asyncio.run(crowd(options, int(pid), secret))
    if os.geteuid() != 0:
        parser.error("network namespaces need root")
    with namespaces(options.rate) as (near, far):
        command = [options.program.resolve(), "serve", "--listen", f"0.0.0.0:{PORT}"]
        served = ["ip", "netns", "exec", far, *map(str, command)]
        with subprocess.Popen(served, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as server:
            try:
                assert server.stdout is not None
                words = next(line for line in server.stdout if "--token" in line).split()
                secret = words[words.index("--token") + 1].split("-")[0]
                # The clients are this script again, in their namespace.
                clients = ["ip", "netns", "exec", near, sys.executable, *sys.argv]
                environment = os.environ | {INSIDE: f"{server.pid} {secret}"}
                return subprocess.run(clients, env=environment, check=False).returncode
            finally:
                server.terminate()


@contextlib.contextmanager
def namespaces(rate_mbit: int) -> Iterator[tuple[str, str]]:
    """Connect the clients' and the server's namespace by a shaped pair and another one."""
    near, far = (f"bufferscope-crowd-{end}-{os.getpid()}" for end in ("near", "far"))

    def ip(*words: str, inside: str | None = None, program: str = "ip") -> None:
        prefix = ["ip", "netns", "exec", inside] if inside else []
        subprocess.run([*prefix, program, *words], check=True)

    try:
        for name in (near, far):
            ip("netns", "add", name)
            ip("link", "set", "lo", "up", inside=name)
        for number, (server, hop, clients) in enumerate((SHAPED, OTHER)):
            ip("link", "add", f"n{number}", "netns", near, "type", "veth", "peer", "name", f"f{number}", "netns", far)
            for name, device, address in ((near, f"n{number}", hop), (far, f"f{number}", server)):
                ip("address", "add", f"{address}/30", "dev", device, inside=name)
                ip("link", "set", device, "up", inside=name)
                if number == 0:
                    limit = rate_mbit * 1_000_000 // 8 * QUEUE_MS // 1000
                    shape = f"rate {rate_mbit}mbit burst 3028 limit {limit}"
                    ip(*f"qdisc add dev {device} root tbf {shape}".split(), inside=name, program="tc")
            # Every address of the network is the clients' machine's.
            ip("route", "add", "local", f"{clients}.0.0/16", "dev", "lo", inside=near)
            ip("route", "add", f"{clients}.0.0/16", "via", hop, inside=far)
        yield near, far
    finally:
        for name in (near, far):
            subprocess.run(["ip", "netns", "delete", name], check=False, stderr=subprocess.DEVNULL)


@dataclass
class Outcome:
    """What happened."""

    pages: int = 0
    files: dict[str, bytes] = field(default_factory=dict)
    failures: Counter[str] = field(default_factory=Counter)
    tests: list[dict[str, Any]] = field(default_factory=list)
    undecided: int = 0
    open_pages: int = 0
    most_waiting: int = 0


async def crowd(options: argparse.Namespace, pid: int, secret: str) -> int:
    """Let all clients come within a minute, and wait for those that test."""
    outcome = Outcome()
    begun = time.monotonic()
    uses: list[tuple[int, int, int]] = []
    idle = [asyncio.create_task(stay(number, options, outcome)) for number in range(options.idle)]
    active = [asyncio.create_task(press(number, options, outcome, secret)) for number in range(options.active)]
    watching = asyncio.create_task(watch(pid, uses, outcome, begun))
    await asyncio.gather(*active)
    for task in [*idle, watching]:
        task.cancel()
    await asyncio.gather(*idle, watching, return_exceptions=True)
    memory, threads, descriptors = (max(column) for column in zip(*uses, strict=True))
    rates = sorted(each["down_mbit"] for each in outcome.tests) or [0.0]
    rises = sorted(each["down_ms"] for each in outcome.tests) or [0.0]
    # The delay that 95 % of the pings keep.
    print(
        f"in {time.monotonic() - begun:.0f} s: {outcome.pages} times the page, {len(outcome.tests)} right results, "
        f"{outcome.undecided} undecided, {outcome.failures.total()} failures, {outcome.most_waiting} waiting at most\n"
        f"download: {rates[0]:.1f} to {rates[-1]:.1f} Mbit/s, {rises[0]:.0f} to {rises[-1]:.0f} ms of added delay\n"
        f"the server: {memory / 1024:.1f} MiB at most, {threads} threads, {descriptors} descriptors"
    )
    for what, count in outcome.failures.most_common(20):
        print(f"{count} times: {what}", file=sys.stderr)
    is_small = memory <= MOST_MIB * 1024 and threads <= MOST_THREADS and descriptors <= MOST_DESCRIPTORS
    return int(bool(outcome.failures) or not is_small or outcome.undecided > MOST_UNDECIDED * options.active)


async def watch(pid: int, uses: list[tuple[int, int, int]], outcome: Outcome, begun: float) -> None:
    """Look at what the server uses, once a second."""
    while True:
        status = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
        descriptors = len(list(Path(f"/proc/{pid}/fd").iterdir()))
        uses.append((int(status["VmRSS"].split()[0]), int(status["Threads"]), descriptors))
        if len(uses) % 30 == 0:
            tests = f"{len(outcome.tests)} tests, {outcome.undecided} undecided"
            print(f"{time.monotonic() - begun:.0f} s: {outcome.pages} pages, {tests}, {uses[-1]}", flush=True)
        await asyncio.sleep(1)


async def stay(number: int, options: argparse.Namespace, outcome: Outcome) -> None:
    """Open the page, keep it open, and load it again from time to time."""
    source = f"{OTHER[2]}.{1 + number // 250}.{1 + number % 250}"
    await asyncio.sleep(random.uniform(0, 60))
    while True:
        await load_page(OTHER[0], source, outcome)
        await asyncio.sleep(random.uniform(0.5, 1.5) * options.reload_s)


async def press(number: int, options: argparse.Namespace, outcome: Outcome, secret: str) -> None:
    """Open the page and test."""
    source = f"{SHAPED[2]}.{1 + number // 250}.{1 + number % 250}"
    await asyncio.sleep(random.uniform(0, 60))
    await load_page(SHAPED[0], source, outcome, keep_s=0)
    try:
        found = await Test(source, options, outcome).run(secret)
        check(found, options, outcome)
    except (OSError, EOFError, Wrong, ValueError) as error:
        outcome.failures[f"a test: {type(error).__name__}: {error}"[:200]] += 1


async def load_page(server: str, source: str, outcome: Outcome, keep_s: float = 30) -> None:
    """Load the page as a browser: its files over six connections, which stay open until the server closes them."""
    connections: list[Connection] = []
    try:
        first = await Connection.open(server, source)
        connections.append(first)
        html = await first.get("/")
        paths = [path.decode() for path in REFERENCE.findall(html)] + OTHER_FILES
        connections += await asyncio.gather(*(Connection.open(server, source) for _ in range(FLOWS - 1)))

        async def some(connection: Connection, paths: list[str]) -> None:
            for path in paths:
                text = await connection.get(path)
                if text != outcome.files.setdefault(path, text) or not text:
                    raise Wrong(f"{path} is not as before")

        await asyncio.gather(*(some(each, paths[at::FLOWS]) for at, each in enumerate(connections)))
        outcome.pages += 1
        closed = [asyncio.create_task(each.closed()) for each in connections]
        try:
            await asyncio.wait(closed, timeout=keep_s)
        finally:
            for task in closed:
                task.cancel()
    except (OSError, EOFError, Wrong) as error:
        outcome.failures[f"a page: {type(error).__name__}: {error}"[:200]] += 1
    finally:
        for connection in connections:
            connection.writer.close()


@dataclass
class Connection:
    """A connection of HTTP/1.1, or a WebSocket."""

    server: str
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    pending: int = 0
    """Pings under way on a WebSocket."""

    @classmethod
    async def open(cls, server: str, source: str) -> "Connection":
        opening = asyncio.open_connection(server, PORT, local_addr=(source, 0), limit=1 << 20)
        return cls(server, *await asyncio.wait_for(opening, 10))

    async def head(self, request: str, *fields: str) -> tuple[int, int | None]:
        """Send a request; return the answer's status and length."""
        lines = [f"{request} HTTP/1.1", f"Host: {self.server}:{PORT}", *fields, "", ""]
        self.writer.write("\r\n".join(lines).encode())
        head = await asyncio.wait_for(self.reader.readuntil(b"\r\n\r\n"), 20)
        length = re.search(rb"\r\ncontent-length: (\d+)\r\n", head.lower())
        return int(head.split(b" ")[1]), int(length[1]) if length else None

    async def get(self, path: str) -> bytes:
        status, length = await self.head(f"GET {path}")
        if status != 200 or length is None:
            raise Wrong(f"{path}: {status}")
        return await asyncio.wait_for(self.reader.readexactly(length), 20)

    async def closed(self) -> None:
        with contextlib.suppress(OSError):
            while await self.reader.read(4096):
                pass

    async def upgrade(self, path: str) -> None:
        """Make a WebSocket of it (RFC 6455)."""
        key = base64.b64encode(os.urandom(16)).decode()
        fields = ["Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13", f"Sec-WebSocket-Key: {key}"]
        status, _ = await self.head(f"GET {path}", f"Origin: http://{self.server}:{PORT}", *fields)
        if status != 101:
            raise Wrong(f"no WebSocket: {status}")

    def send(self, content: bytes, kind: int = 1) -> None:
        """Send a frame, masked with zeros."""
        length = bytes([0x80 | len(content)]) if len(content) < 126 else b"\xfe" + len(content).to_bytes(2, "big")
        self.writer.write(bytes([0x80 | kind]) + length + bytes(4) + content)

    async def receive(self) -> bytes:
        """Return the next frame."""
        first, length = await self.reader.readexactly(2)
        if length >= 126:
            length = int.from_bytes(await self.reader.readexactly(2 if length == 126 else 8), "big")
        content = await self.reader.readexactly(length)
        if first & 15 == 8:
            raise EOFError("the server has closed the WebSocket")
        return content


class Test:
    """A test as that of the page (page/probe.js), only shorter."""

    def __init__(self, source: str, options: argparse.Namespace, outcome: Outcome) -> None:
        self.source, self.options, self.outcome = source, options, outcome
        self.pings: list[list[float | None]] = []
        self.received: list[tuple[float, int]] = []
        self.phases: list[dict[str, Any]] = []
        self.bytes = 0
        self.start = self.due = time.monotonic()
        self.late = 0.0
        self.fields = ""
        self.said = self.noted = 0
        self.answer: asyncio.Queue[dict[str, Any]] = asyncio.Queue()

    def ms(self) -> float:
        return (time.monotonic() - self.start) * 1000

    async def run(self, secret: str) -> dict[str, Any]:
        """Wait for the turn, measure, and return the verdict."""
        self.control = await Connection.open(SHAPED[0], self.source)
        await self.control.upgrade("/test/control")
        self.control.send(json.dumps({"ask": "hello", "secret": secret}).encode())
        while (answer := json.loads(await self.control.receive()))["answer"] == "queued":
            self.outcome.most_waiting = max(self.outcome.most_waiting, answer["position"])
        if answer["answer"] != "welcome":
            raise Wrong(str(answer))
        self.fields = f"session={answer['session']}&key={answer['key']}"
        sockets = [await Connection.open(SHAPED[0], self.source) for _ in range(PINGS)]
        for socket in sockets:
            await socket.upgrade(f"/test/pings?{self.fields}")
        self.start = self.due = time.monotonic()
        tasks = [asyncio.create_task(self.pongs(socket)) for socket in sockets]
        tasks += [asyncio.create_task(each) for each in (self.tick(), self.ping(sockets))]
        listening = asyncio.create_task(self.listen())
        loaded = self.options.load_s
        phases = [("idle", 2), ("download", loaded), ("idle", 1.5), ("upload", loaded), ("cool_down", 1.5)]
        try:
            for kind, lasts_s in phases:
                await self.phase(kind, lasts_s)
        except BaseException:
            listening.cancel()
            raise
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        samples = {"interval_ms": PING_S * 1000, "phases": self.phases, "pings": self.pings}
        text = json.dumps(samples | {"received": self.received, "reason": None}).encode()
        connection = await Connection.open(SHAPED[0], self.source)
        connection.writer.write(self.post("samples", len(text)) + text)
        head = await asyncio.wait_for(connection.reader.readuntil(b"\r\n\r\n"), 20)
        if b" 200 " not in head:
            raise Wrong(f"the samples: {head[:100]!r}")
        self.ask({"ask": "finish"})
        answer = await asyncio.wait_for(self.answer.get(), 60)
        listening.cancel()
        for socket in [*sockets, self.control, connection]:
            socket.writer.close()
        if answer["answer"] != "judged":
            raise Wrong(str(answer)[:200])
        return dict(answer)

    def ask(self, message: dict[str, str]) -> None:
        self.control.send(json.dumps(message).encode())
        self.said += 1

    async def listen(self) -> None:
        """Take the server's answers."""
        while True:
            answer = json.loads(await self.control.receive())
            if answer["answer"] == "noted":
                self.noted += 1
            else:
                self.answer.put_nowait(answer)

    async def announce(self, kind: str) -> None:
        """Announce a phase, and wait until the server has noted it."""
        self.ask({"ask": "phase", "phase": kind})
        number, until = self.said, time.monotonic() + 10
        while self.noted < number:
            if time.monotonic() > until or not self.answer.empty():
                raise Wrong("the server does not note a phase")
            await asyncio.sleep(TICK_S)

    async def phase(self, kind: str, lasts_s: float) -> None:
        await self.announce(kind)
        begun_ms = self.ms()
        loads = {"download": self.download, "upload": self.upload}
        tasks = [asyncio.create_task(loads[kind](flow)) for flow in range(FLOWS) if kind in loads]
        while self.ms() < begun_ms + lasts_s * 1000:
            await asyncio.sleep(REPORT_S)
            self.received.append((self.ms(), self.bytes))
        ended_ms = self.ms()
        for task in tasks:
            task.cancel()
        for result in await asyncio.gather(*tasks, return_exceptions=True):
            if isinstance(result, Wrong | OSError | EOFError):
                raise result
        if kind in loads:
            await self.announce("idle")
        self.phases.append({"kind": kind, "start_ms": begun_ms, "end_ms": ended_ms, "levelled": None})

    async def download(self, flow: int) -> None:
        connection = await Connection.open(SHAPED[0], self.source)
        try:
            status, _ = await connection.head(f"GET /test/download?{self.fields}&flow={flow}")
            if status != 200:
                raise Wrong(f"a download: {status}")
            while piece := await connection.reader.read(1 << 16):
                self.bytes += len(piece)
        finally:
            connection.writer.close()

    async def upload(self, flow: int) -> None:
        connection = await Connection.open(SHAPED[0], self.source)
        head = self.post("upload", len(UPLOAD))
        try:
            while True:
                connection.writer.write(head + UPLOAD)
                await connection.writer.drain()
                answer = await connection.reader.readuntil(b"\r\n\r\n")
                if b" 200 " not in answer:
                    raise Wrong(f"an upload: {answer[:100]!r}")
        finally:
            connection.writer.transport.abort()

    def post(self, what: str, length: int) -> bytes:
        """Return the head of a request with a body."""
        lines = [f"POST /test/{what}?{self.fields} HTTP/1.1", f"Host: {SHAPED[0]}:{PORT}", f"Content-Length: {length}"]
        return "\r\n".join([*lines, "", ""]).encode()

    async def tick(self) -> None:
        """Find out how late this process is."""
        while True:
            self.due = max(self.due + TICK_S, time.monotonic())
            await asyncio.sleep(max(0, self.due - time.monotonic()))
            self.late = max(0, time.monotonic() - self.due)

    async def ping(self, sockets: list[Connection]) -> None:
        number, alive = 0, self.start
        while True:
            self.pings.append([self.ms(), None, self.late * 1000])
            # One on which no other is under way, if there is one: a lost ping is repeated, and those behind it wait.
            socket = min(sockets, key=lambda each: each.pending)
            socket.pending += 1
            socket.send(number.to_bytes(4, "big"), kind=2)
            number += 1
            if time.monotonic() - alive > 1:
                alive = time.monotonic()
                self.ask({"ask": "alive"})
            await asyncio.sleep(max(0, self.start + number * PING_S - time.monotonic()))

    async def pongs(self, socket: Connection) -> None:
        while True:
            pong = await socket.receive()
            socket.pending -= 1
            ping = self.pings[int.from_bytes(pong[:4], "big")]
            late = max(self.late, time.monotonic() - self.due) * 1000
            ping[1], ping[2] = self.ms(), max(ping[2] or 0, late)


def check(found: dict[str, Any], options: argparse.Namespace, outcome: Outcome) -> None:
    """Compare a result with what is planted."""
    if any(each["bottleneck"] == "late" for each in found["browser"]):
        outcome.undecided += 1
        return
    verdict = found["events"][1]["verdict"]
    result: dict[str, Any] = {}
    for phase in verdict["phases"]:
        direction = {"download": "down", "upload": "up"}[phase["kind"]]
        numbers = next(each for each in phase["numbers"]["directions"] if each["direction"] == direction)
        result[f"{direction}_mbit"] = numbers["goodput"]["mean_bps"] / 1e6
        result[f"{direction}_ms"] = phase["numbers"]["added"]["p95_ns"] / 1e6
        expected = options.rate * PAYLOAD / PACKET
        if abs(result[f"{direction}_mbit"] / expected - 1) > RATE_OFF:
            raise Wrong(f"{direction}: {result[f'{direction}_mbit']:.1f} Mbit/s instead of {expected:.1f}")
        if abs(result[f"{direction}_ms"] / QUEUE_MS - 1) > DELAY_OFF:
            raise Wrong(f"{direction}: {result[f'{direction}_ms']:.0f} ms instead of {QUEUE_MS}")
        if phase["outcome"]["kind"] != "queue":
            raise Wrong(f"{direction}: {phase['outcome']['kind']}")
    if set(result) != {"down_mbit", "down_ms", "up_mbit", "up_ms"}:
        raise Wrong(f"the verdict has only {sorted(result)}")
    outcome.tests.append(result)


if __name__ == "__main__":
    sys.exit(main())
