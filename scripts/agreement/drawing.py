"""Random scenarios for docs/agreement-random.md: networks with one bottleneck, drawn from a seed.

A seed and a number draw a scenario: its rate, delay and depth, a discipline with its parameters, long flows under one
or two congestion controls, other traffic in both directions, and sometimes a driver's ring, segmentation offload or an
impaired wire. The ranges are those of paths and settings that people have, and of what the guest can carry:

- A run has about as many packets as those of matrix.toml, so a fast link has a short run.
- Rates end at 60 Mbit/s, where the guest's processor still has time to spare.
- Queues have at least four packets (drawn_queues.py): with two, microseconds decide.
- Packets wait on their way to the bottleneck, as where a host coalesces interrupts: up to the time in which it sends a
  full one, but at least 0.1 and at most 0.8 ms. Without that, the few tens of microseconds that a round trip in the
  guest takes longer than in the simulator can decide for a whole run which packets meet a full queue. The time is that
  with which Floyd and Jacobson eliminate this ("On traffic phase effects in packet-switched gateways", 1992).
- Of more than eight flows, each starts at least 1 ms after the one before. A guest's host takes 27 us to open a
  connection (50 of them take 1.3 ms), and a simulated host opens all at once. So where many start together in front of
  a short queue, another number of SYNs is lost, and for seconds another number of flows takes part.
- The guest's wire below a ring charges every packet the time of a full one (docs/guest.md). So pings that
  cross a ring are full, as data are. Handshakes are not, so the flows above a ring start three full packets apart:
  in the guest, SYNs that arrive together wait for each other as full packets would. And there are only so many flows
  that all handshakes together take half a per cent of the run (41 flows at 1.3 Mbit/s took 1.3 % of a minute, which
  is more than the tolerance for goodput). That wire also sends a packet early that arrives soon after another has
  left. So there is no ring below a discipline with a rate of its own, which would never fill it.
- What the kernel engines do not have is left out: some congestion controls and disciplines, Netalyzr's test, PTM, and
  offload over a ring or on a link with another overhead than Ethernet's, where a kernel's size table counts the headers
  of a packet of several segments once (docs/engines.md).
"""

from pathlib import Path

from bufferscope.model.experiment import Experiment
from dice import Dice, Table, written
from drawn_queues import FULL_BYTES, LEAST_DEPTH, QUEUES, Bottleneck, full_packet_us, has_own_rate
from drawn_traffic import LOAD_TESTS, OTHERS
from making import template
from matrix import Entry, Matrix

CAUSES = Path(__file__).with_name("random-causes.toml")
MBIT = 1_000_000
REPETITIONS = 2
MOST_REPETITIONS = 12
"""Of a scenario that exceeds a tolerance with fewer."""
PACKETS = 30_000
"""A run has about so many full packets, as those of matrix.toml."""
RATES_MBIT = (1.0, 60.0)
RTTS_MS = (2.0, 200.0)
DURATIONS_S = (10.0, 60.0)
DEPTHS = (0.25, 8.0)
"""Depths of a queue as multiples of the bandwidth-delay product ..."""
FEWEST_PACKETS = 10
"""... which has at least so many packets. A queue has at least LEAST_DEPTH."""
MOST_FLOWS = 64
MOST_AT_ONCE = 8
"""Flows of an entry that may start at the same time."""
LEAST_APART_US = 1000
"""Of more, each starts so long after the one before ..."""
STARTS_APART = 3
"""... or above a ring, by the time of so many full packets."""
HANDSHAKES_PART = 0.005
"""The part of a run's time for which all handshakes above a ring keep the guest's wire busy, at most ..."""
SMALL_PACKETS = 2
"""... with so many small packets for each: the SYN, and the ACK of the answer."""
HOST_JITTER_US = (50, 400)
"""How much sooner or later than usual a packet arrives at the bottleneck: half a full packet's time, in this range."""

BQL_SINCE = (6, 11)
"""The first release of Linux whose virtio_net has byte queue limits."""
CONTROLS = ("reno", "cubic", "vegas", "westwood", "bbr", "dctcp")
NO_GUEST_HAS = {"window", "ledbat", "ledbat++", "bbr3", "prague", "dualpi2", "netalyzr"}
"""Congestion controls, disciplines and traffic that are not drawn, because no guest's kernel, as Debian packages it, or
agent has them. dualpi2.toml compares dualpi2 on a kernel with an added module."""


def random_matrix(seed: int, number: int, kernel: str | None, most: int = MOST_REPETITIONS) -> Matrix:
    """The first scenarios of a seed, with at most so many repetitions of each."""
    options = [
        f"--random {number}",
        f"--seed {seed}",
        *([f"--kernel {kernel}"] if kernel else []),
        *([f"--most {most}"] if most != MOST_REPETITIONS else []),
    ]
    entries = [drawn(seed, index, kernel) for index in range(1, number + 1)]
    return Matrix(
        title="Does the simulator agree with a real kernel in random scenarios?",
        page="agreement-random.md",
        causes=CAUSES,
        entries=entries,
        repetitions=REPETITIONS,
        most=most,
        origin=template("random.md.jinja").render(seed=seed, options=" ".join(options)).strip(),
        is_random=True,
    )


def drawn(seed: int, index: int, kernel: str | None) -> Entry:
    """One scenario."""
    name, text = draw(seed, index, kernel)
    stem = f"random-{seed}-{index}"
    return Entry(Experiment(stem, text.encode(), f"{stem}.toml"), name, kernel=kernel)


def draw(seed: int, index: int, kernel: str | None) -> tuple[str, str]:
    """The name of a scenario, which begins with its seed and its number, and its experiment file."""
    dice = Dice(f"bufferscope {seed} {index}")
    rate, rtt_ms = round(dice.scaled(*RATES_MBIT) * MBIT), dice.scaled(*RTTS_MS)
    bdp = max(rate * rtt_ms / 1000 / 8 / FULL_BYTES, FEWEST_PACKETS)
    duration = min(max(PACKETS * FULL_BYTES * 8 / rate, DURATIONS_S[0]), DURATIONS_S[1])
    ring = _ring(dice, kernel) if dice.chance(0.15) else {}
    packet_us = full_packet_us(rate)
    most_handshakes = int(HANDSHAKES_PART * duration * 1e6 / packet_us / SMALL_PACKETS)
    most, apart_us = (min(MOST_FLOWS, most_handshakes), STARTS_APART * packet_us) if ring else (MOST_FLOWS, 0)
    bulk = _bulk(dice, duration, most, apart_us)
    others = [] if ring else _others(dice, rate, duration)
    depth = max(LEAST_DEPTH, round(bdp * dice.scaled(*DEPTHS)))
    path = Bottleneck(rate, rtt_ms, depth, is_shared=bool(others))
    qdisc = dice.choice(sorted(QUEUES))
    queue: Table = {"qdisc": qdisc, **QUEUES[qdisc](dice, path)}
    if has_own_rate(queue):
        ring = {}
    links = _links(dice, path, queue, ring)
    tcp: Table = {"gso_max_segs": dice.choice([16, 45])} if not ring and dice.chance(0.15) else {}
    if tcp:
        links[1].pop("overhead", None)
    file: Table = {
        "title": f"Random scenario {seed}-{index}",
        "figures": ["rtt", "queue_length", "cwnd", "goodput"],
        "duration": f"{duration:.0f}s",
        **({"tcp": tcp} if tcp else {}),
        "link": links,
        "traffic": [*bulk, *others, _ping(ring)],
    }
    name = ", ".join([
        f"{seed}-{index}: {qdisc}",
        " and ".join(f"{entry['flows']} {entry['congestion']}" for entry in bulk),
        f"{rate / MBIT:g} Mbit/s",
        f"{rtt_ms:g} ms",
        *(str(entry["kind"]) if entry["kind"] != "tcp" else "tcp back" for entry in others),
        *(["a ring"] if ring else []),
        *(["offload"] if tcp else []),
        *(["an impaired wire"] if "wire" in links[1] else []),
    ])  # fmt: skip
    return name, "".join(f"{key} = {written(value)}\n" for key, value in file.items())


def _links(dice: Dice, path: Bottleneck, queue: Table, ring: Table) -> list[Table]:
    """The link of the sender, and the bottleneck; the round trip is divided between them."""
    delay = f"{round(path.rtt_ms * 1000 / 4)}us"
    jitter_us = min(max(full_packet_us(path.rate) // 2, HOST_JITTER_US[0]), HOST_JITTER_US[1])
    hosts: Table = {"jitter": f"{jitter_us}us", "keep_order": True}
    bottleneck: Table = {
        "name": "bottleneck",
        "ends": ["r1", "h2"],
        "rate": f"{path.rate}bit",
        "delay": delay,
        "queue": queue,
    }
    if queue["qdisc"] == "pfifo_fast":
        bottleneck["txqueuelen"] = f"{path.depth}p"
    if ring:
        bottleneck["forward"] = {"ring": ring}
    else:
        if dice.chance(0.25):
            bottleneck["reverse"] = {"rate": f"{round(path.rate * dice.scaled(0.1, 1))}bit"}
        if dice.chance(0.15):
            bottleneck["wire"] = _wire(dice, path)
        if dice.chance(0.1):
            bottleneck["overhead"] = dice.choice(["pppoe-llcsnap", "docsis", "bridged-llcsnap", "38b"])
    return [{"name": "access", "ends": ["h1", "r1"], "delay": delay, "wire": hosts}, bottleneck]


def _ring(dice: Dice, kernel: str | None) -> Table:
    """A ring of virtio_net."""
    has_bql = kernel is not None and tuple(map(int, kernel.split("."))) >= BQL_SINCE
    return {"size": f"{dice.choice([64, 128, 256])}p", "bql": has_bql, "accounting": "virtio"}


def _wire(dice: Dice, path: Bottleneck) -> Table:
    """Losses, jitter or reordering."""
    jitter: Table = {"jitter": dice.ms(0.1, path.rtt_ms / 8), "keep_order": True}
    faults: list[Table] = [
        {"loss": dice.scaled(0.0003, 0.02)},
        {"gemodel": {"p": dice.scaled(0.0002, 0.003), "r": dice.scaled(0.1, 0.6)}},
        jitter,
        {"reorder": dice.scaled(0.0003, 0.01)},
    ]
    return dice.choice(faults)


def _bulk(dice: Dice, duration: float, most: int, apart_us: int) -> list[Table]:
    """So many long flows at most: all alike, or of two congestion controls that start at different times.

    Those of an entry start at least so long apart.
    """
    flows = min(dice.count(1, MOST_FLOWS), most)
    shares = [flows]
    if flows > 1 and dice.chance(0.4):
        first = dice.randint(1, flows - 1)
        shares = [first, flows - first]
    entries: list[Table] = []
    for number, share in enumerate(shares, start=1):
        congestion = dice.choice(CONTROLS)
        entry: Table = {"name": f"bulk{number}", "kind": "tcp", "from": "h1", "to": "h2", "flows": share}
        entry["congestion"] = congestion
        # Linux negotiates ECN for dctcp whatever the sysctl says.
        entry["ecn"] = congestion == "dctcp" or dice.chance(0.25)
        if number > 1:
            entry["start"] = f"{round(duration * dice.uniform(0, 0.3) * 1000)}ms"
        if share > 1 and dice.chance(0.3):
            entry["stagger"] = f"{max(dice.us(1, 200), apart_us)}us"
        elif share > MOST_AT_ONCE or (share > 1 and apart_us):
            entry["stagger"] = f"{max(LEAST_APART_US, apart_us)}us"
        entries.append(entry)
    return entries


def _ping(ring: Table) -> Table:
    size: Table = {"size": "1472b"} if ring else {}
    return {"name": "ping", "kind": "ping", "from": "h1", "to": "h2", "interval": "50ms", **size}


def _others(dice: Dice, rate: int, duration: float) -> list[Table]:
    """Up to two kinds of other traffic."""
    kinds = dice.sample(sorted(OTHERS), k=dice.choice([0, 0, 1, 1, 2]))
    entries = []
    for kind in kinds:
        entry: Table = {"name": f"other-{kind}", "kind": kind, **OTHERS[kind](dice, rate, duration)}
        if kind not in LOAD_TESTS and dice.chance(0.25):
            entry["dscp"] = dice.choice(["ef", "cs1", "af41", "cs5", "le"])
        entries.append(entry)
    return entries
