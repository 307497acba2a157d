"""Networks for tests that change queues: a home with a router, a modem and a provider, or a single machine.

Everything is in network and mount namespaces of its own, so that this machine's network, and the names that `ip netns`
gives, are never touched. They end with the process that holds them.
"""

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

import pytest
from laboratory import AS_ROOT, OWN_NAMES

PATIENCE_S = 120
OPTIONS = () if os.geteuid() == 0 else AS_ROOT
USER = () if os.geteuid() == 0 else ("--user", "--preserve-credentials")
MACHINE = """
ip link set lo up
ip link add name eth0 type veth peer name far
ip link set eth0 up
ip link set far up
ip address add 192.0.2.2/24 dev eth0
"""
"""One machine, with the server of `livestreams` behind its interface."""
HOME = """
mkdir /run/netns
wire() {
    ip link add name $2 netns $1 type veth peer name $4 netns $3
    for end in "$1 $2" "$3 $4"; do
        set -- $end
        ip -n $1 link set $2 up
        ip netns exec $1 ethtool -K $2 tx off sg off tso off gso off gro off > /dev/null
    done
}
for name in laptop router modem provider server; do
    ip netns add $name
    ip -n $name link set lo up
done
wire laptop eth0 router lan
wire router wan modem home
wire modem line provider customer
wire provider core server eth0
ip -n laptop address add 192.168.1.2/24 dev eth0
ip -n router address add 192.168.1.1/24 dev lan
ip -n router address add 198.51.100.2/24 dev wan
ip -n provider address add 198.51.100.1/24 dev customer
ip -n provider address add 203.0.113.1/24 dev core
ip -n server address add 203.0.113.9/24 dev eth0
ip -n modem link add br0 type bridge
for end in home line; do
    ip -n modem link set $end master br0
done
ip -n modem link set br0 up
for name in router provider; do
    ip netns exec $name sysctl -qw net.ipv4.ip_forward=1
done
ip -n laptop route add default via 192.168.1.1
ip -n router route add default via 198.51.100.1
ip -n provider route add 192.168.1.0/24 via 198.51.100.2
ip -n server route add default via 203.0.113.1
"""
"""The modem is a bridge: it has no address, and no hop of the path."""
SERVER = "203.0.113.9"


class Network:
    """A network in namespaces of its own, as long as this context lasts."""

    def __init__(self, setup: str, directory: Path) -> None:
        """A network that a shell script builds; commands run in a directory."""
        self._setup, self._directory = setup, directory
        self._background: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> Self:
        """Build it; skip the test where that is not allowed."""
        script = f"set -e\n{OWN_NAMES}true\n{self._setup}\necho ready\nexec cat\n"
        self._holder = subprocess.Popen(
            ["unshare", *OPTIONS, "--net", "--mount", "sh", "-c", script],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self._holder.stdout
        if self._holder.stdout.readline() != "ready\n":
            _, error = self._holder.communicate(timeout=PATIENCE_S)
            pytest.skip(f"this machine can't build the network: {error.strip()[-200:]}")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Remove it, and end what still runs in it."""
        for process in self._background:
            process.kill()
            process.wait()
        self._holder.communicate(timeout=PATIENCE_S)

    def words(self, *command: str, on: str | None = None) -> list[str]:
        """The command line that runs a command in it, on a host if it has several."""
        options = [f"--target={self._holder.pid}", *USER, "--net", "--mount", f"--wd={self._directory}"]
        return ["nsenter", *options, "--", *(["ip", "netns", "exec", on] if on else []), *command]

    def run(
        self, *command: str, on: str | None = None, given: str = "", more: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run a command to its end."""
        return subprocess.run(
            self.words(*command, on=on),
            cwd=self._directory,
            input=given,
            capture_output=True,
            text=True,
            check=False,
            timeout=4 * PATIENCE_S,
            env={**os.environ, **(more or {})},
        )

    def shell(self, script: str, on: str | None = None) -> str:
        """Run commands as typed, and return what they print."""
        done = self.run("sh", "-e", "-c", script, on=on)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def bufferscope(
        self, *arguments: str, on: str | None = None, more: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run the command line of bufferscope in it."""
        return self.run(*python(), *arguments, on=on, more=more)

    def start(
        self, command: Sequence[str], on: str | None = None, more: Mapping[str, str] | None = None
    ) -> subprocess.Popen[bytes]:
        """Start a command; it is killed with the network."""
        process = subprocess.Popen(
            self.words(*command, on=on),
            cwd=self._directory,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**os.environ, **(more or {})},
        )
        self._background.append(process)
        return process


def python() -> tuple[str, ...]:
    """The words that start bufferscope."""
    return (sys.executable, "-m", "bufferscope")
