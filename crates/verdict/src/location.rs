//! Locations: the queues of a path, their names, and the answer that follows from their probabilities.

use crate::input::{Direction, LinkKind};
use crate::model::CEILING;
use crate::statistics::rounded;
use crate::verdict::{Answer, Candidate, Location, Place};
use crate::words::percent;

/// An answer has at least this probability.
const ENOUGH: f64 = 0.9;

/// What the names of locations depend on.
#[derive(Clone, Copy)]
pub(crate) struct Path<'a> {
    /// The number of links in the direction.
    pub(crate) links: u8,
    pub(crate) direction: Direction,
    pub(crate) client_link: LinkKind,
    /// The modem that is bridged onto link 2.
    pub(crate) modem: Option<Modem<'a>>,
    /// The address of each hop from the client, from 1 on.
    pub(crate) address: &'a dyn Fn(u8) -> Option<String>,
}

/// A modem that answers at an address of its own.
#[derive(Clone, Copy)]
pub(crate) struct Modem<'a> {
    pub(crate) address: &'a str,
    /// The probability that a queue at its link is in it, and not in the device before it.
    pub(crate) share: f64,
}

/// The queue of the modem, if a queue at this link may be in it.
fn in_modem<'a>(path: &Path<'a>, link: u8) -> Option<(Location, Modem<'a>)> {
    let modem = path.modem?;
    let splits = matches!(on_link(path, link).place, Place::RouterUplink | Place::AccessDownlink);
    let address = Some(modem.address.to_owned());
    splits.then_some((Location { place: Place::Modem, direction: path.direction, link, address }, modem))
}

/// The more probable queue at a link.
pub(crate) fn likely(path: &Path<'_>, link: u8) -> Location {
    in_modem(path, link)
        .filter(|(_, modem)| modem.share > 0.5)
        .map_or_else(|| on_link(path, link), |(location, _)| location)
}

/// The queue that sends onto a link.
pub(crate) fn on_link(path: &Path<'_>, link: u8) -> Location {
    let direction = path.direction;
    let (place, hop) = match direction {
        Direction::Up => match link {
            1 => (Place::ClientDriver, None),
            2 => (Place::RouterUplink, Some(1)),
            link if link >= path.links => (Place::LastHop, Some(link - 1)),
            link => (Place::Hop, Some(link - 1)),
        },
        Direction::Down => match link {
            link if link >= path.links => (Place::ServerDriver, None),
            1 => (Place::RouterDownlink, Some(1)),
            2 => (Place::AccessDownlink, Some(2)),
            link => (Place::Hop, Some(link)),
        },
    };
    Location { place, direction, link, address: hop.and_then(path.address) }
}

/// The queueing discipline of the end that sends.
pub(crate) fn qdisc(path: &Path<'_>) -> Location {
    let (place, link) = match path.direction {
        Direction::Up => (Place::ClientQdisc, 1),
        Direction::Down => (Place::ServerQdisc, path.links),
    };
    Location { place, direction: path.direction, link, address: None }
}

/// The socket buffers of the end that sends.
pub(crate) fn send_buffer(path: &Path<'_>) -> Location {
    let (place, link) = match path.direction {
        Direction::Up => (Place::ClientSendBuffer, 1),
        Direction::Down => (Place::ServerSendBuffer, path.links),
    };
    Location { place, direction: path.direction, link, address: None }
}

/// The candidates in the order of the path from the client. `own` is the probability of the sender's queueing discipline, and
/// `links` are the probabilities of the links from the client; together they add up to 1.
pub(crate) fn candidates(path: &Path<'_>, own: f64, links: &[f64]) -> Vec<Candidate> {
    let qdisc = Candidate { location: qdisc(path), probability: rounded(own) };
    let links = links.iter().zip(1..=u8::MAX).flat_map(|(&probability, link)| {
        let candidate = |location, part: f64| Candidate { location, probability: rounded(probability * part) };
        let Some((modem, Modem { share, .. })) = in_modem(path, link) else {
            return vec![candidate(on_link(path, link), 1.0)];
        };
        let mut both = vec![candidate(on_link(path, link), 1.0 - share), candidate(modem, share)];
        // In the order of the path from the client.
        if path.direction == Direction::Down {
            both.reverse();
        }
        both
    });
    match path.direction {
        Direction::Up => std::iter::once(qdisc).chain(links).collect(),
        Direction::Down => links.chain(std::iter::once(qdisc)).collect(),
    }
}

/// The smallest set of adjacent candidates that is probable enough; of several, the most probable one.
pub(crate) fn answer(path: &Path<'_>, candidates: &[Candidate], share: f64) -> Answer {
    let sum = |set: &[Candidate]| set.iter().map(|candidate| candidate.probability).sum::<f64>();
    let best = (1..=candidates.len()).find_map(|size| {
        let best = candidates.windows(size).max_by(|a, b| sum(a).total_cmp(&sum(b)))?;
        (sum(best) >= ENOUGH).then_some(best)
    });
    let set = best.unwrap_or(candidates);
    let probability = rounded(sum(set).min(CEILING));
    let locations: Vec<Location> = set.iter().map(|candidate| candidate.location.clone()).collect();
    let text = text(path, &locations, probability);
    Answer { text, locations, probability, share: rounded(share) }
}

/// An answer that is one location.
pub(crate) fn certain(path: &Path<'_>, location: Location, probability: f64, share: f64) -> Answer {
    let text = format!("{} ({})", name(path, &location), percent(probability));
    Answer { text, locations: vec![location], probability: rounded(probability), share: rounded(share) }
}

fn text(path: &Path<'_>, locations: &[Location], probability: f64) -> String {
    let has_link = |link: u8| locations.iter().any(|location| location.link == link);
    match locations {
        [] => "cannot tell".to_owned(),
        [only] => format!("{} ({})", name(path, only), percent(probability)),
        _ if path.links > 1 && (1..=path.links).all(has_link) => {
            "cannot tell where between this machine and the server".to_owned()
        }
        [first, .., last] => {
            let (first, last) = (name(path, first), name(path, last));
            if locations.len() == 2 {
                format!("{first} or {last}: cannot tell which ({})", percent(probability))
            } else {
                format!("one of the queues from {first} to {last}: cannot tell which ({})", percent(probability))
            }
        }
    }
}

/// The name of a location for people.
pub(crate) fn name(path: &Path<'_>, location: &Location) -> String {
    let at = |hop: u8| match &location.address {
        Some(address) => format!("hop {hop} ({address})"),
        None => format!("hop {hop}"),
    };
    let wifi = path.client_link == LinkKind::Wifi;
    match location.place {
        Place::ClientSendBuffer => "the send buffer on this machine".to_owned(),
        Place::ClientQdisc => "this machine's own packet queue".to_owned(),
        Place::ClientDriver if wifi => "this machine's Wi-Fi towards the router".to_owned(),
        Place::ClientDriver => "this machine's network card".to_owned(),
        Place::RouterUplink if path.modem.is_some() => "the router's uplink".to_owned(),
        Place::RouterUplink => "the router's uplink or its modem".to_owned(),
        Place::Modem => match &location.address {
            Some(address) => format!("the modem behind the router ({address})"),
            None => "the modem behind the router".to_owned(),
        },
        Place::RouterDownlink if wifi => "the router's Wi-Fi towards this machine".to_owned(),
        Place::RouterDownlink => "the router's port towards this machine".to_owned(),
        Place::AccessDownlink => "the provider's end of the line".to_owned(),
        Place::Hop if location.direction == Direction::Up => {
            format!("the link from {} towards the server", at(location.link.saturating_sub(1)))
        }
        Place::Hop => format!("the link from {} towards this machine", at(location.link)),
        Place::LastHop => "the last link to the server".to_owned(),
        Place::ServerDriver => "the server's network card".to_owned(),
        Place::ServerQdisc => "the server's own packet queue".to_owned(),
        Place::ServerSendBuffer => "the send buffer on the server".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(direction: Direction) -> Path<'static> {
        Path { links: 4, direction, client_link: LinkKind::Ethernet, modem: None, address: &|_| None }
    }

    #[test]
    fn the_answer_is_the_smallest_set_of_neighbours_with_90_percent() {
        let path = path(Direction::Up);
        let one = answer(&path, &candidates(&path, 0.01, &[0.01, 0.95, 0.02, 0.01]), 1.0);
        assert_eq!((one.locations.len(), one.locations[0].place), (1, Place::RouterUplink));
        assert_eq!(one.text, "the router's uplink or its modem (95 %)");
        let two = answer(&path, &candidates(&path, 0.0, &[0.0, 0.5, 0.45, 0.05]), 1.0);
        assert_eq!(two.locations.iter().map(|location| location.link).collect::<Vec<_>>(), [2, 3]);
        let all = answer(&path, &candidates(&path, 0.2, &[0.2, 0.2, 0.2, 0.2]), 1.0);
        assert_eq!(all.text, "cannot tell where between this machine and the server");
    }

    #[test]
    fn a_modem_shares_its_link_with_the_device_before_it() {
        for (direction, share, expected) in [
            (Direction::Up, 0.99, "the modem behind the router (192.168.100.1) (96 %)"),
            (Direction::Up, 0.01, "the router's uplink (96 %)"),
            (Direction::Down, 0.01, "the provider's end of the line (96 %)"),
            (
                Direction::Up,
                0.5,
                "the router's uplink or the modem behind the router (192.168.100.1): cannot tell which (97 %)",
            ),
        ] {
            let modem = Some(Modem { address: "192.168.100.1", share });
            let path = Path { modem, ..path(direction) };
            let found = answer(&path, &candidates(&path, 0.01, &[0.01, 0.97, 0.01, 0.0]), 1.0);
            assert_eq!(found.text, expected);
        }
    }

    #[test]
    fn a_queue_is_named_after_the_router_that_sends() {
        let names = |direction| {
            let path = path(direction);
            (1..=4).map(|link| on_link(&path, link).place).collect::<Vec<_>>()
        };
        assert_eq!(names(Direction::Up), [Place::ClientDriver, Place::RouterUplink, Place::Hop, Place::LastHop]);
        let down = [Place::RouterDownlink, Place::AccessDownlink, Place::Hop, Place::ServerDriver];
        assert_eq!(names(Direction::Down), down);
    }
}
