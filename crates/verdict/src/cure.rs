//! What to do: one cure that fits the location and the link.

use crate::goodput::{SECOND_NS, lower_decile};
use crate::input::{Direction, EndName, LinkKind, Observations, PhaseKind};
use crate::sentences::queues;
use crate::verdict::{DirectionNumbers, Grade, Limit, OutcomeKind, PhaseVerdict, Place, Where};

// The rate of a shaper is that of `bufferscope fix` for a line of unknown kind: python/bufferscope/analysis/fixing/rates.py
// explains these constants, and tests/cli/test_fix.py compares the two.

/// The part of a rate that a shaper leaves unused. The queue of a download is before the shaper, so it needs more.
const MARGIN: [(Direction, f64); 2] = [(Direction::Up, 0.05), (Direction::Down, 0.10)];
/// The additional margin if only a mean is known.
const UNCERTAIN: f64 = 0.05;
/// Round trips under load in which TCP recovers from losses.
const RECOVERY: i64 = 4;
/// The size of a full IP packet, if the observations do not have it.
const PACKET: u32 = 1500;
/// The headers of IPv4 and TCP with timestamps, and what a line of unknown kind adds.
const TCP_HEADERS: u32 = 52;
const UNKNOWN_OVERHEAD: u32 = 44;
/// Rates that vary more than this have no fixed rate for a shaper.
const VARYING: f64 = 0.15;

/// What to do.
pub(crate) fn cure(observations: &Observations, worst: Option<&PhaseVerdict>, phases: &[PhaseVerdict]) -> String {
    let Some(phase) = worst else { return "Run the test with a load.".to_owned() };
    match phase.outcome.kind {
        OutcomeKind::Queue if phase.grade.is_some_and(|grade| grade <= Grade::A) => {
            "There is nothing to do: so short a delay disturbs neither calls nor games.".to_owned()
        }
        OutcomeKind::Queue => {
            // The longest queue first.
            let queues = queues(phases);
            let here = queues.iter().find(|queue| phase.locations.iter().any(|other| other.direction == queue.direction));
            here.map_or("Measure download and upload separately to find the queue.".to_owned(), |queue| {
                of_queue(observations, queue, phases)
            })
        }
        OutcomeKind::Managed | OutcomeKind::Clean => match phase.send_buffers.first() {
            Some(_) => "The network needs nothing; a program that sends data and must react quickly should keep less of it in its \
                        own send buffer."
                .to_owned(),
            None => "There is nothing to do.".to_owned(),
        },
        OutcomeKind::NotFilled => unfilled(phase.outcome.limit),
        OutcomeKind::OtherTraffic => "Repeat the test when nobody else uses the connection.".to_owned(),
        OutcomeKind::PathChanged => "Repeat the test.".to_owned(),
        OutcomeKind::CannotTell if observations.parameters.protocol.is_some() => {
            "Repeat the test, or try another server.".to_owned()
        }
        OutcomeKind::CannotTell => "Repeat the test, and check that UDP packets reach the server.".to_owned(),
    }
}

fn unfilled(limit: Option<Limit>) -> String {
    match limit {
        Some(Limit::ReceiveWindow) => "Repeat the test with more connections, or with a larger receive buffer.",
        Some(Limit::Sender) => "Repeat the test with more connections, or with a faster sending machine.",
        Some(Limit::Cpu) => "Repeat the test from a faster machine, or close other programs first.",
        Some(Limit::Policer) => {
            "Ask the provider whether the speed is limited by dropping packets; a limit on your router slightly below \
                                 that speed avoids the losses."
        }
        Some(Limit::LowDelayControl) => {
            "Repeat the test with another congestion control, such as CUBIC, to see the queues."
        }
        Some(Limit::Unknown) | None => "Repeat the test for a longer time.",
    }
    .to_owned()
}

fn of_queue(observations: &Observations, queue: &Where, phases: &[PhaseVerdict]) -> String {
    let Some(place) = main(queue) else { return ask_for_more() };
    let client = &observations.ends.client;
    let server = &observations.ends.server;
    let wifi = client.link == LinkKind::Wifi;
    match place {
        Place::ClientSendBuffer | Place::ServerSendBuffer => {
            "Let the sending program keep less data in its send buffer (TCP_NOTSENT_LOWAT).".to_owned()
        }
        Place::ClientQdisc => end_queue(EndName::Client, client.qdisc.as_deref()),
        Place::ServerQdisc => end_queue(EndName::Server, server.qdisc.as_deref()),
        Place::ClientDriver | Place::RouterDownlink if wifi => {
            "Move closer to the router, use 5 GHz or a cable, and prefer a router whose Wi-Fi has fq_codel and airtime fairness."
                .to_owned()
        }
        Place::ClientDriver if client.bql == Some(false) => {
            "Shorten the ring of this machine's network card (ethtool -G), or use a driver with BQL.".to_owned()
        }
        Place::ClientDriver => {
            "Check the cable, switch or powerline adapter at this machine: its network card cannot send as fast as it should."
                .to_owned()
        }
        Place::RouterDownlink => {
            "Check the cable, switch or powerline adapter between the router and this machine, and turn on fq_codel on the router."
                .to_owned()
        }
        Place::RouterUplink | Place::AccessDownlink | Place::Modem => shaper(observations, queue.direction, phases),
        Place::ServerDriver => "The queue is at the server: use fq_codel or cake there, or test with another server.".to_owned(),
        Place::Hop | Place::LastHop => {
            "The queue is beyond your router: report it to the provider, and compare with another server.".to_owned()
        }
    }
}

/// The most probable place of an answer that names few of them.
fn main(queue: &Where) -> Option<Place> {
    let few = queue.answer.locations.len() <= 2;
    let likely = queue.posterior.iter().max_by(|a, b| a.probability.total_cmp(&b.probability));
    // A shaper on the router helps wherever behind the router the queue is, but not if it may be before it.
    let line = |place: Place| matches!(place, Place::RouterUplink | Place::AccessDownlink | Place::Modem);
    let locations = &queue.answer.locations;
    let behind = locations.iter().all(|location| location.link > 1);
    let shaped = locations.iter().map(|location| location.place).find(|place| behind && line(*place));
    if few { likely.map(|candidate| candidate.location.place) } else { shaped }
}

fn ask_for_more() -> String {
    "Repeat the test from a machine that is wired to the router, to see on which side of the router the queue is."
        .to_owned()
}

fn end_queue(end: EndName, qdisc: Option<&str>) -> String {
    let machine = if end == EndName::Client { "this machine" } else { "the server" };
    match qdisc {
        Some("fq_codel" | "cake" | "fq_pie") => {
            format!("Give cake on {machine} a rate slightly below that of its link, so that the queue stays short.")
        }
        _ => format!("Use fq_codel as the queueing discipline of {machine}'s network card (tc qdisc replace)."),
    }
}

fn shaper(observations: &Observations, direction: Direction, phases: &[PhaseVerdict]) -> String {
    let numbers = phases.iter().flat_map(|phase| &phase.numbers.directions);
    let varying = numbers
        .filter(|numbers| numbers.direction == direction)
        .filter_map(|numbers| numbers.goodput?.variation)
        .reduce(f64::min)
        .is_some_and(|variation| variation > VARYING);
    let way = match direction {
        Direction::Up => "upload",
        Direction::Down => "download",
    };
    match shaper_bps(observations, direction, phases) {
        Some(_) if varying => format!(
            "Turn on smart queue management (cake) for the {way} on your router; the speed varies, so let it adapt (cake-autorate)."
        ),
        Some(bps) => format!(
            "Turn on smart queue management (cake or fq_codel) for the {way} on your router, at {} kbit/s.",
            (bps / 1e3) as u64
        ),
        None => format!("Turn on smart queue management (cake or fq_codel) for the {way} on your router."),
    }
}

/// The rate of a shaper on a line of unknown kind.
fn shaper_bps(observations: &Observations, direction: Direction, phases: &[PhaseVerdict]) -> Option<f64> {
    let alone = |phase: &PhaseVerdict| {
        matches!((phase.kind, direction), (PhaseKind::Upload, Direction::Up) | (PhaseKind::Download, Direction::Down))
    };
    let of = |phase: &'_ PhaseVerdict| -> Option<DirectionNumbers> {
        let mut own = phase.numbers.directions.iter();
        own.find(|numbers| numbers.direction == direction && numbers.loaded && numbers.goodput.is_some()).cloned()
    };
    let measured = phases.iter().filter_map(|phase| Some((phase, of(phase)?)));
    let (verdict, numbers) = measured.min_by_key(|(phase, _)| !alone(phase))?;
    let goodput = numbers.goodput?;
    // With a long queue, goodput pauses until a lost segment is sent again, so single seconds are too low.
    let bin_ns = verdict.numbers.loaded.p50_ns.unwrap_or(0).saturating_mul(RECOVERY);
    let mut phases = observations.phases.iter();
    let phase = phases.find(|phase| phase.kind == verdict.kind && phase.start_ns == verdict.start_ns);
    let longer = phase.filter(|_| bin_ns > SECOND_NS).and_then(|phase| lower_decile(phase, direction, bin_ns));
    let decile = goodput.p10_bps.map(|bps| bps as f64).into_iter().chain(longer).reduce(f64::max);
    let (_, least) = *MARGIN.iter().find(|(other, _)| *other == direction)?;
    let margin = if decile.is_some() { least } else { least + UNCERTAIN };
    let packet = observations.parameters.mtu_bytes.filter(|size| (576..=9000).contains(size)).unwrap_or(PACKET);
    let on_line = f64::from(packet + UNKNOWN_OVERHEAD) / f64::from(packet - TCP_HEADERS);
    Some(decile.unwrap_or(goodput.mean_bps as f64) * on_line * (1.0 - margin)).filter(|bps| *bps > 0.0)
}
