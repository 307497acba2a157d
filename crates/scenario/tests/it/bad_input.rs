//! The messages that users get about files that can't be used, all in one file (`snapshots/bad_input__messages.snap`).

use std::fmt::Write as _;

use crate::common::{LAB, lab_unswept, lab_with, set};
use bufferscope_scenario::Experiment;

/// Replacements in the lab's file that make one mistake each.
const EDITS: &[(&str, &str, &str)] = &[
    // Keys.
    ("an unknown key", "duration =", "durations ="),
    ("an unknown key of a link", "rate =", "rat ="),
    ("an unknown key of a queue", "limit = \"100p\"", "limits = \"100p\""),
    ("a key of another queue", "limit = \"100p\"", "target = \"5ms\""),
    ("a key of another kind of traffic", "congestion = \"reno\"", "interval = \"1s\""),
    ("a key that resembles no other", "source =", "colour ="),
    ("a key in quotes", "source =", "\"a\\nkey\" ="),
    ("a key left out", "ends = [\"r1\", \"h2\"]\n", ""),
    ("no kind", "kind = \"tcp\"\n", ""),
    ("an unknown kind", "kind = \"tcp\"", "kind = \"tpc\""),
    ("an unknown qdisc", "qdisc = \"pfifo\"", "qdisc = \"cbq\""),
    ("an unknown congestion control", "\"reno\"", "\"renn\""),
    ("one table for a list of them", "[[traffic]]\nname = \"bulk\"", "[[traffics]]\nname = \"bulk\""),
    ("several mistakes at once", "delay = \"5ms\"", "dealy = \"5ms\"\nrate = \"10 Mb/s\"\nqueue = {}"),
    ("a bidirectional override", "kind = \"tcp\"", "kind = \"\u{202e}tcp\""),
    ("a control character in a key", "source =", "\"\\u001b[2J\" ="),
    // Types and units.
    ("a number for a string", "source = \"UCAS computer networks, lab 2\"", "source = 5"),
    ("a blank string", "source = \"UCAS computer networks, lab 2\"", "source = \" \""),
    ("a string for a table", "queue = { qdisc = \"pfifo\", limit = \"100p\" }", "queue = \"pfifo\""),
    ("a table for a string", "rate = \"10mbit\"", "rate = { max = \"10mbit\" }"),
    ("an unknown unit", "\"10mbit\"", "\"10mbits\""),
    ("a unit of something else", "\"10mbit\"", "\"10ms\""),
    ("a space before the unit", "\"10mbit\"", "\"10 mbit\""),
    ("megabits a second", "\"10mbit\"", "\"10 Mb/s\""),
    ("megabits without a space", "\"10mbit\"", "\"10Mb\""),
    ("megabytes a second", "\"10mbit\"", "\"10 MB/s\""),
    ("megabits as most programs write them", "\"10mbit\"", "\"10 Mbps\""),
    ("a rate without unit", "\"10mbit\"", "\"10000000\""),
    ("a rate as a number", "\"10mbit\"", "10000000"),
    ("a time as a number", "duration = \"60s\"", "duration = 60"),
    ("minutes", "duration = \"60s\"", "duration = \"1m\""),
    ("a tenth of a nanosecond", "duration = \"60s\"", "duration = \"1.0000000001s\""),
    ("a word for a rate", "\"10mbit\"", "\"fast\""),
    ("two decimal points", "\"10mbit\"", "\"1.5.2mbit\""),
    ("a date", "duration = \"60s\"", "duration = 2024-01-01"),
    ("true", "delay = \"5ms\"", "delay = true"),
    // Zero, negative, absurd.
    ("no rate", "\"10mbit\"", "\"0mbit\""),
    ("a negative rate", "\"10mbit\"", "\"-10mbit\""),
    ("an absurd rate", "\"10mbit\"", "\"1000tbit\""),
    ("no duration", "duration = \"60s\"", "duration = \"0s\""),
    ("a year", "duration = \"60s\"", "duration = \"31536000s\""),
    ("no limit", "limit = \"100p\"", "limit = 0"),
    ("a negative limit", "limit = \"100p\"", "limit = -5"),
    ("10^18 packets", "limit = \"100p\"", "limit = 1000000000000000000"),
    ("more than 64 bits", "limit = \"100p\"", "limit = \"99999999999999999999p\""),
    ("more than 128 bits", "\"10mbit\"", "\"999999999999999999999999999999999999999999mbit\""),
    ("a window for a control that sets its own", "congestion = \"reno\"", "window = \"40p\""),
    ("no window for the control that needs one", "congestion = \"reno\"", "congestion = \"window\""),
    ("a window of nothing", "congestion = \"reno\"", "congestion = \"window\"\nwindow = 0"),
    ("a target for a control without", "congestion = \"reno\"", "target = \"50ms\""),
    ("a target that RFC 6817 forbids", "congestion = \"reno\"", "congestion = \"ledbat\"\ntarget = \"101ms\""),
    ("10^9 flows", "congestion = \"reno\"", "flows = 1000000000"),
    ("fewer than no flows", "congestion = \"reno\"", "flows = -1"),
    ("flows that begin after the end", "congestion = \"reno\"", "flows = 30\nstagger = \"2.1s\""),
    (
        "flows that begin after their stop",
        "congestion = \"reno\"",
        "flows = 2\nstart = \"3s\"\nstop = \"5s\"\nstagger = \"2s\"",
    ),
    ("transfers of no size", "congestion = \"reno\"", "transfers = 30"),
    ("no transfers", "congestion = \"reno\"", "bytes = \"1mb\"\ntransfers = 0"),
    ("a source that is never silent", "congestion = \"reno\"", "on = \"1s\""),
    ("a source that is only silent", "congestion = \"reno\"", "off = \"1s\""),
    ("a distribution of no times", "congestion = \"reno\"", "periods = \"exponential\""),
    ("an unknown distribution", "congestion = \"reno\"", "on = \"1s\"\noff = \"1s\"\nperiods = \"pareto\""),
    ("a file with pauses", "congestion = \"reno\"", "on = \"1s\"\noff = \"1s\"\nbytes = \"1mb\""),
    ("an application that writes nothing", "congestion = \"reno\"", "rate = \"0bit\""),
    ("no interval", "interval = \"100ms\"", "interval = \"0s\""),
    ("a ping larger than a packet", "interval = \"100ms\"", "size = \"2kb\""),
    ("an unknown code point", "congestion = \"reno\"", "dscp = \"af44\""),
    ("a code point of seven bits", "congestion = \"reno\"", "dscp = 64"),
    // Names.
    ("a name of the metrics", "name = \"bulk\"", "name = \"total\""),
    ("a name with a dot", "name = \"access\"", "name = \"the.access\""),
    ("a link's name twice", "name = \"access\"", "name = \"bottleneck\""),
    ("one name for two entries of traffic", "name = \"ping\"", "name = \"bulk\""),
    ("a host twice", "[sweep]", "[[host]]\nname = \"h1\"\n[[host]]\nname = \"h1\"\n[sweep]"),
    ("a host that no link names", "[sweep]", "[[host]]\nname = \"h7\"\n[sweep]"),
    ("a link to itself", "ends = [\"h1\", \"r1\"]", "ends = [\"h1\", \"h1\"]"),
    ("a second link between two nodes", "ends = [\"h1\", \"r1\"]", "ends = [\"h2\", \"r1\"]"),
    ("three ends", "ends = [\"h1\", \"r1\"]", "ends = [\"h1\", \"r1\", \"h2\"]"),
    ("traffic from a node that does not exist", "from = \"h1\"", "from = \"h3\""),
    ("traffic to itself", "to = \"h2\"", "to = \"h1\""),
    ("a host that can't be reached", "ends = [\"h1\", \"r1\"]", "ends = [\"h1\", \"s1\"]"),
    // Keys that contradict each other.
    ("a warm-up up to the end", "duration = \"60s\"", "duration = \"60s\"\nwarmup = \"60s\""),
    ("a sample after the end", "duration = \"60s\"", "duration = \"60s\"\nsample = \"61s\""),
    ("a sample of one table after the end", "duration = \"60s\"", "duration = \"60s\"\nsample = { flows = \"61s\" }"),
    ("samples of no such table", "duration = \"60s\"", "duration = \"60s\"\nsample = { flow = \"1s\" }"),
    ("a sample without a unit", "duration = \"60s\"", "duration = \"60s\"\nsample = { flows = 10 }"),
    ("an unknown table", "duration = \"60s\"", "duration = \"60s\"\nrecord = [\"queue\", \"flows\"]"),
    ("a table twice", "duration = \"60s\"", "duration = \"60s\"\nrecord = [\"flows\", \"queues\", \"flows\"]"),
    ("no tables", "duration = \"60s\"", "duration = \"60s\"\nrecord = []"),
    ("a table that is no list", "duration = \"60s\"", "duration = \"60s\"\nrecord = \"flows\""),
    ("a start at the end", "congestion = \"reno\"", "start = \"60s\""),
    ("a stop before the start", "congestion = \"reno\"", "start = \"30s\"\nstop = \"20s\""),
    ("a stop at the start", "congestion = \"reno\"", "start = \"30s\"\nstop = \"30s\""),
    ("a stop after the end", "congestion = \"reno\"", "stop = \"61s\""),
    ("a buffer above its maximum", "[sweep]", "[[host]]\nname = \"h1\"\ntcp.rmem_max = \"64kb\"\n[sweep]"),
    ("a send buffer above its maximum", "[sweep]", "[[host]]\nname = \"h1\"\ntcp.wmem_max = \"8kb\"\n[sweep]"),
    ("a common buffer above its maximum", "[sweep]", "[tcp]\nrmem_max = \"64kb\"\n[[host]]\nname = \"h1\"\n[sweep]"),
    ("a common key that no host has", "[sweep]", "[tcp]\nrmem = \"64kb\"\n[sweep]"),
    ("packets larger than a packet can be", "[sweep]", "[[host]]\nname = \"h1\"\ntcp.gso_max_segs = 46\n[sweep]"),
    ("nothing that may wait unsent", "[sweep]", "[[host]]\nname = \"h1\"\ntcp.notsent_lowat = 0\n[sweep]"),
    ("a queue without a rate", "rate = \"10mbit\"\n", ""),
    ("a ring without a rate, one way", "delay = \"5ms\"\n\n", "reverse.ring = { size = \"256p\", bql = true }\n\n"),
    ("a ring of unknown size", "limit = \"100p\" }", "limit = \"100p\" }\nring = { bql = true }"),
    ("a txqueuelen without a rate", "delay = \"5ms\"\n\n", "txqueuelen = \"100p\"\n\n"),
    ("a txqueuelen of nothing", "\"10mbit\"", "\"10mbit\"\ntxqueuelen = 0"),
    ("a boost without a rate", "delay = \"5ms\"\n\n", "boost = { rate = \"20mbit\", bytes = \"1mb\" }\n\n"),
    ("a boost that is no faster", "\"10mbit\"", "\"10mbit\"\nboost = { rate = \"10mbit\", bytes = \"1mb\" }"),
    (
        "a boost beside a schedule",
        "\"10mbit\"",
        "[[\"0s\", \"10mbit\"], [\"1s\", \"1mbit\"]]\nboost = { rate = \"20mbit\", bytes = \"1mb\" }",
    ),
    ("an unknown link layer", "\"10mbit\"", "\"10mbit\"\noverhead = \"docsys\""),
    ("a link layer that is only a part", "\"10mbit\"", "\"10mbit\"\noverhead = \"ether-vlan\""),
    ("overhead as a list", "\"10mbit\"", "\"10mbit\"\noverhead = [\"docsys\"]"),
    (
        "overheads that add up to too much",
        "\"10mbit\"",
        "\"10mbit\"\noverhead = { framing = [\"conservative\", \"ethernet\", \"ethernet\", \"ethernet\", \"ethernet\", \"ethernet\", \"ethernet\"] }",
    ),
    ("an overhead of unknown keys", "\"10mbit\"", "\"10mbit\"\noverhead = { overhead = 18 }"),
    ("an overhead of unknown cells", "\"10mbit\"", "\"10mbit\"\noverhead = { atm = true }"),
    ("an mpu too large", "\"10mbit\"", "\"10mbit\"\noverhead = { mpu = 1001 }"),
    ("a bucket smaller than a packet", "\"10mbit\"", "\"10mbit\"\nboost = { rate = \"20mbit\", bytes = 1513 }"),
    ("a trace where there are no files", "\"10mbit\"", "{ trace = \"cell.down\" }"),
    ("no kind of variation", "\"10mbit\"", "{}"),
    ("two kinds of variation", "\"10mbit\"", "{ trace = \"cell.down\", preset = \"umts-up\" }"),
    ("an unknown preset", "\"10mbit\"", "{ preset = \"umts\" }"),
    ("half a walk", "\"10mbit\"", "{ walk = { mean = \"1mbit\", deviation = \"1mbit\" } }"),
    (
        "a walk above its maximum",
        "\"10mbit\"",
        "{ walk = { mean = \"2mbit\", deviation = \"1mbit\", coherence = \"1s\", max = \"1mbit\" } }",
    ),
    ("a boost beside a walk", "\"10mbit\"", "{ preset = \"umts-up\" }\nboost = { rate = \"20mbit\", bytes = \"1mb\" }"),
    ("a ring of no packets", "limit = \"100p\" }", "limit = \"100p\" }\nring = { size = 0, bql = true }"),
    (
        "a virtio ring that never has room",
        "limit = \"100p\" }",
        "limit = \"100p\" }\nring = { size = 18, bql = true, accounting = \"virtio\" }",
    ),
    (
        "limits of bytes out of order",
        "limit = \"100p\" }",
        "limit = \"100p\" }\nring = { size = 64, bql = { min = \"3kb\", max = \"2kb\" } }",
    ),
    (
        "a completion that is neither packets nor a time",
        "limit = \"100p\" }",
        "limit = \"100p\" }\nring = { size = 64, bql = false, completion = \"8mbit\" }",
    ),
    (
        "a stacked discipline that holds packets back",
        "limit = \"100p\" }",
        "limit = \"100p\" }\nstacked.queue = { qdisc = \"fq\" }",
    ),
    ("a stacked interface without a rate, one way", "delay = \"5ms\"\n\n", "reverse.stacked.queue.qdisc = \"sfq\"\n\n"),
    ("a queue without a rate, one way", "delay = \"5ms\"\n\n", "reverse.queue.qdisc = \"codel\"\n\n"),
    ("a schedule that starts late", "\"10mbit\"", "[[\"1s\", \"10mbit\"]]"),
    ("a schedule out of order", "\"10mbit\"", "[[\"0s\", \"1mbit\"], [\"20s\", \"2mbit\"], [\"20s\", \"3mbit\"]]"),
    ("a schedule of times", "\"10mbit\"", "[\"0s\", \"10s\"]"),
    ("an empty schedule", "\"10mbit\"", "[]"),
    ("a schedule with a slip", "\"10mbit\"", "[[\"0s\", \"10mbit\"], [\"1s\", \"5\"]]"),
    // More than anyone can mean to record.
    ("a sample every 100 us for a day", "duration = \"60s\"", "duration = \"86400s\"\nsample = \"100us\""),
    (
        "a sample of flows every 100 us for a day",
        "duration = \"60s\"",
        "duration = \"86400s\"\nsample = { queues = \"1s\", flows = \"100us\" }",
    ),
    ("every packet of a day", "duration = \"60s\"", "duration = \"86400s\"\nsojourns = \"packets\""),
    // Sweeps.
    ("a sweep's key without quotes", "\"link.bottleneck.queue.limit\" = [", "link.bottleneck.queue.limit = ["),
    ("a sweep over no link", "\"link.bottleneck.queue.limit\" = [", "\"link.botleneck.queue.limit\" = ["),
    ("a sweep over no key", "\"link.bottleneck.queue.limit\" = [", "\"link.bottleneck.queue.limits\" = ["),
    ("a sweep over the title", "\"link.bottleneck.queue.limit\" = [", "\"title\" = ["),
    ("a sweep over a name", "\"link.bottleneck.queue.limit\" = [", "\"link.bottleneck.name\" = ["),
    ("a sweep without values", "[\"50p\", \"100p\", \"200p\"]", "[]"),
    ("a sweep over one value", "[\"50p\", \"100p\", \"200p\"]", "\"50p\""),
    ("a value twice", "[\"50p\", \"100p\", \"200p\"]", "[\"50p\", \"50p\"]"),
    ("a table among plain values", "[\"50p\", \"100p\", \"200p\"]", "[\"50p\", { a = 1 }]"),
    ("a bad value", "[\"50p\", \"100p\", \"200p\"]", "[\"50p\", \"100q\"]"),
    ("a load that is no list", "[sweep]", "[sweep]\ntraffic = { none = 5 }"),
    ("a load of no traffic", "[sweep]", "[sweep]\ntraffic = { none = [5] }"),
    ("no runs at all", "duration = \"60s\"", "duration = \"60s\"\nrepeat = 0"),
    ("runs as a string", "duration = \"60s\"", "duration = \"60s\"\nrepeat = \"3\""),
    // Expectations.
    ("an expectation about no point", "= \"200p\" }", "= \"250p\" }"),
    (
        "an expectation about a key not swept",
        "where = { \"link.bottleneck.queue.limit\"",
        "where = { \"link.bottleneck.rate\"",
    ),
    ("a band upside down", "[245, 320]", "[320, 245]"),
    ("a band without ends", "[245, 320]", "[-inf, inf]"),
    ("a band above everything", "[245, 320]", "[inf, inf]"),
    ("a band below everything", "[245, 320]", "[-inf, -inf]"),
    ("a band that begins at infinity", "[245, 320]", "[inf, 320]"),
    ("a band that is no number", "[245, 320]", "[nan, 320]"),
    ("a band of one number", "[245, 320]", "[245]"),
    ("a comparison with itself", "band =", "relative_to = { \"link.bottleneck.queue.limit\" = \"200p\" }\nband ="),
    (
        "a cause shown by no other point",
        "band =",
        "differs = \"Why not?\"\nshown_by = { \"link.bottleneck.queue.limit\" = \"200p\" }\nband =",
    ),
    (
        "a cause shown at a point that does not exist",
        "band =",
        "differs = \"Why not?\"\nshown_by = { \"link.bottleneck.queue.limit\" = \"20p\" }\nband =",
    ),
    ("no cause to show", "band =", "shown_by = { \"link.bottleneck.queue.limit\" = \"50p\" }\nband ="),
    // TOML.
    ("no TOML", "duration = \"60s\"", "duration = 60s"),
    ("a string without end", "duration = \"60s\"", "duration = \"60s"),
    ("a key twice", "duration = \"60s\"", "duration = \"60s\"\nduration = \"50s\""),
];

/// Queues that replace the bottleneck's.
const QUEUES: &[(&str, &str)] = &[
    ("red without limit", r#"{ qdisc = "red", avpkt = 1000 }"#),
    ("red, min above max", r#"{ qdisc = "red", limit = "1mb", min = "300kb", max = "200kb", avpkt = 1000 }"#),
    ("red, max above limit", r#"{ qdisc = "red", limit = "100kb", max = "200kb", avpkt = 1000 }"#),
    ("red, derived max above limit", r#"{ qdisc = "red", limit = "100kb", min = "50kb", avpkt = 1000 }"#),
    ("red, limit too small to derive from", r#"{ qdisc = "red", limit = 10, avpkt = 1000 }"#),
    ("red, burst too small", r#"{ qdisc = "red", limit = "1mb", min = "30kb", avpkt = 1000, burst = 5 }"#),
    ("red, average too long", r#"{ qdisc = "red", limit = "2gb", avpkt = 1000 }"#),
    ("red, bandwidth too small", r#"{ qdisc = "red", limit = "5mb", avpkt = 1500, bandwidth = "1kbit" }"#),
    ("red, probability above 1", r#"{ qdisc = "red", limit = "1mb", avpkt = 1000, probability = 2 }"#),
    ("red, probability 0", r#"{ qdisc = "red", limit = "1mb", avpkt = 1000, probability = 0.0 }"#),
    ("tbf without limit", r#"{ qdisc = "tbf", rate = "1mbit", burst = "5kb" }"#),
    ("tbf, limit and latency", r#"{ qdisc = "tbf", rate = "1mbit", burst = "5kb", limit = "50kb", latency = "1s" }"#),
    ("tbf, peakrate alone", r#"{ qdisc = "tbf", rate = "1mbit", burst = "5kb", limit = "50kb", peakrate = "2mbit" }"#),
    ("tbf, mtu alone", r#"{ qdisc = "tbf", rate = "1mbit", burst = "5kb", limit = "50kb", mtu = 1514 }"#),
    (
        "tbf, peakrate below rate",
        r#"{ qdisc = "tbf", rate = "2mbit", burst = "5kb", limit = "50kb", peakrate = "2mbit", mtu = 1514 }"#,
    ),
    ("red, probability tiny", r#"{ qdisc = "red", limit = "1mb", avpkt = 1000, probability = 1e-12 }"#),
    ("red, nodrop without ecn", r#"{ qdisc = "red", limit = "1mb", avpkt = 1000, nodrop = true }"#),
    ("choke without bandwidth", r#"{ qdisc = "choke", limit = "1000p" }"#),
    ("choke without limit", r#"{ qdisc = "choke", bandwidth = "10mbit" }"#),
    ("choke, limit above the table", r#"{ qdisc = "choke", limit = "131072p", bandwidth = "10mbit" }"#),
    ("choke, max above limit", r#"{ qdisc = "choke", limit = "100p", bandwidth = "10mbit", max = "101p" }"#),
    ("choke, min at max", r#"{ qdisc = "choke", limit = "100p", bandwidth = "10mbit", min = "25p" }"#),
    ("choke, burst too small", r#"{ qdisc = "choke", limit = "100p", bandwidth = "10mbit", burst = 3 }"#),
    ("choke, limit too small to derive from", r#"{ qdisc = "choke", limit = "9p", bandwidth = "10mbit" }"#),
    ("choke, harddrop", r#"{ qdisc = "choke", limit = "100p", bandwidth = "10mbit", harddrop = true }"#),
    ("sfq of one packet", r#"{ qdisc = "sfq", limit = "1p" }"#),
    ("sfq of one queue of one packet", r#"{ qdisc = "sfq", limit = "9p", flows = 1, depth = "1p" }"#),
    ("sfq, divisor of 1000", r#"{ qdisc = "sfq", divisor = 1000 }"#),
    ("sfq, divisor too large", r#"{ qdisc = "sfq", divisor = 131072 }"#),
    ("sfq, depth above the kernel's", r#"{ qdisc = "sfq", depth = "128p" }"#),
    ("sfq, half seconds", r#"{ qdisc = "sfq", perturb = "1500ms" }"#),
    ("sfq, ecn without red", r#"{ qdisc = "sfq", ecn = true }"#),
    ("sfq, max above redflowlimit", r#"{ qdisc = "sfq", redflowlimit = "100kb", max = "200kb" }"#),
    ("sfq, min above max", r#"{ qdisc = "sfq", redflowlimit = "100kb", min = "30kb" }"#),
    ("sfq, burst too small", r#"{ qdisc = "sfq", redflowlimit = "100kb", burst = 3 }"#),
    ("codel, target in packets", r#"{ qdisc = "codel", target = "5p" }"#),
    ("cake, rtt and preset", r#"{ qdisc = "cake", rtt = "1ms", preset = "lan" }"#),
    ("cake, an unknown preset", r#"{ qdisc = "cake", preset = "moon" }"#),
    ("cake, overhead too large", r#"{ qdisc = "cake", overhead = 257 }"#),
    ("cake, overhead too small", r#"{ qdisc = "cake", overhead = -65 }"#),
    ("cake, mpu too large", r#"{ qdisc = "cake", mpu = 257 }"#),
    (
        "cake, framings too long",
        r#"{ qdisc = "cake", framing = ["conservative", "ethernet", "ethernet", "ethernet", "ethernet", "ethernet", "ethernet"] }"#,
    ),
    ("cake with fwmark", r#"{ qdisc = "cake", fwmark = 1 }"#),
    ("bfifo of a terabyte", r#"{ qdisc = "bfifo", limit = "1024gb" }"#),
];

/// Traffic that replaces the ping, in a run of 10,000 s: it is wrong, or too much to record.
const TRAFFIC: &[(&str, &str)] = &[
    ("10^8 probes", "kind = \"ping\"\ninterval = \"100us\"\n"),
    ("10^6 pages", "kind = \"web\"\nbytes = 1000\ninterval = \"5ms\""),
    ("10,001 flows in two entries", "kind = \"tcp\"\nflows = 10000"),
    ("a page of no size", "kind = \"web\""),
    ("10^8 look-ups", "kind = \"dns\"\ninterval = \"100us\"\n"),
    ("4 * 10^8 datagrams", "kind = \"udp\"\nrate = \"1gbit\"\non = \"1s\"\noff = \"1s\""),
    ("datagrams at no rate", "kind = \"udp\""),
    ("a datagram larger than a packet", "kind = \"udp\"\nrate = \"1mbit\"\nsize = 1473"),
    ("a datagram without room for a number", "kind = \"udp\"\nrate = \"1mbit\"\nsize = 15"),
    ("an unknown pattern", "kind = \"udp\"\nrate = \"1mbit\"\npattern = \"bursty\""),
    ("on and never off", "kind = \"udp\"\nrate = \"1mbit\"\non = \"1s\""),
    ("off and never on", "kind = \"udp\"\nrate = \"1mbit\"\noff = \"2s\""),
    ("periods without pauses", "kind = \"udp\"\nrate = \"1mbit\"\nperiods = \"exponential\""),
    ("a codec", "kind = \"voip\"\nrate = \"64kbit\""),
    ("a query that is never sent", "kind = \"dns\"\nattempts = 0"),
    ("objects of no size", "kind = \"web\"\nbytes = 1000\nobjects = 20"),
    ("the size of no objects", "kind = \"web\"\nbytes = 1000\nobject_bytes = 20"),
    ("connections for no objects", "kind = \"web\"\nbytes = 1000\nconnections = 6"),
    (
        "3 * 10^5 pages of several connections",
        "kind = \"web\"\nbytes = 1000\nobjects = 9\nobject_bytes = 1\ninterval = \"33ms\"",
    ),
    ("3 * 10^6 transfers", "kind = \"tcp\"\nflows = 30\nbytes = 1\ntransfers = 100000"),
    ("a swarm in which no peer may download", "kind = \"bittorrent\"\nunchoked = 0"),
    ("a swarm of too many", "kind = \"bittorrent\"\npeers = 10000"),
    ("a video without bit rates", "kind = \"video\"\nrates = []"),
    ("bit rates that fall", "kind = \"video\"\nrates = [\"1mbit\", \"2mbit\", \"1500kbit\", \"1500kbit\"]"),
    ("a video that never starts", "kind = \"video\"\nstartup = \"10s\"\nresume = \"9s\"\nbuffer = \"8s\""),
    ("a video in one segment", "kind = \"video\"\nsegment = \"61s\""),
    ("a transfer of a terabyte", "kind = \"tcp\"\nbytes = \"1024gb\""),
];

/// Overrides of the lab's file.
const OVERRIDES: &[&str] = &[
    "link.bottleneck.rate",
    "=5",
    "link..rate=5mbit",
    "link.bottleneck.rate=10mbits",
    "link.bottleneck.rat=10mbit",
    "link.botleneck.rate=10mbit",
    "link.bottleneck=10mbit",
    "link.bottleneck.rate.max=10mbit",
    "sample.drops=1s",
    "record=[\"flow\"]",
    "record=flows",
    "link.bottleneck.name=b",
    "host.h9.tcp.rmem_max=1mb",
    "expect.1.band=[1,2]",
    "duratoin=5s",
    "duration=5s\nwarmup=\"1s\"",
    "traffic.ping.interval=1ns",
    "sweep.link.bottleneck.queue.limit=5p",
    "sweep.link.bottleneck.rate=[\"1mbit\", \"2mbits\"]",
    "title= ",
];

/// Tables for the lab's link `bottleneck`, each with one mistake.
const WIFI: &[(&str, &str)] = &[
    ("a radio without an access point", "links = [\"bottleneck\"]"),
    ("an access point that does not exist", "access_point = \"ap\"\nlinks = [\"bottleneck\"]"),
    ("a radio without stations", "access_point = \"r1\"\nlinks = []"),
    ("a link that does not exist", "access_point = \"r1\"\nlinks = [\"bottelneck\"]"),
    ("a link of another network", "access_point = \"h1\"\nlinks = [\"bottleneck\"]"),
    (
        "a boost on the air",
        "access_point = \"r1\"\nlinks = [\"bottleneck\"]\n[[link]]\nname = \"air\"\nends = [\"r1\", \"s\"]\nrate = \"1mbit\"\nboost = { rate = \"2mbit\", bytes = \"9kb\" }\n[[wifi]]\nname = \"second\"\naccess_point = \"r1\"\nlinks = [\"air\"]",
    ),
    ("a link without a rate", "access_point = \"r1\"\nlinks = [\"access\"]"),
    ("a link twice", "access_point = \"r1\"\nlinks = [\"bottleneck\", \"bottleneck\"]"),
    (
        "losses on a link outside the network",
        "access_point = \"r1\"\nlinks = [\"bottleneck\"]\nerrors = { access = 0.1 }",
    ),
    ("a radio that loses everything", "access_point = \"r1\"\nlinks = [\"bottleneck\"]\nerrors = { bottleneck = 1 }"),
    ("no queueing of this kind", "access_point = \"r1\"\nlinks = [\"bottleneck\"]\nqueueing = { kind = \"mac802\" }"),
    (
        "a queue above those of mac80211",
        "access_point = \"r1\"\nlinks = [\"bottleneck\"]\nqueueing = { kind = \"mac80211\", queue = { qdisc = \"codel\" } }",
    ),
    ("a queue of one station", "access_point = \"r1\"\nlinks = [\"bottleneck\"]\nqueueing = { kind = \"fifo\" }"),
    (
        "a driver without room",
        "access_point = \"r1\"\nlinks = [\"bottleneck\"]\nqueueing = { kind = \"fifo\", size = 0 }",
    ),
    ("too much at once", "access_point = \"r1\"\nlinks = [\"bottleneck\"]\naggregate = { frames = \"65p\" }"),
    (
        "packets that mac80211 splits",
        "access_point = \"r1\"\nlinks = [\"bottleneck\"]\n[[host]]\nname = \"h1\"\ntcp.gso_max_segs = 2",
    ),
];

fn message(text: &str, overrides: &[String]) -> String {
    match Experiment::parse(text, "lab.toml", overrides) {
        Ok(_) => "accepted!".to_owned(),
        Err(error) => error.to_string(),
    }
}

fn problems(text: &str, overrides: &[String]) -> Vec<String> {
    message(text, overrides).split('\n').map(str::to_owned).collect()
}

#[test]
fn every_problem_is_reported_wherever_it_is() {
    let text = lab_with("delay = \"5ms\"", "dealy = \"5ms\"").replace("to = \"h2\"", "").replace("kind = \"ping\"", "");
    let messages = problems(&text, &set(["link.bottleneck.rate", "link..rate=1mbit"]));
    let paths = ["link.access.dealy", "traffic.bulk.to: missing; required: a name", "traffic.ping.kind: missing"];
    for path in paths {
        assert!(messages.iter().any(|line| line.starts_with(&format!("lab.toml: {path}"))), "{path}: {messages:#?}");
    }
    assert_eq!(messages.iter().filter(|line| line.starts_with("lab.toml: --set: ")).count(), 2, "{messages:#?}");
}

#[test]
fn every_bad_value_of_a_sweep_is_reported_once() {
    let text = lab_unswept()
        + "[sweep]\n\"link.bottleneck.queue.limit\" = [\"50q\", \"5p\", \"60q\"]\n\"traffic.bulk.flows\" = [1, 2, -3]\n";
    let found: Vec<_> = problems(&text, &[]).iter().map(|line| line.contains("found \"50q\"")).collect();
    assert_eq!((found.len(), found.iter().filter(|is_it| **is_it).count()), (3, 1), "{:#?}", problems(&text, &[]));
}

#[test]
fn problems_of_a_point_and_of_an_expectation_are_reported_together() {
    let messages = problems(&lab_with("\"10mbit\"", "\"0mbit\"").replace("[245, 320]", "[320, 245]"), &[]);
    assert_eq!(messages.len(), 1, "the file's own values come first: {messages:#?}");
    let messages = problems(&lab_with("to = \"h2\"", "to = \"h9\"").replace("[245, 320]", "[320, 245]"), &[]);
    assert!(messages.len() == 2 && messages[1].contains("expect[1].band"), "{messages:#?}");
}

/// Nothing in a file or its name may end a line or control a terminal.
#[test]
fn no_text_can_forge_a_line() {
    let error = Experiment::parse("a\u{7} = 1", "evil\nlab.toml: fine\u{1b}[2J", &[]).unwrap_err().to_string();
    assert!(!error.contains(char::is_control), "{error:?}");
    let sweep = "[sweep]\n\"traffic.bulk.rate\" = [\"\u{202e}1\"]\n";
    let messages = message(&(lab_unswept() + sweep), &[]);
    assert!(!messages.contains('\u{202e}') && messages.contains("\\u{202e}1"), "{messages:?}");
}

#[test]
fn messages() {
    let mut messages = String::new();
    let mut add = |what: &str, message: String| {
        writeln!(messages, "{what}").unwrap();
        for line in message.split('\n') {
            assert!(line.starts_with("lab.toml: ") && !line.contains(char::is_control), "{what}: {message}");
            writeln!(messages, "    {line}").unwrap();
        }
    };
    for (what, old, new) in EDITS {
        add(what, message(&lab_with(old, new), &[]));
    }
    for (what, queue) in QUEUES {
        let text = lab_unswept().replace(r#"{ qdisc = "pfifo", limit = "100p" }"#, queue);
        add(what, message(&text, &[]));
    }
    for (what, keys) in TRAFFIC {
        let text = lab_unswept().replace("60s", "10000s").replace("kind = \"ping\"", keys);
        add(what, message(&text.replace("interval = \"100ms\"", ""), &[]));
    }
    for (what, keys) in WIFI {
        add(what, message(&(lab_unswept() + "[[wifi]]\nname = \"wlan\"\n" + keys + "\n"), &[]));
    }
    for text in OVERRIDES {
        add(&format!("--set {}", text.escape_debug()), message(&LAB, &set([text])));
    }
    insta::assert_snapshot!(messages);
}
