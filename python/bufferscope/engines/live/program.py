"""The program `bufferscope-live`, which measures and serves: where it is, and how it is asked."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bufferscope.base.errors import InputError, check_number
from bufferscope.engines.built import find
from bufferscope.store.live import LOADED

NAME = "bufferscope-live"
VARIABLE = "BUFFERSCOPE_LIVE"
"""The environment variable that selects another program."""
TOKEN = "BUFFERSCOPE_TOKEN"
"""The environment variable with the token. It is never an argument, because every user can see those."""
PHASES = ("idle", *LOADED)
"""The phases that can be asked for; what the path needs before and after them is always done."""
SCHEMES = ("https", "ndt7", "wss", "ws")
"""Those of the URLs of servers that are not bufferscope's own."""
DRAFTS = ("09",)
MOST_FLOWS = 64
LONGEST_TOKEN = 1000
SHORTEST_PHASE_S, LONGEST_PHASE_S = 10, 120
SHORTEST_WATCH_S, LONGEST_WATCH_S = 10, 6 * 86_400
SHORTEST_BETWEEN_S = 300


def program() -> Path:
    """The program's path. Raises `EngineError` if it is missing."""
    return find(NAME, "live", VARIABLE)


@dataclass(frozen=True)
class Request:
    """What to measure."""

    host: str
    """A name or an address, and possibly a port: `example.org:47300`, `[2001:db8::1]:47300`. Or the URL of a server
    that is not one of bufferscope: `https://example.org`."""
    token: str = ""
    """The server's token; a URL needs none."""
    phases: Sequence[str] = ()
    """Some of `PHASES`; none: all of them."""
    idle: bool = False
    """Only the idle path, without any load."""
    flows: int | None = None
    """Connections in each direction; None: as many as the program takes."""
    congestion: str | None = None
    """The congestion control of the load; None: that of the program."""
    interface: str | None = None
    """The interface to send from; None: that of the route."""
    at_most_s: int | None = None
    """The longest that a phase may last."""
    continuous: bool = False
    """Watch the connection for hours, without load."""
    lasts_s: float | None = None
    """How long; None: until it is stopped."""
    load_every_s: float | None = None
    """Test with load this often in the meantime; None: never."""
    kernel_send_buffer: bool = False
    """Let the load's send buffers grow as the kernel likes."""
    flood: bool = False
    """After the load, a flood of UDP packets in each direction, if the server accepts it."""
    insecure: bool = False
    """Trust any certificate of a URL's server."""
    fingerprint: str | None = None
    """The SHA-256 of the certificate to trust; None: those that the system's authorities signed."""
    draft: str | None = None
    """The version of the draft of responsiveness whose intervals are used; None: intervals of 1 s."""

    def __post_init__(self) -> None:
        """Raise `InputError` for what no test can be made of."""
        if not self.host or self.host.startswith("-") or not self.host.isprintable() or " " in self.host:
            raise InputError(f"HOST: found {self.host!r:.100}; allowed: a name or an address, as in example.org:47300")
        if self.has_url:
            self._check_url()
        elif self.insecure or self.fingerprint is not None or self.draft is not None:
            raise InputError(
                "--insecure, --fingerprint and --draft need the URL of a server, as in https://example.org"
            )
        elif not self.token or not self.token.isprintable() or len(self.token) > LONGEST_TOKEN:
            raise InputError(
                "--token: needed is the token that `bufferscope serve` prints; give it with --token, with --token-file "
                f"or in the environment variable {TOKEN}"
            )
        if unknown := [phase for phase in self.phases if phase not in PHASES]:
            raise InputError(f"--phases: found {unknown[0]!r:.60}; allowed: {', '.join(PHASES)}")
        if self.idle and self.phases:
            raise InputError("--idle and --phases exclude one another")
        if self.flows is not None:
            check_number("flows", self.flows, 1, MOST_FLOWS)
        if self.at_most_s is not None:
            check_number("at-most", self.at_most_s, SHORTEST_PHASE_S, LONGEST_PHASE_S)
        if self.continuous and self.idle:
            raise InputError("--continuous and --idle exclude one another")
        if self.flood and (self.idle or self.continuous):
            raise InputError("--flood needs a load: it excludes --idle and --continuous")
        if not self.continuous and not (self.lasts_s is None and self.load_every_s is None):
            raise InputError("--for and --load-every need --continuous")
        if self.lasts_s is not None and not SHORTEST_WATCH_S <= self.lasts_s <= LONGEST_WATCH_S:
            raise InputError("--for: allowed: 10s to 6d")
        if self.load_every_s is not None and not SHORTEST_BETWEEN_S <= self.load_every_s <= LONGEST_WATCH_S:
            raise InputError("--load-every: allowed: 5min to 6d")

    @property
    def has_url(self) -> bool:
        """Whether the server has a URL, so that it is not one of bufferscope."""
        return "://" in self.host

    def _check_url(self) -> None:
        scheme = self.host.partition("://")[0]
        if scheme not in SCHEMES:
            raise InputError(f"HOST: found {self.host!r:.100}; allowed: a URL with {', '.join(SCHEMES)}")
        if self.continuous:
            raise InputError("--continuous: only a server of bufferscope can be watched")
        if self.flood or self.kernel_send_buffer:
            raise InputError("--flood and --kernel-send-buffer: only with a server of bufferscope")
        if self.insecure and self.fingerprint is not None:
            raise InputError("--insecure and --fingerprint exclude one another")
        if self.draft is not None and self.draft not in DRAFTS:
            raise InputError(f"--draft: found {self.draft!r:.40}; allowed: {', '.join(DRAFTS)}")

    def arguments(self) -> list[str]:
        """The program's arguments. The token is in `environment`."""
        chosen = {
            "--phases": ",".join(self.phases) or None,
            "--flows": self.flows,
            "--congestion": self.congestion,
            "--interface": self.interface,
            "--at-most": self.at_most_s,
            "--for": _seconds(self.lasts_s),
            "--load-every": _seconds(self.load_every_s),
            "--fingerprint": self.fingerprint,
            "--draft": self.draft,
        }
        options = [word for option, value in chosen.items() if value is not None for word in (option, str(value))]
        flags = {
            "--idle": self.idle,
            "--continuous": self.continuous,
            "--kernel-send-buffer": self.kernel_send_buffer,
            "--flood": self.flood,
            "--insecure": self.insecure,
        }
        return ["measure", self.host, "--events", *options, *(flag for flag, is_set in flags.items() if is_set)]

    def environment(self) -> Mapping[str, str]:
        """The program's environment."""
        if self.has_url:
            return {name: value for name, value in os.environ.items() if name != TOKEN}
        return {**os.environ, TOKEN: self.token}


def _seconds(time_s: float | None) -> str | None:
    return None if time_s is None else f"{time_s:.3f}s"


def token_in(file: Path) -> str:
    """The token in the first line of a file. Raises `InputError` if the file cannot be read or has no such line."""
    try:
        with file.open("rb") as stream:
            found = stream.read(LONGEST_TOKEN + 2)
    except OSError as error:
        raise InputError(f"--token-file {file}: {error.strerror}") from None
    token = found.decode(errors="replace").partition("\n")[0].strip()
    if not token or len(token) > LONGEST_TOKEN:
        raise InputError(f"--token-file {file}: found no token in its first line")
    return token
