//! Probes to the modem behind the router. A modem that is a bridge is no hop, but many answer at an address of their own, which
//! the router reaches through the same port. Under upload, such a probe waits in the router's queue, and not in that of the modem.
//!
//! Only addresses that modems have from the factory are asked, and only those that are one link behind the first hop: neither
//! the router itself nor a host of this network.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::first_hop::{self, Echoes};
use super::prober::SharedLog;
use crate::records::{AnswerKind, LadderRow};
use crate::syn_ladder::{Syn, wait};
use crate::time::{MS, SECOND, monotonic_ns};

/// Cable modems (DOCSIS), and then those of other lines.
const ADDRESSES: [Ipv4Addr; 5] = [
    Ipv4Addr::new(192, 168, 100, 1),
    Ipv4Addr::new(192, 168, 1, 1),
    Ipv4Addr::new(192, 168, 2, 1),
    Ipv4Addr::new(192, 168, 8, 1),
    Ipv4Addr::new(192, 168, 0, 1),
];
/// Its page is there; a RST is an answer, too.
const PORT: u16 = 80;
/// The link of a modem, counted from this machine.
const LINK: u8 = 2;
/// Time between two probes.
const INTERVAL_NS: u64 = 250 * MS;
/// A modem answers within this time on the idle path.
const PATIENCE: Duration = Duration::from_millis(800);
/// SYNs without an answer at a time.
const OPEN: usize = 16;

/// How a modem is asked.
enum Way {
    /// By echo requests.
    Echo,
    /// By SYNs.
    Syn,
}

/// Waits for the first hop, looks for a modem, and probes it until `stop` is set.
pub(super) fn run(server: SocketAddr, stop: &AtomicBool, log: &SharedLog) {
    let Some(IpAddr::V4(hop)) = first_hop::address(stop, log) else { return };
    let networks = own_networks();
    let candidates = ADDRESSES.into_iter().filter(|address| {
        *address != hop && server.ip() != IpAddr::V4(*address) && !networks.iter().any(|network| network.has(*address))
    });
    let candidates: Vec<Ipv4Addr> = candidates.collect();
    let found = candidates.into_iter().find_map(|address| {
        let way = way(address).filter(|_| !stop.load(Ordering::Relaxed))?;
        is_behind(hop, address).then_some((address, way))
    });
    // Without sockets, the modem is not known.
    let _ = match found {
        Some((address, Way::Echo)) => {
            Echoes::open(address.into(), LINK, AnswerKind::Modem).and_then(|mut echoes| echoes.run(stop, log))
        }
        Some((address, Way::Syn)) => send_syns(address, stop, log),
        None => Ok(()),
    };
}

/// How an address answers; `None`: not at all.
fn way(address: Ipv4Addr) -> Option<Way> {
    let echoed = Echoes::open(address.into(), LINK, AnswerKind::Modem).is_ok_and(|mut echoes| {
        echoes.ask();
        let until = monotonic_ns() + PATIENCE.as_nanos() as u64;
        while monotonic_ns() < until {
            if matches!(echoes.take(), Ok(Some(Some(_)))) {
                return true;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        false
    });
    if echoed {
        return Some(Way::Echo);
    }
    let answer = answer(address, LINK)?;
    (answer.kind == AnswerKind::Destination).then_some(Way::Syn)
}

/// Whether a packet to this address that may pass one link only is discarded by the first hop.
fn is_behind(hop: Ipv4Addr, address: Ipv4Addr) -> bool {
    let discarded = |row: LadderRow| row.kind == AnswerKind::Exceeded && row.address == Some(hop.to_string());
    // Routers answer about one such packet a second, and the ladder uses most of these answers.
    (0..3).any(|_| answer(address, 1).is_some_and(discarded))
}

/// The answer to a SYN.
fn answer(address: Ipv4Addr, ttl: u8) -> Option<LadderRow> {
    let syn = [Syn::send((address, PORT).into(), ttl).ok()??];
    let until = monotonic_ns() + PATIENCE.as_nanos() as u64;
    while monotonic_ns() < until {
        wait(&syn, 10 * MS);
        if let Some(row) = syn[0].answer() {
            return Some(row);
        }
    }
    None
}

fn send_syns(address: Ipv4Addr, stop: &AtomicBool, log: &SharedLog) -> std::io::Result<()> {
    let mut open: Vec<Syn> = Vec::new();
    let mut next_ns = monotonic_ns();
    while !stop.load(Ordering::Relaxed) {
        let now_ns = monotonic_ns();
        if now_ns >= next_ns {
            next_ns = now_ns + INTERVAL_NS;
            if open.len() < OPEN {
                open.extend(Syn::send((address, PORT).into(), u8::MAX)?);
            }
        }
        wait(&open, next_ns.saturating_sub(now_ns).min(SECOND));
        open.retain(|syn| {
            let Some(row) = syn.answer() else { return true };
            if row.kind == AnswerKind::Destination {
                let row = LadderRow { ttl: LINK, address: Some(address.to_string()), kind: AnswerKind::Modem, ..row };
                log.lock().hop_echoes.push(row);
            }
            false
        });
    }
    Ok(())
}

/// A network of this machine.
struct Network {
    address: Ipv4Addr,
    mask: Ipv4Addr,
}

impl Network {
    fn has(&self, other: Ipv4Addr) -> bool {
        (self.address.to_bits() ^ other.to_bits()) & self.mask.to_bits() == 0
    }
}

fn own_networks() -> Vec<Network> {
    let Ok(interfaces) = nix::ifaddrs::getifaddrs() else { return Vec::new() };
    let of = |interface: nix::ifaddrs::InterfaceAddress| {
        let address = interface.address?.as_sockaddr_in()?.ip();
        Some(Network { address, mask: interface.netmask?.as_sockaddr_in()?.ip() })
    };
    interfaces.filter_map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_of_this_network_are_no_modems() {
        let network = Network { address: Ipv4Addr::new(192, 168, 1, 20), mask: Ipv4Addr::new(255, 255, 255, 0) };
        assert!(network.has(ADDRESSES[1]) && !network.has(ADDRESSES[0]));
        assert!(own_networks().iter().any(|network| network.has(Ipv4Addr::LOCALHOST)));
    }

    #[test]
    fn this_machine_answers_and_is_not_behind_itself() {
        assert!(way(Ipv4Addr::LOCALHOST).is_some());
        assert!(answer(Ipv4Addr::LOCALHOST, 1).is_some_and(|row| row.kind == AnswerKind::Destination));
        assert!(!is_behind(Ipv4Addr::new(127, 0, 0, 2), Ipv4Addr::LOCALHOST));
    }
}
