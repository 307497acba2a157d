//! How long packets were in this machine's queueing discipline, from the kernel's two stamps of each.

use std::collections::VecDeque;

use bufferscope_endpoint::error_queue::Stamped;

/// A packet's stamps come within a second or never; so many packets leave in that time at most.
const KEPT: usize = 1024;

/// Pairs the stamps of packets, each identified by a `K`. Only the first pair of a packet counts: a device below may stamp
/// the same packet again.
#[derive(Clone, Debug, Default)]
pub struct Departures<K> {
    packets: VecDeque<Packet<K>>,
}

#[derive(Clone, Copy, Debug)]
struct Packet<K> {
    name: K,
    entered_ns: u64,
    has_left: bool,
}

impl<K: PartialEq + Copy> Departures<K> {
    /// Takes a stamp. Returns when the packet entered the queueing discipline and how long it stayed, once both are known.
    pub fn take(&mut self, name: K, stamped: Stamped, realtime_ns: u64) -> Option<(u64, u64)> {
        let known = self.packets.iter_mut().rev().find(|packet| packet.name == name);
        match (stamped, known) {
            (Stamped::Scheduled, None) => {
                if self.packets.len() >= KEPT {
                    self.packets.pop_front();
                }
                self.packets.push_back(Packet { name, entered_ns: realtime_ns, has_left: false });
                None
            }
            (Stamped::Sent, Some(packet)) if !packet.has_left => {
                packet.has_left = true;
                Some((packet.entered_ns, realtime_ns.saturating_sub(packet.entered_ns)))
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_has_one_sojourn_from_its_first_stamps() {
        let mut departures = Departures::default();
        assert_eq!(departures.take(1, Stamped::Scheduled, 100), None);
        assert_eq!(departures.take(2, Stamped::Scheduled, 110), None);
        assert_eq!(departures.take(1, Stamped::Sent, 150), Some((100, 50)));
        // Stamps of the same packets by a device below.
        assert_eq!(departures.take(1, Stamped::Scheduled, 160), None);
        assert_eq!(departures.take(1, Stamped::Sent, 170), None);
        assert_eq!(departures.take(2, Stamped::Scheduled, 115), None);
        assert_eq!(departures.take(2, Stamped::Sent, 130), Some((110, 20)));
        assert_eq!(departures.take(2, Stamped::Sent, 140), None);
    }

    #[test]
    fn packets_that_never_leave_do_not_accumulate() {
        let mut departures = Departures::default();
        for packet in 0..10_000 {
            departures.take(packet, Stamped::Scheduled, packet);
        }
        assert_eq!(departures.packets.len(), KEPT);
    }
}
