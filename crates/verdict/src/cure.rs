//! What to do: one cure that fits the location and the link.

use crate::input::{Direction, EndName, LinkKind, Observations};
use crate::sentences::{best_rate, queues};
use crate::verdict::{Grade, Limit, OutcomeKind, PhaseVerdict, Place, Where};
use crate::words::rate;

/// A shaper on a router begins with this part of the measured rate.
const SHAPED: f64 = 0.9;
/// IP packets per goodput: 1500 / 1448.
const HEADER_FACTOR: f64 = 1500.0 / 1448.0;
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
        Place::RouterUplink | Place::AccessDownlink => shaper(queue.direction, phases),
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
    let line = |place: Place| matches!(place, Place::RouterUplink | Place::AccessDownlink);
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

fn shaper(direction: Direction, phases: &[PhaseVerdict]) -> String {
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
    match best_rate(phases, direction) {
        Some(_) if varying => format!(
            "Turn on smart queue management (cake) for the {way} on your router; the speed varies, so let it adapt (cake-autorate)."
        ),
        Some(goodput) => format!(
            "Turn on smart queue management (cake or fq_codel) for the {way} on your router, at {}.",
            rate(goodput * HEADER_FACTOR * SHAPED)
        ),
        None => format!("Turn on smart queue management (cake or fq_codel) for the {way} on your router."),
    }
}
