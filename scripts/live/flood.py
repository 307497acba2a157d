"""Measures with `measure --flood` a bottleneck's buffer of known size, in network namespaces, and prints the errors.

Three namespaces are a client, a router and a server. The router's two ports are token buckets (`tbf`) with a buffer of
known bytes (`bfifo`). It needs root, and the program: `make live`.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

PROGRAM = Path(__file__).parents[2] / "python" / "bufferscope" / "bin" / "bufferscope-live"
CLIENT, ROUTER, SERVER = (f"flood-{name}" for name in ("client", "router", "server"))
NEAR, FAR = "10.77.1", "10.77.2"
ETHERNET, IP = 1414, 1400
"""What a packet of a flood takes in the buffer, and what the verdict counts of it."""
LARGEST_ERROR = 0.15


def ip(*words: str) -> None:
    """Run `ip` with these words."""
    subprocess.run(["ip", *words], check=True)


def inside(namespace: str, *words: str) -> None:
    """Run a command in a namespace."""
    subprocess.run(["ip", "netns", "exec", namespace, *words], check=True, stdout=subprocess.DEVNULL)


@contextmanager
def network(rate_mbit: float, buffer_bytes: int) -> Iterator[None]:
    """Within the block, the three namespaces exist."""
    names = (CLIENT, ROUTER, SERVER)
    try:
        for name in names:
            ip("netns", "add", name)
        for near, far, net in ((CLIENT, ROUTER, NEAR), (SERVER, ROUTER, FAR)):
            ip("link", "add", "line", "netns", near, "type", "veth", "peer", "name", f"to-{near[6:]}", "netns", far)
            for namespace, device, host in ((near, "line", 2), (far, f"to-{near[6:]}", 1)):
                ip("-n", namespace, "addr", "add", f"{net}.{host}/24", "dev", device)
                ip("-n", namespace, "link", "set", device, "up")
            ip("-n", near, "route", "add", "default", "via", f"{net}.1")
        inside(ROUTER, "sysctl", "-w", "net.ipv4.ip_forward=1")
        for device in ("to-client", "to-server"):
            bucket = ["tbf", "rate", f"{rate_mbit}mbit", "burst", "3000", "limit", "100000000"]
            inside(ROUTER, "tc", "qdisc", "add", "dev", device, "root", "handle", "1:", *bucket)
            inside(ROUTER, "tc", "qdisc", "add", "dev", device, "parent", "1:1", "bfifo", "limit", str(buffer_bytes))
        yield
    finally:
        for name in names:
            subprocess.run(["ip", "netns", "del", name], check=False)


def flooded(rate_mbit: float, buffer_bytes: int) -> list[dict[str, Any]]:
    """What the verdict says of the worst case in each direction."""
    with network(rate_mbit, buffer_bytes):
        serve = [
            "ip",
            "netns",
            "exec",
            SERVER,
            str(PROGRAM),
            "serve",
            "--accept-flood",
            "1000",
            "--listen",
            f"{FAR}.2:47300",
        ]
        with subprocess.Popen(serve, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as server:
            try:
                assert server.stdout
                token = next(line.split()[-1] for line in server.stdout if "--token" in line)
                time.sleep(0.5)
                found = subprocess.run(
                    [
                        "ip",
                        "netns",
                        "exec",
                        CLIENT,
                        str(PROGRAM),
                        "measure",
                        f"{FAR}.2",
                        "--phases",
                        "download,upload",
                        "--flood",
                        "--json",
                    ],
                    env={**os.environ, "BUFFERSCOPE_TOKEN": token},
                    stdout=subprocess.PIPE,
                    check=True,
                )
            finally:
                server.kill()
    verdict = json.loads(found.stdout)["verdict"]
    effective = {
        each["direction"]: each["buffer"]["bytes"]
        for phase in verdict["phases"]
        for each in phase["numbers"]["directions"]
        if each["loaded"] and each["buffer"]
    }
    return [{**each, "effective": effective.get(each["direction"])} for each in verdict["worst_cases"]]


def main(arguments: Sequence[str]) -> int:
    """Measure, and print a line of a table for each direction."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rates", type=float, nargs="+", default=[2, 10, 50, 100], metavar="MBIT/S")
    parser.add_argument(
        "--buffers", type=int, nargs="+", default=[100, 500], metavar="MS", help="their delays when they are full"
    )
    options = parser.parse_args(arguments)
    print("| rate, Mbit/s | direction | buffer, kB | measured, kB | error | standing, ms | full | effective, kB |")
    print("|---|---|---|---|---|---|---|---|")
    errors = []
    for rate in options.rates:
        for buffer_ms in options.buffers:
            planted = round(rate * 1e6 / 8 * buffer_ms / 1e3)
            true = planted // ETHERNET * IP
            for each in flooded(rate, planted):
                error = (each["bytes"] or 0) / true - 1
                errors.append(abs(error))
                effective = "-" if each["effective"] is None else f"{each['effective'] / 1e3:.0f}"
                measured = each["bytes"] or 0
                cells = [
                    *(f"{rate:g}", str(each["direction"]), f"{true / 1e3:.0f}", f"{measured / 1e3:.0f}"),
                    *(
                        f"{100 * error:+.1f} %",
                        f"{each['delay_ns'] / 1e6:.0f}",
                        "yes" if each["full"] else "no",
                        effective,
                    ),
                ]
                print(f"| {' | '.join(cells)} |", flush=True)
    return 0 if errors and max(errors) <= LARGEST_ERROR else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
