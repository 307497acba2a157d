"""The resolved scenario: a network with its traffic, every default filled in, every value in the unit of its name.

Made from the types of `crates/scenario` by `make reference`; edit those, not this. These are the types of the JSON that
the native core writes, which leaves out a `NotRequired` key that has its default; where its description says `None`,
that is the default. They check nothing at run time: of a scenario that comes with a run of unknown origin, only what
`store.metadata` checks is certain.
"""

from typing import Literal, NotRequired, TypedDict

Table = Literal["probes", "flows", "queues", "flow_queues", "drops", "transfers", "sojourns", "capacity", "estimates"]
"""A table of a run's records."""


SojournDetail = Literal["histogram", "packets"]
"""Whether sojourn times are summarised or kept one by one."""


class TcpSettings(TypedDict):
    """Settings of a host's TCP, named after Linux' sysctls."""

    rmem_max_bytes: int
    """Largest receive buffer that auto-tuning may reach (`net.ipv4.tcp_rmem[2]`); default 6 MiB."""
    rmem_default_bytes: int
    """Receive buffer a connection starts with (`net.ipv4.tcp_rmem[1]`); default 131072."""
    wmem_max_bytes: int
    """Largest send buffer that auto-tuning may reach (`net.ipv4.tcp_wmem[2]`); default 4 MiB."""
    wmem_default_bytes: int
    """Send buffer a connection starts with (`net.ipv4.tcp_wmem[1]`); default 16384."""
    notsent_lowat_bytes: int | None
    """The send buffer accepts more data only while less than this is unsent (`net.ipv4.tcp_notsent_lowat`); default:
    any amount.
    """
    initial_window_packets: int
    """Initial congestion window in segments (RFC 6928); default 10."""
    gso_max_segs: int
    """Maximum number of segments that leave the host as one packet, which stays whole up to the receiver; default 1."""
    min_tso_segs: int
    """Minimum number of segments in such a packet, if there are as many to send (`net.ipv4.tcp_min_tso_segs`); default
    2.
    """
    slow_start_after_idle: bool
    """Shrink windows after idle times and while they are not fully used (`net.ipv4.tcp_slow_start_after_idle`); default
    true.
    """
    remember_ssthresh: bool
    """Begin a connection with the slow-start threshold that the last connection to the same host ended with
    (`net.ipv4.tcp_no_ssthresh_metrics_save` = 0); default false.
    """
    syn_linear_timeouts: int
    """Number of SYN timeouts before the timeout starts to double (`net.ipv4.tcp_syn_linear_timeouts`); default 0."""
    pacing_percent: list[int]
    """Pacing rate in per cent of one window per round trip, in slow start and above half of the threshold
    (`net.ipv4.tcp_pacing_ss_ratio`, `net.ipv4.tcp_pacing_ca_ratio`); default 200 and 120.
    """


class Node(TypedDict):
    """A host or router."""

    name: str
    """The name by which links and traffic refer to it."""
    tcp: TcpSettings
    """The TCP settings of connections that end here (sysctls on Linux)."""


class RateStep(TypedDict):
    """One step of a rate."""

    from_ns: int
    """From this time on ..."""
    bits_per_second: int
    """... the wire sends this many bits a second (never zero)."""


class RateVariationTrace(TypedDict):
    """Delivery opportunities."""

    file: str
    """The file's name as the experiment has it."""
    opportunities: str
    """Its delivery opportunities."""


Cellular = Literal["evdo-down", "evdo-up", "umts-down", "umts-up", "lte-down", "lte-up"]
"""Walks with the statistics of cellular links that were measured for "Stochastic Forecasts Achieve High Throughput and
Low Delay over Cellular Networks" (Winstein, Sivaraman, Balakrishnan, NSDI 2013), while driving. `scripts/presets.py`
computes the statistics from the published traces.
"""


class Outages(TypedDict):
    """Outages whose intervals and lengths are exponentially distributed."""

    every_ns: int
    """Mean time from the end of one to the beginning of the next."""
    lasts_ns: int
    """Mean length."""


class Walk(TypedDict):
    """A rate that is constant for `every_ns`. Its logarithm is a normal process with an exponential autocorrelation.
    There may be outages, which come and go independently of that.
    """

    preset: NotRequired[Cellular]
    """The preset that has these parameters, if there is one."""
    mean_bps: int
    """Mean in bits per second, before the bound."""
    deviation_bps: int
    """Standard deviation in bits per second, before the bound."""
    coherence_ns: int
    """Time after which the logarithm's autocorrelation is 1/e."""
    every_ns: int
    """Time between two changes."""
    max_bps: int
    """The rate is never above this."""
    outages: NotRequired[Outages]
    """Times during which nothing is sent."""


class RateVariation(TypedDict, total=False):
    """How a wire's rate varies. It has one of these keys."""

    trace: RateVariationTrace
    """Delivery opportunities."""
    walk: Walk
    """A random walk."""


class Loss(TypedDict, total=False):
    """How packets are lost. All are probabilities, except for correlations. It has one of these keys."""

    random: list[float]
    """Each with a probability, and a correlation with the one before."""
    state: list[float]
    """p13, p31, p32, p23, p14."""
    gemodel: list[float]
    """p, r, 1-h, 1-k."""


class Reorder(TypedDict):
    """How packets are reordered."""

    probability: float
    """Probability with which a packet is reordered."""
    correlation: float
    """Correlation with the previous packet."""
    gap: int
    """Only every n-th packet may be reordered."""


class Faults(TypedDict):
    """The impairments of a wire."""

    loss: Loss | None
    """How packets are lost."""
    jitter_ns: int
    """How far the propagation delay varies."""
    correlation: float
    """Correlation of a delay with the previous one."""
    distribution: Literal["uniform", "normal", "pareto", "paretonormal"]
    """The distribution of delays."""
    keep_order: bool
    """No packet overtakes another."""
    reorder: Reorder | None
    """Which packets are not delayed."""


Cells = Literal["noatm", "atm", "ptm"]
"""The cells of a link."""


class Pfifo(TypedDict):
    """Parameters of `pfifo`."""

    qdisc: Literal["pfifo"]
    limit_packets: int
    """Limit of the queue: a packet that arrives at a full queue is dropped."""


class Bfifo(TypedDict):
    """Parameters of `bfifo`."""

    qdisc: Literal["bfifo"]
    limit_bytes: int
    """A packet that would raise the backlog above this is dropped."""


class PfifoHeadDrop(TypedDict):
    """Parameters of `pfifo_head_drop`."""

    qdisc: Literal["pfifo_head_drop"]
    limit_packets: int
    """Limit of the queue: a packet that arrives at a full queue replaces the oldest one."""


class PfifoFast(TypedDict):
    """`pfifo_fast`, which has no parameters."""

    qdisc: Literal["pfifo_fast"]
    band_packets: NotRequired[int]
    """Number of packets that each queue holds: the device's `txqueuelen`, which `tc` cannot change."""


class Red(TypedDict):
    """Parameters of `red`, as `tc red` names them."""

    qdisc: Literal["red"]
    limit_bytes: int
    """Hard limit of the backlog."""
    min_bytes: int
    """Average backlog at which marking starts."""
    max_bytes: int
    """Average backlog at which the marking probability reaches `probability` and above which everything is marked."""
    avpkt_bytes: int
    """Size of an average packet."""
    burst_packets: int
    """Packets of burst allowed; with `min` and `avpkt` it sets the averaging constant."""
    probability: float
    """Highest marking probability, in (0, 1]."""
    bandwidth_bps: int
    """Rate used to age the average over idle times."""
    ecn: bool
    """Mark ECN-capable packets instead of dropping them."""
    harddrop: bool
    """Drop even ECN-capable packets above `max`."""
    nodrop: bool
    """Queue packets that are not ECN-capable instead of dropping them."""
    adaptive: bool
    """Adapt `probability` so that the average stays between the thresholds."""


class Choke(TypedDict):
    """Parameters of `choke`, as `tc choke` names them."""

    qdisc: Literal["choke"]
    limit_packets: int
    """Hard limit of the queue."""
    min_packets: int
    """Average queue at which packets are compared, and dropped at random."""
    max_packets: int
    """Average queue above which every packet is dropped."""
    avpkt_bytes: int
    """Size of an average packet."""
    burst_packets: int
    """Packets of burst allowed; with `min` it sets the averaging constant."""
    probability: float
    """Highest marking probability, in (0, 1]."""
    bandwidth_bps: int
    """Rate used to age the average over idle times."""
    ecn: bool
    """Mark ECN-capable packets instead of dropping them."""


class FlowRed(TypedDict):
    """Random early detection in each queue of `sfq`."""

    limit_bytes: int
    """The limit from which `tc` derives thresholds."""
    min_bytes: int
    """Average queue at which dropping starts."""
    max_bytes: int
    """Average queue at which the drop probability reaches `probability`, and above which everything is dropped."""
    avpkt_bytes: int
    """Size of an average packet."""
    burst_packets: int
    """Packets of burst allowed; with `min` and `avpkt` it sets the averaging constant."""
    probability: float
    """Highest marking probability, in (0, 1]."""
    ecn: bool
    """Mark ECN-capable packets instead of dropping them."""
    harddrop: bool
    """Drop even ECN-capable packets above `max`."""


class Sfq(TypedDict):
    """Parameters of `sfq`, as the kernel resolves them."""

    qdisc: Literal["sfq"]
    limit_packets: int
    """Limit of all queues together."""
    depth_packets: int
    """Limit of one queue."""
    divisor: int
    """Number of hash values, a power of two."""
    flows: int
    """Number of queues."""
    quantum_bytes: int
    """Quantum: bytes that a queue may send per round."""
    perturb_s: int | None
    """Time between two perturbations, in whole seconds; `None` for never."""
    headdrop: bool
    """Drop the oldest packet of a queue and not the newest."""
    red: FlowRed | None
    """Random early detection in each queue."""


class Codel(TypedDict):
    """Parameters of `codel`."""

    qdisc: Literal["codel"]
    limit_packets: int
    """Hard limit of the queue."""
    target_ns: int
    """Acceptable standing delay."""
    interval_ns: int
    """Time the delay must stay above target before the first drop."""
    ecn: bool
    """Mark ECN-capable packets instead of dropping them."""
    ce_threshold_ns: int | None
    """Mark every ECN-capable packet whose delay exceeds this."""


class FqCodel(TypedDict):
    """Parameters of `fq_codel`."""

    qdisc: Literal["fq_codel"]
    limit_packets: int
    """Hard limit of all queues together."""
    flows: int
    """Number of queues."""
    target_ns: int
    """Acceptable standing delay."""
    interval_ns: int
    """Time the delay must stay above target before the first drop."""
    quantum_bytes: int | None
    """Quantum of a flow; `None` for a full frame."""
    ecn: bool
    """Mark ECN-capable packets instead of dropping them."""
    ce_threshold_ns: int | None
    """Mark every ECN-capable packet whose delay exceeds this."""
    ce_threshold_selector: str | None
    """Which packets the threshold concerns."""
    memory_limit_bytes: int
    """Hard limit of the memory that all queued packets take."""
    drop_batch: int
    """Maximum number of packets that are dropped at once when a limit is exceeded."""


class Pie(TypedDict):
    """Parameters of `pie`."""

    qdisc: Literal["pie"]
    limit_packets: int
    """Hard limit of the queue."""
    target_ns: int
    """Target queueing delay."""
    tupdate_ns: int
    """Update interval of the drop probability."""
    alpha: int
    """Weight of the deviation of the delay from the target, in 16ths."""
    beta: int
    """Weight of the change of the delay, in 16ths."""
    ecn: bool
    """Mark ECN-capable packets instead of dropping them, while the probability is below 10 %."""
    bytemode: bool
    """Drop small packets less often."""
    dq_rate_estimator: bool
    """Estimate the delay from the queue's length and its dequeue rate."""


class FqPie(TypedDict):
    """Parameters of `fq_pie`."""

    qdisc: Literal["fq_pie"]
    limit_packets: int
    """Hard limit of all queues together."""
    flows: int
    """Number of queues."""
    target_ns: int
    """Target queueing delay."""
    tupdate_ns: int
    """Update interval of the drop probabilities."""
    alpha: int
    """Weight of the deviation of the delay from the target, in 16ths."""
    beta: int
    """Weight of the change of the delay, in 16ths."""
    quantum_bytes: int
    """Quantum: bytes that a flow may send per round."""
    memory_limit_bytes: int
    """Memory above which arriving packets are counted."""
    ecn_prob_percent: int
    """The probability up to which packets are marked, in per cent."""
    ecn: bool
    """Mark ECN-capable packets instead of dropping them, up to that probability."""
    bytemode: bool
    """Drop small packets less often."""
    dq_rate_estimator: bool
    """Estimate the delay from the queue's length and its dequeue rate."""


class Pi2(TypedDict):
    """The parameters of the controller of `dualpi2`."""

    target_ns: int
    """Target queueing delay."""
    tupdate_ns: int
    """Update interval of the probability."""
    alpha: int
    """Weight of the deviation of the delay from the target, in 256ths of a hertz."""
    beta: int
    """Weight of the change of the delay, in 256ths of a hertz."""


class StepThreshold(TypedDict, total=False):
    """The step threshold of the L queue of `dualpi2`. It has one of these keys."""

    time: int
    """A time in the queue, in nanoseconds."""
    packets: int
    """A number of packets in the queue."""


class Dualpi2(TypedDict):
    """Parameters of `dualpi2`."""

    qdisc: Literal["dualpi2"]
    limit_packets: int
    """Hard limit of both queues together."""
    memlimit_bytes: int | None
    """Hard limit of the memory that packets occupy, if it does not follow from the limit."""
    controller: Pi2
    """The proportional integral controller."""
    coupling_factor: int
    """Coupling factor: the marking probability of the L queue, relative to the probability that is squared for the C
    queue.
    """
    step_threshold: StepThreshold
    """Above this, packets of the L queue are marked."""
    min_qlen_step: int
    """The step threshold applies to packets that find this many in the L queue."""
    drop_on_overload: bool
    """Drop packets on overload."""
    drop_enqueue: bool
    """Drop or mark on arrival."""
    any_ect: bool
    """Every packet of an ECN-capable transport goes to the L queue."""
    classic_protection_percent: int
    """Share of the C queue, in per cent."""
    split_gso: bool
    """Split packets that segmentation offload made large."""


Diffserv = Literal["diffserv3", "diffserv4", "diffserv8", "besteffort", "precedence"]
"""How code points choose a tin."""


FlowMode = Literal[
    "triple-isolate", "flowblind", "srchost", "dsthost", "hosts", "flows", "dual-srchost", "dual-dsthost"
]
"""Flow isolation: what has a queue of its own, and what shares the rate fairly."""


AckFilter = Literal["no-ack-filter", "ack-filter", "ack-filter-aggressive"]
"""Which acknowledgements in the queue are dropped when a later one arrives."""


class LinkLayer(TypedDict):
    """How long packets are on the link, as the shaper counts."""

    raw: bool
    """Overhead is added to the lengths that Linux counts, not to those of IP packets."""
    overhead_bytes: int
    """What the link adds to each packet."""
    cells: Cells
    """How the link carries packets."""
    mpu_bytes: int
    """The shortest packet, overhead included."""


class Cake(TypedDict):
    """Parameters of `cake`."""

    qdisc: Literal["cake"]
    bandwidth_bps: int | None
    """Rate of the shaper; `None`: unlimited."""
    autorate_ingress: bool
    """The shaper follows the rate of arrivals."""
    rtt_ns: int
    """COBALT's interval."""
    diffserv: Diffserv
    """How code points choose a tin."""
    flowmode: FlowMode
    """Flow isolation."""
    nat: bool
    """Look up the addresses behind a NAT."""
    wash: bool
    """Clear code points."""
    ingress: bool
    """Count dropped packets as sent."""
    ack_filter: AckFilter
    """Which acknowledgements to drop."""
    split_gso: bool
    """Split packets of several segments."""
    memlimit_bytes: int | None
    """Limit of the memory that queued packets take, if it is not the default."""
    link_layer: LinkLayer
    """How long packets are on the link."""


class Fq(TypedDict):
    """Parameters of `fq`."""

    qdisc: Literal["fq"]
    limit_packets: int
    """Hard limit of all queues together."""
    flow_limit_packets: int
    """Hard limit of each flow's queue."""
    quantum_bytes: int | None
    """Quantum of a flow; `None` for two full frames."""
    initial_quantum_bytes: int | None
    """Quantum of a new flow, for its first round; `None` for ten full frames."""
    buckets: int
    """Size of the table in which flows are looked up."""
    maxrate_bps: int | None
    """Maximum rate of a flow."""
    low_rate_threshold_bps: int
    """Flows whose rate is at most this send one packet at a time."""
    refill_delay_ns: int
    """A flow whose queue was empty for longer than this starts with a full quantum."""
    orphan_mask: int
    """Which bits of the hash are used."""
    pacing: bool
    """Pace the packets of each flow."""
    timer_slack_ns: int
    """Slack of the timer."""
    ce_threshold_ns: int | None
    """Mark packets that are later than this."""
    horizon_ns: int
    """How far ahead the departure time of a packet may be."""
    horizon_drop: bool
    """Drop packets beyond the horizon."""


class Peak(TypedDict):
    """The second bucket of `tbf`."""

    rate_bps: int
    """Rate at which its tokens arrive."""
    mtu_bytes: int
    """Its size."""


class Tbf(TypedDict):
    """Parameters of `tbf`."""

    qdisc: Literal["tbf"]
    rate_bps: int
    """Rate at which tokens arrive."""
    burst_bytes: int
    """Size of the bucket."""
    peak: Peak | None
    """The second bucket, if there is one."""
    limit_bytes: int
    """A packet that would raise the backlog above this is dropped, unless there is an inner discipline."""
    inner: NotRequired["Qdisc"]
    """The discipline in which packets queue; `None` means a `bfifo`."""


class HtbClass(TypedDict):
    """A class of `htb`. Classes are known by their indices."""

    parent: int | None
    """The parent class."""
    rate_bps: int
    """Guaranteed rate."""
    ceil_bps: int
    """Rate up to which it may borrow."""
    burst_bytes: int
    """The bucket of its rate."""
    cburst_bytes: int
    """The bucket of its ceiling."""
    quantum_bytes: int | None
    """Quantum, unless it follows from the rate."""
    prio: int
    """Priority: classes with a lower number are served first."""
    inner: NotRequired["Qdisc"]
    """The discipline in which its packets queue; `None` means a `pfifo`."""


class Match(TypedDict, total=False):
    """Which packets a filter chooses. It has one of these keys."""

    dscp: int
    """Packets with this code point."""
    ports: list[int]
    """Packets of TCP and UDP from and to servers at these ports. Port 0 means ICMP."""


ClassFilter = TypedDict(
    "ClassFilter",
    {
        # Which packets.
        "chosen": Match,
        # The class.
        "class": int,
    },
)
"""Packets that go to a class."""


class Htb(TypedDict):
    """Parameters of `htb`."""

    qdisc: Literal["htb"]
    classes: list[HtbClass]
    """The classes, parents before their children."""
    filters: list[ClassFilter]
    """The filters, in order."""
    default: int | None
    """The class of packets that match no filter."""
    r2q: int
    """The quantum of a class is its rate divided by this."""
    direct_qlen_packets: int
    """Limit of the queue of unclassified packets."""


class BandFilter(TypedDict):
    """Packets that go to a band."""

    chosen: Match
    """Which packets."""
    band: int
    """The band, counted from 0."""


class Prio(TypedDict):
    """Parameters of `prio`."""

    qdisc: Literal["prio"]
    bands: int
    """Number of bands."""
    priomap: list[int]
    """The band of each priority."""
    inner: NotRequired["list[Qdisc]"]
    """The disciplines of the first bands. The others have a `pfifo` of the default `txqueuelen`."""
    filters: NotRequired[list[BandFilter]]
    """The filters, in order."""


class NetemRate(TypedDict):
    """A rate of `netem`."""

    rate_bps: int
    """The rate."""
    packet_overhead_bytes: int
    """Overhead of each packet in bytes."""
    cell_bytes: int
    """Size of a cell, or 0."""
    cell_overhead_bytes: int
    """Overhead of each cell in bytes."""


class SlotDelay(TypedDict, total=False):
    """How long it takes until the next slot. It has one of these keys."""

    between: list[int]
    """The minimum, and the exclusive maximum, in nanoseconds."""
    distributed: list[Literal["uniform", "normal", "pareto", "paretonormal"] | list[int]]
    """Mean and standard deviation, in nanoseconds."""


class NetemSlot(TypedDict):
    """The slots of `netem`."""

    delay: SlotDelay
    """How long it takes until the next one."""
    packets: int | None
    """Packets that leave in one."""
    bytes: int | None
    """Bytes that leave in one."""


class Netem(TypedDict):
    """Parameters of `netem`."""

    qdisc: Literal["netem"]
    limit_packets: int
    """Limit of the packets in the emulator, including those being delayed."""
    delay_ns: int
    """Delay."""
    jitter_ns: int
    """Jitter."""
    correlation: float
    """Correlation of a delay with the previous one."""
    distribution: Literal["uniform", "normal", "pareto", "paretonormal"]
    """The distribution of delays."""
    loss: Loss | None
    """How packets are lost."""
    ecn: bool
    """Mark packets instead of losing them."""
    duplicate: NotRequired[list[float]]
    """The probability that a packet is duplicated, and its correlation with the previous one."""
    corrupt: NotRequired[list[float]]
    """The probability that a packet is corrupted, and its correlation with the previous one."""
    reorder: Reorder | None
    """How packets are reordered."""
    rate: NetemRate | None
    """The rate."""
    slot: NotRequired[NetemSlot]
    """The slots in which packets leave."""
    inner: NotRequired["Qdisc"]
    """The discipline in which packets queue after their delay."""


Qdisc = (
    Pfifo
    | Bfifo
    | PfifoHeadDrop
    | PfifoFast
    | Red
    | Choke
    | Sfq
    | Codel
    | FqCodel
    | Pie
    | FqPie
    | Dualpi2
    | Cake
    | Fq
    | Tbf
    | Htb
    | Prio
    | Netem
)
"""A queueing discipline and its parameters. Defaults are those of Linux' `tc`."""


class ByteLimits(TypedDict):
    """Byte queue limits (Linux' `lib/dynamic_queue_limits.c`), as in
    `/sys/class/net/*/queues/tx-*/byte_queue_limits`.
    """

    hold_ns: int
    """How long slack is observed before the limit shrinks (`hold_time`)."""
    min_bytes: int
    """The smallest limit (`limit_min`)."""
    max_bytes: int
    """The largest limit (`limit_max`)."""


class Completion(TypedDict, total=False):
    """When a device reports packets as sent, so that the driver frees their descriptors. It has one of these keys."""

    packets: int
    """When this many have been sent, or when it has nothing left to send."""
    after_ns: int
    """This time, in nanoseconds, after the first of them has been sent."""


Accounting = Literal["packets", "virtio"]
"""How a driver counts the descriptors of its ring."""


class Ring(TypedDict):
    """A driver's transmit ring. The queueing discipline has no control over the packets in it."""

    size_packets: int
    """Its size, as `ethtool -G` sets it."""
    bql: NotRequired[ByteLimits]
    """The byte queue limits that bound its contents, if the driver has them."""
    completion: NotRequired[Completion]
    """When the device reports packets as sent."""
    accounting: NotRequired[Accounting]
    """How many packets it holds."""


class Boost(TypedDict):
    """A higher rate until a bucket of tokens is empty."""

    rate_bps: int
    """Bits per second at which frames are sent: more than the port's rate, at which the bucket fills."""
    bytes: int
    """Size of the bucket, which is full at first."""


class PortSettings(TypedDict):
    """The sending side of one direction of a link: queueing discipline, ring, then wire."""

    rate: list[RateStep] | None
    """The wire's rate over time; `None`: packets pass without being serialised, so nothing ever queues."""
    variation: NotRequired[RateVariation]
    """The random process or trace that the rate follows. If there is one, `rate` is constant and has the mean."""
    delay_ns: int
    """Propagation delay after the last bit was sent."""
    faults: NotRequired[Faults]
    """The impairments of the wire."""
    overhead_bytes: int
    """Bytes that the link layer adds to each IP packet (14 for the Ethernet header, as Linux' tc counts it)."""
    mpu_bytes: NotRequired[int]
    """The shortest packet, overhead included."""
    cells: NotRequired[Cells]
    """The cells in which the link carries the result."""
    queue: Qdisc
    """The queueing discipline; it has no effect where `rate` is `None`."""
    ring: NotRequired[Ring]
    """The driver's transmit ring, if there is one; always `None` where `rate` is `None`."""
    boost: NotRequired[Boost]
    """A higher rate until a bucket of tokens is empty; always `None` where `rate` is `None` or changes."""
    stacked: NotRequired[Qdisc]
    """The queueing discipline of an interface that is stacked on this one, if there is one; always `None` where `rate`
    is `None`.
    """


class Link(TypedDict):
    """A link between two nodes. Each direction has its own port."""

    name: str
    """The link's name in the file."""
    ends: list[int]
    """Indices of the two nodes."""
    forward: PortSettings
    """The port from `ends[0]` to `ends[1]`."""
    reverse: PortSettings
    """The port from `ends[1]` to `ends[0]`."""


class Station(TypedDict):
    """A station of a Wi-Fi network."""

    link: int
    """Index of its link to the access point."""
    error_rate: float
    """The probability that a frame is lost on the air, in both directions."""


class FifoWifiQueueing(TypedDict):
    """In one queueing discipline for each interface, and in the driver below it. The access point's ports have the same
    one; its samples are those of the port to the first station.
    """

    kind: Literal["fifo"]
    size_packets: int
    """Packets that a driver holds at most, for all stations together."""


class Mac80211WifiQueueing(TypedDict):
    """In queues for each station: the disciplines of the ports. The driver takes an aggregate at a time."""

    kind: Literal["mac80211"]
    airtime_fairness: bool
    """Whether the access point gives its stations equal shares of the air time."""


WifiQueueing = FifoWifiQueueing | Mac80211WifiQueueing
"""Where packets queue for the channel."""


class Aggregate(TypedDict):
    """Limits of an aggregate."""

    frames: int
    """Frames."""
    bytes: int
    """Bytes, with the headers of each frame."""
    time_ns: int
    """Time on the air, without the preamble."""


class Wifi(TypedDict):
    """An access point and its stations, which take turns on one channel. The rates of the links' ports are PHY
    rates.
    """

    name: str
    """Its name in the file."""
    access_point: int
    """Index of the access point, at one end of the link of each station."""
    stations: list[Station]
    """The stations, at least one."""
    queueing: WifiQueueing
    """Where packets queue for the channel."""
    aggregate: Aggregate
    """Limits of an aggregate (A-MPDU)."""
    retries: int
    """Number of retries before a frame is dropped."""


_Traffic = TypedDict(
    "_Traffic",
    {
        # Its name, which its flows, probes and transfers have in the records. The parts of an entry are called after
        # it, with dots in between, such as `rrul.up.be`. No entry has a dot in its own name.
        "name": str,
        # Index of the node that sends the data (for `web` and `dns` the server; for `ping` and `irtt` the prober; for
        # `netalyzr` the client; for `voip` the caller).
        "from": int,
        # Index of the node that receives it.
        "to": int,
        # When it begins.
        "start_ns": int,
        # When it ends: no new data, probe or page is begun at or after this time.
        "stop_ns": int,
        # Differentiated services code point of all its packets, in both directions (RFC 2474), from 0 to 63.
        "dscp": NotRequired[int],
        # The port of its server, if the file names one.
        "port": NotRequired[int],
    },
)
"""What every variant of `Traffic` has."""


Periods = Literal["fixed", "exponential"]
"""How long the periods of an on/off flow are."""


class OnOff(TypedDict):
    """A flow that is on and off alternately, beginning with on."""

    on_ns: int
    """Length of the on periods; their mean length, if the lengths differ."""
    off_ns: int
    """Length of the off periods; their mean length, if the lengths differ."""
    periods: Periods
    """Whether the lengths differ."""


CongestionControl = Literal[
    "reno", "cubic", "vegas", "westwood", "window", "ledbat", "ledbat++", "bbr", "bbr3", "dctcp", "prague"
]
"""A congestion control."""


class TcpTraffic(_Traffic):
    """TCP connections that send data."""

    kind: Literal["tcp"]
    flows: int
    """Number of concurrent connections; may be 0."""
    stagger_ns: NotRequired[int]
    """How much later each of them begins than the one before it."""
    bytes: int | None
    """Payload that each connection sends before it closes; `None`: as much as fits until `stop`."""
    transfers: NotRequired[int]
    """Transfers of `bytes` that each flow makes one after the other, each over a connection of its own."""
    rate_bps: NotRequired[int]
    """Payload that the application writes in bits per second; `None`: as much as the connection takes."""
    on_off: NotRequired[OnOff]
    """When the application writes; `None`: all the time."""
    congestion: CongestionControl
    """The congestion control of the host that sends the data."""
    window_packets: int | None
    """The window of the congestion control `window`; `None` for all others."""
    target_ns: int | None
    """The queueing delay that `ledbat` or `ledbat++` aims at; `None` for all others."""
    ecn: bool
    """Negotiate and use ECN (RFC 3168)."""
    pacing: bool
    """Pace packets even where the congestion control does not require it."""


PingTiming = Literal["exact", "iputils"]
"""When a prober sends its requests."""


class PingTraffic(_Traffic):
    """ICMP echo requests at an interval, whether or not earlier ones were answered."""

    kind: Literal["ping"]
    interval_ns: int
    """Time between two requests."""
    payload_bytes: int
    """ICMP payload (`ping -s`); the IP packet is 28 bytes longer."""
    timeout_ns: int
    """A request that is not answered within this time counts as lost (`ping -W`)."""
    timing: NotRequired[PingTiming]
    """When requests are sent."""


class PageObjects(TypedDict):
    """The objects that a page refers to. They are fetched after its document, over persistent connections."""

    count: int
    """How many there are (never 0)."""
    bytes: int
    """Size of each, headers included."""
    connections: int
    """Maximum number of connections that fetch them."""


class WebTraffic(_Traffic):
    """Pages fetched at a fixed interval from `from` by `to`."""

    kind: Literal["web"]
    interval_ns: int
    """Time between the starts of two fetches; a fetch still under way does not hold up the next."""
    bytes: int
    """Size of the page, headers included. If the page has `objects`, this is the size of its document."""
    request_bytes: int
    """Size of the request."""
    objects: NotRequired[PageObjects]
    """The other objects of a page. `None`: there are none, and the page comes over one connection, which the server
    closes.
    """
    congestion: CongestionControl
    """The congestion control of the host that sends the data."""
    window_packets: int | None
    """The window of the congestion control `window`; `None` for all others."""
    target_ns: int | None
    """The queueing delay that `ledbat` or `ledbat++` aims at; `None` for all others."""
    ecn: bool
    """Negotiate and use ECN (RFC 3168)."""
    pacing: bool
    """Pace packets even where the congestion control does not require it."""


Pattern = Literal["constant", "poisson"]
"""The intervals between successive datagrams or look-ups."""


class UdpTraffic(_Traffic):
    """Flows that send at their rate whether or not the datagrams arrive."""

    kind: Literal["udp"]
    flows: int
    """Number of flows."""
    rate_bps: int
    """Bits of payload a second that each flow sends while it is on; on average with the pattern `poisson`."""
    payload_bytes: int
    """UDP payload of a datagram; the IP packet is 28 bytes longer."""
    pattern: Pattern
    """How the datagrams follow one another."""
    on_off: OnOff | None
    """When each flow is on and off; `None`: always on."""


class VoipTraffic(_Traffic):
    """A voice call with G.711 over RTP."""

    kind: Literal["voip"]
    both_ways: bool
    """Whether `to` sends too, or `from` alone."""


class DnsTraffic(_Traffic):
    """DNS look-ups: a query to a server, and its response."""

    kind: Literal["dns"]
    interval_ns: int
    """Time between the starts of two look-ups; on average with the pattern `poisson`."""
    pattern: Pattern
    """How the look-ups follow one another."""
    request_bytes: int
    """UDP payload of a query; the IP packet is 28 bytes longer."""
    response_bytes: int
    """UDP payload of an answer."""
    timeout_ns: int
    """How long to wait for the answer to one attempt before the next one."""
    attempts: int
    """How many times a query is sent before the look-up fails."""


class BittorrentTraffic(_Traffic):
    """A seed of a torrent, which sends to the peers that it does not choke."""

    kind: Literal["bittorrent"]
    peers: int
    """Peers, each with a connection of its own; may be 0."""
    unchoked: int
    """Peers that may receive at a time."""
    congestion: CongestionControl
    """The congestion control of the host that sends the data."""
    window_packets: int | None
    """The window of the congestion control `window`; `None` for all others."""
    target_ns: int | None
    """The queueing delay that `ledbat` or `ledbat++` aims at; `None` for all others."""
    ecn: bool
    """Negotiate and use ECN (RFC 3168)."""
    pacing: bool
    """Pace packets even where the congestion control does not require it."""


class IrttTraffic(_Traffic):
    """Round trips over UDP: requests at a fixed interval, answered at once with as many bytes."""

    kind: Literal["irtt"]
    interval_ns: int
    """Time between two requests."""
    payload_bytes: int
    """UDP payload of a request and of its answer; the IP packet is 28 bytes longer."""
    timeout_ns: int
    """A request that is not answered within this time counts as lost."""


class GameTraffic(_Traffic):
    """A player and a server that send to each other at each tick."""

    kind: Literal["game"]
    tick_ns: int
    """Time between two packets of each end."""
    command_bytes: int
    """UDP payload of the packets from `from`, the player; the IP packet is 28 bytes longer."""
    update_bytes: int
    """UDP payload of the packets from `to`, the server."""
    late_ns: int
    """A tick is late if its packet arrives this much later than on an idle path."""


class VideoTraffic(_Traffic):
    """A video that `to` streams from `from`."""

    kind: Literal["video"]
    segment_ns: int
    """Playing time of each segment."""
    rates_bps: list[int]
    """Bits per second of the versions of each segment, in ascending order; never empty."""
    request_bytes: int
    """Size of a request."""
    startup_ns: int
    """Playing time in the buffer at which playback starts."""
    resume_ns: int
    """Playing time in the buffer at which playback continues after a stall."""
    buffer_ns: int
    """Playing time in the buffer above which nothing is requested; at least `startup_ns` and `resume_ns`."""
    congestion: CongestionControl
    """The congestion control of the host that sends the data."""
    window_packets: int | None
    """The window of the congestion control `window`; `None` for all others."""
    target_ns: int | None
    """The queueing delay that `ledbat` or `ledbat++` aims at; `None` for all others."""
    ecn: bool
    """Negotiate and use ECN (RFC 3168)."""
    pacing: bool
    """Pace packets even where the congestion control does not require it."""


class NetalyzrTraffic(_Traffic):
    """A test of the path's buffers as Netalyzr makes it: round trips without load, then a load in each direction."""

    kind: Literal["netalyzr"]
    probes: int
    """Number of small packets that measure the round trip without load."""
    interval_ns: int
    """Time between two of these packets."""
    load_ns: int
    """Length of the load in each direction. The second half is measured."""
    pause_ns: int
    """Time between the two loads."""
    payload_bytes: int
    """UDP payload of the large packets; the IP packet is 28 bytes longer."""
    rate_bps: int
    """The highest rate of large packets, in bits of payload per second."""


Traffic = (
    TcpTraffic
    | PingTraffic
    | WebTraffic
    | UdpTraffic
    | VoipTraffic
    | DnsTraffic
    | BittorrentTraffic
    | IrttTraffic
    | GameTraffic
    | VideoTraffic
    | NetalyzrTraffic
)
"""One entry of the file's `[[traffic]]`, or one part of an entry that becomes several."""


class Scenario(TypedDict):
    """A network with its traffic, a *point* of an experiment: what an engine runs."""

    duration_ns: int
    """Length of the run. Traffic stops at this time, but outstanding probes may still be answered until their
    timeout.
    """
    warmup_ns: int
    """Metrics ignore what happened before this time."""
    sample_interval_ns: int
    """Time between two samples of `queues`, and of `flows` unless `flows_interval_ns` says otherwise. Flow queues are
    sampled with every n-th sample of `queues`, 100 ms or more apart.
    """
    flows_interval_ns: NotRequired[int]
    """Time between two samples of `flows`, if it is not the same."""
    record: NotRequired[list[Table]]
    """The tables that are recorded. The others stay empty, and nothing is sampled for them."""
    sojourns: SojournDetail
    """How much of the `sojourns` table is kept."""
    nodes: list[Node]
    """Hosts and routers, in order of first appearance in the file's links."""
    links: list[Link]
    """Links, in the file's order."""
    wifi: NotRequired[list[Wifi]]
    """Links that share one radio channel."""
    traffic: list[Traffic]
    """Traffic, in the file's order."""
