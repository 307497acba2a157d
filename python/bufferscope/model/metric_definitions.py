"""What every metric means: the only module with metrics' names, units, definitions and sources.

In a name, `<port>` stands for a port with a rate (`r1>h2`), `<traffic>` for the name of a traffic entry and `<N>` for a
whole number from 0 to 100, written without leading zeros. In those of live measurements, `<phase>` stands for
`download`, `upload` or `both`, and `<direction>` for `up` or `down`. Everything is measured over the window from the
scenario's warm-up to its duration, both included. Of a test that sends probes before and after its load (`rrul` and the
others, and files of Flent), the window is only the time under load, and `idle.*` are the probes of the rest. Lost
probes and unfinished transfers count as longer than all others: a percentile that falls among them is *censored*. As a
number it is +inf; it is never silently left out. Percentiles interpolate linearly between order statistics. A few are
always computed, and any other can be requested by name.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

PERCENT = "(0|[1-9][0-9]?|100)"
"""The values of `<N>`: each percentile has one spelling."""


@dataclass(frozen=True)
class Definition:
    """One metric, or one family of metrics that differ by port, traffic, phase or percentile."""

    name: str
    """The name, with `<port>`, `<traffic>`, `<phase>`, `<direction>` or `<N>` for what differs within a family."""
    unit: str
    """The unit of its values."""
    meaning: str
    """What it is, in one sentence."""
    source: str
    """The tables and columns of the records from which it is computed."""

    @property
    def table(self) -> str:
        """The main table of the records that it is computed from."""
        return self.tables[0]

    @property
    def tables(self) -> list[str]:
        """The tables that the metric needs: the main one, and `capacity` if its source names it."""
        main, *others = (part.strip().partition(":")[0] for part in self.source.split(";"))
        return [main, *(table for table in others if table == "capacity")]

    def fits(self, name: str) -> bool:
        """Whether this definition covers a name.

        Parameters
        ----------
        name
            The name of a metric.

        Returns
        -------
        bool
            Whether it does.
        """
        pattern = re.escape(self.name).replace("<N>", PERCENT)
        pattern = pattern.replace("<phase>", "(download|upload|both)").replace("<direction>", "(up|down)")
        return re.fullmatch(re.sub("<(port|traffic)>", ".+", pattern), name) is not None

    def names(self, ports: Iterable[str], traffic: Iterable[str], phases: Iterable[str] = ()) -> list[str]:
        """The names that this definition covers in a run.

        Parameters
        ----------
        ports
            The run's ports, as in `r1>h2`.
        traffic
            The names of its traffic.
        phases
            The phases under load of a live measurement.

        Returns
        -------
        list of str
            Names of metrics.
        """
        if self.name.startswith("live."):
            own = [self.name.replace("<phase>", phase) for phase in phases]
            ways = ("up", "down") if "<direction>" in self.name else ("",)
            return list(dict.fromkeys(name.replace("<direction>", way) for name in own for way in ways))
        if "<port>" in self.name:
            return [self.name.replace("<port>", port) for port in ports]
        if "<traffic>" in self.name:
            return [self.name.replace("<traffic>", entry) for entry in traffic]
        return [self.name]


def _rtt() -> list[Definition]:
    source = "probes: sent_ns, rtt_ns"
    each = "The same of one traffic entry of ping or irtt, if the scenario has several."
    endings = {
        "mean_ms": "ms",
        "p<N>_ms": "ms",
        "max_ms": "ms",
        "sent": "probes",
        "lost": "probes",
        "answered": "probes",
    }
    return [
        Definition("rtt.mean_ms", "ms", "Mean round-trip time of the answered probes.", source),
        Definition(
            "rtt.p<N>_ms",
            "ms",
            "Percentile of the round-trip time over all probes sent, with lost ones counted as +inf.",
            source,
        ),
        Definition("rtt.max_ms", "ms", "Longest round-trip time of the answered probes.", source),
        Definition("rtt.sent", "probes", "Probes sent.", source),
        Definition("rtt.lost", "probes", "Probes sent that were never answered, or not in time.", source),
        Definition("rtt.answered", "probes", "Probes sent that were answered: rtt.sent - rtt.lost.", source),
        *(Definition(f"rtt.<traffic>.{ending}", unit, each, source) for ending, unit in endings.items()),
        Definition(
            "answered.p<N>_ms",
            "ms",
            "Percentile of the round-trip time over the answered probes alone, as from the output of ping, which "
            "leaves lost ones out.",
            source,
        ),
        *_idle(source),
    ]


def _idle(source: str) -> list[Definition]:
    probes = "of the probes that were sent before the load of a test, and after it once the queues have drained"
    return [
        Definition("idle.p<N>_ms", "ms", f"Percentile of the round-trip time {probes}, lost ones as +inf.", source),
        Definition("idle.max_ms", "ms", "The longest of their round-trip times.", source),
        Definition("idle.sent", "probes", "Their number.", source),
        Definition("idle.lost", "probes", "Those of them that were never answered, or not in time.", source),
    ]


def _round_trips() -> list[Definition]:
    source = "round_trips: half, method, rtt_ns"
    return [
        Definition(
            "round_trip.<traffic>.p<N>_ms",
            "ms",
            "Percentile of the round-trip times of the paths of captured TCP connections: of the half to the "
            "receiver if the capture was made at the sender, of the half to the sender if it was made at the "
            "receiver, of both together in between. In captures only.",
            source,
        ),
        Definition("round_trip.<traffic>.max_ms", "ms", "The longest such time.", source),
    ]


def _goodput() -> list[Definition]:
    source = "flows: delivered_bytes; transfers: finished_ns, bytes"
    return [
        Definition(
            "goodput.total_mbit",
            "Mbit/s",
            "Payload acknowledged (for udp, arrived) per second, all flows of tcp, web and udp together.",
            source,
        ),
        Definition(
            "goodput.<traffic>_mbit",
            "Mbit/s",
            "Payload acknowledged to (for udp, arrived from) the flows of a traffic entry, per second; also of all "
            "parts of an entry that is a test, or of those in one direction.",
            source,
        ),
        Definition(
            "goodput.jain", "", "Jain's fairness index of the bulk TCP connections' goodput: 1 is equal.", source
        ),
    ]


def _fairness() -> list[Definition]:
    meaning = (
        "Time from the start of a tcp entry that begins while others send until it has had, over the latter half of "
        "that time, 90 % of its fair share of all their goodput; censored if it never has."
    )
    epochs = "Mean time between two reductions of the window of a connection of a tcp entry: its reaction time."
    return [
        Definition("fair_after.<traffic>_s", "s", meaning, "flows: delivered_bytes"),
        Definition("epoch.<traffic>_s", "s", epochs, "flows: state"),
    ]


def _loss() -> list[Definition]:
    meaning = (
        "Datagrams of a udp entry that the receiver found missing, as a share of the missing and the arrived ones."
    )
    return [Definition("loss.<traffic>_percent", "%", meaning, "flows: lost, delivered_bytes; scenario: payload_bytes")]


def _voip() -> list[Definition]:
    source = "probes: owd_up_ns"
    return [
        Definition(
            "voip.<traffic>.mos",
            "",
            "Mean opinion score by the E-model (ITU-T G.107), for G.711 with loss concealment and the best jitter "
            "buffer: at most 4.41; the worse of both directions.",
            source,
        ),
        Definition(
            "voip.<traffic>.delay_ms",
            "ms",
            "Mean one-way delay of the packets that arrived; the longer of both directions.",
            source,
        ),
        Definition(
            "voip.<traffic>.jitter_ms",
            "ms",
            "Mean interarrival jitter (RFC 3550, section 6.4.1); the larger of both directions.",
            "probes: sent_ns, owd_up_ns",
        ),
        Definition(
            "voip.<traffic>.loss_percent",
            "%",
            "Packets sent that never arrived; the larger of both directions.",
            source,
        ),
    ]


def _layer(prefix: str, layer: str) -> list[Definition]:
    source = f"queues: packets (layer {layer})"
    meanings = {
        "mean": "Mean number of packets in the {}, over the samples.",
        "p<N>": "Percentile of the number of packets in the {}, over the samples.",
        "max": "Largest number of packets found in the {} by a sample.",
    }
    return [
        Definition(f"{prefix}.<port>.{name}_packets", "packets", meaning.format(layer), source)
        for name, meaning in meanings.items()
    ]


def _ports() -> list[Definition]:
    backlog = "queues: bytes (all layers); capacity: rate_bps"
    return [
        Definition("utilization.<port>", "", "Bits sent, link layer included, as a share of what the rate allows.",
                   "queues: sent_bytes; capacity: rate_bps"),
        Definition("delay_share.<port>", "", "Time-average of backlog / rate, as a share of the sum over all ports: "
                   "the part of the queueing delay that arises here.", backlog),
        Definition("ring_share.<port>", "", "Time-average of the ring's backlog, as a share of that of all the port's "
                   "layers: the part of the port's queueing delay that arises in the driver's ring.", backlog),
        Definition("drops.<port>", "packets", "Packets dropped, all layers and reasons.", "drops: reason"),
        Definition("first_drop.<port>_s", "s", "When the first packet was dropped; none if nothing was.",
                   "drops: t_ns, reason"),
        Definition("marks.<port>", "packets", "Packets marked CE (ECN, congestion experienced).", "drops: reason"),
    ]  # fmt: skip


def _wifi() -> list[Definition]:
    return [
        Definition(
            "airtime.<port>",
            "",
            "Time that the transmissions of a port on the air took, as a share of those of its whole Wi-Fi network; "
            "failed ones and preambles count, acknowledgements and waits do not.",
            "queues: airtime_ns (layer ring)",
        ),
        Definition(
            "aggregate.<port>.mean_packets",
            "packets",
            "Packets that arrived, for each transmission of a port on the air.",
            "queues: sent_packets, transmissions (layer ring)",
        ),
    ]


def _sojourns() -> list[Definition]:
    source = "sojourns: sojourn_ns, packets (layer qdisc); seconds that begin in the window"
    meaning = "Percentile of the time that packets spent in the qdisc, to within 0.05 %."
    return [Definition("sojourn.<port>.p<N>_ms", "ms", meaning, source)]


def _flows() -> list[Definition]:
    cwnd = "flows: cwnd_bytes; run: mss_bytes"
    in_flight = "flows: inflight_bytes; run: mss_bytes"
    return [
        Definition(
            "retransmits.total", "segments", "Segments retransmitted, all connections together.", "flows: retransmits"
        ),
        Definition(
            "cwnd.<traffic>.mean_packets", "packets", "Mean congestion window of a connection, over the samples.", cwnd
        ),
        Definition("cwnd.<traffic>.max_packets", "packets", "Largest congestion window found by a sample.", cwnd),
        Definition(
            "inflight.<traffic>.mean_packets",
            "packets",
            "Mean amount of data in flight of a connection, over the samples.",
            in_flight,
        ),
        Definition("inflight.<traffic>.max_packets", "packets", "Most data in flight found by a sample.", in_flight),
        Definition(
            "unsent.<traffic>_ms",
            "ms",
            "Time that data waited in the send buffers before it was sent, by Little's law.",
            "flows: notsent_bytes, delivered_bytes",
        ),
        Definition(
            "rwnd.<traffic>.max_bytes",
            "bytes",
            "Largest window that a receiver had advertised when a sample was taken.",
            "flows: rwnd_bytes",
        ),
        Definition(
            "rwnd.<traffic>.limited_percent",
            "%",
            "Part of the time with data to send or to be acknowledged in which the receiver's window was the limit; "
            "all connections together.",
            "flows: rwnd_limited_ns, busy_ns",
        ),
    ]


def _transfers() -> list[Definition]:
    source = "transfers: started_ns, finished_ns; started in the window"
    return [
        Definition(
            "transfer.<traffic>.mean_s", "s", "Mean time of the finished transfers, first packet to last byte.", source
        ),
        Definition(
            "transfer.<traffic>.p<N>_s",
            "s",
            "Percentile over all transfers begun, with unfinished ones counted as +inf.",
            source,
        ),
        Definition("transfer.<traffic>.max_s", "s", "Longest time of a finished transfer.", source),
        Definition(
            "transfer.<traffic>.unfinished",
            "transfers",
            "Transfers begun that were unfinished when the run ended.",
            source,
        ),
    ]


def _buffers() -> list[Definition]:
    source = "estimates: rate_bps, loaded_ns, idle_ns"
    limit = f"{source}; scenario: limit of the queue with the smallest rate"
    meanings = {
        "mbit": (
            "Mbit/s",
            "Payload of a netalyzr test that made the round trip, per second of the measured half.",
            source,
        ),
        "idle_ms": ("ms", "Mean round-trip time without load.", source),
        "added_ms": ("ms", "Mean round-trip time that the load adds.", source),
        "inferred_kib": (
            "KiB",
            "The buffer as Netalyzr infers it: the rate multiplied by the time that the load adds.",
            source,
        ),
        "true_kib": ("KiB", "What the queue at the smallest rate holds, if it is tail drop.", limit),
        "inferred_share": ("", "The inferred buffer as a share of the true one.", limit),
    }
    return [
        Definition(f"buffer.<traffic>.{direction}_{name}", unit, f"{way} {meaning}", source)
        for direction, way in (("down", "From the server:"), ("up", "To the server:"))
        for name, (unit, meaning, source) in meanings.items()
    ]


def _live() -> list[Definition]:
    source = "run.json: summary.live.verdict"
    whole, way = "live.<phase>", "live.<phase>.<direction>"
    lost = "lost echoes as +inf; of live measurements only"

    def spread(name: str, what: str) -> list[Definition]:
        percentiles = [
            Definition(f"{name}.p{percent}_ms", "ms", f"{percent}th percentile of {what}, {lost}.", source)
            for percent in (50, 95, 99)
        ]
        return [
            *percentiles,
            Definition(f"{name}.max_ms", "ms", f"The largest of {what}, without lost echoes.", source),
        ]

    return [
        *spread("live.idle.rtt", "the round-trip times of the echoes before the load"),
        *spread(f"{whole}.rtt", "the round-trip times of a phase's echoes under load"),
        *spread(f"{whole}.added", "these round-trip times minus the idle median"),
        Definition(f"{whole}.sent", "probes", "Echoes sent under load in a phase.", source),
        Definition(f"{whole}.lost", "probes", "Those of them that were lost.", source),
        Definition(f"{whole}.rpm", "1/min", "Responsiveness of a phase, in round trips per minute.", source),
        *spread(f"{way}.added", "the change of the one-way delay over the idle median"),
        Definition(f"{way}.loss_percent", "%", "Echoes that were lost in this direction, of those sent.", source),
        Definition(
            f"{way}.goodput_mbit",
            "Mbit/s",
            "Mean goodput at the receiver, without the first fifth of the phase (at most 2 s).",
            source,
        ),
        Definition(f"{way}.goodput_p10_mbit", "Mbit/s", "The lowest decile of goodput in steps of 1 s.", source),
        Definition(f"{way}.fill_s", "s", "From the start of the load to 80 % of the later median delay.", source),
        Definition(f"{way}.standing_ms", "ms", "Median of the added delay once the buffer is full.", source),
        Definition(f"{way}.buffer_kb", "kB", "That delay times the rate of IP packets: the buffer in use.", source),
        Definition(f"{way}.retransmits_percent", "%", "Segments of the load that were retransmitted.", source),
    ]


DEFINITIONS: tuple[Definition, ...] = (
    *_rtt(),
    *_round_trips(),
    *_goodput(),
    *_fairness(),
    *_loss(),
    *_voip(),
    *_ports(),
    *_layer("queue", "qdisc"),
    *_layer("ring", "ring"),
    *_wifi(),
    *_layer("stacked", "stacked"),
    *_sojourns(),
    *_flows(),
    *_transfers(),
    *_buffers(),
    *_live(),
)
"""All metrics, in the order in which tables show them."""


@lru_cache(maxsize=4096)
def definition(name: str) -> Definition | None:
    """The definition of a metric. It is cached, because all runs have the same names.

    Parameters
    ----------
    name
        The metric's name.

    Returns
    -------
    Definition or None
        None if no metric has this name.
    """
    return next((known for known in DEFINITIONS if known.fits(name)), None)
