//! Flows that send at a given rate, whether or not their datagrams arrive, as `iperf3 -u` does.
//!
//! The receiver counts by sequence number: a datagram is lost if it is missing and one with a higher number has arrived
//! (RFC 3550, section A.3; iperf3 counts the same way). If datagrams are dropped and none with a higher number arrives,
//! the receiver cannot notice; they count as in flight.

use bufferscope_scenario::{Departures, UdpTraffic};

use crate::datagram::Datagram;
use crate::random::Uniform;
use crate::starts::START_JITTER_NS;

/// The sender of one flow.
#[derive(Debug)]
pub struct UdpSender {
    payload_bytes: u32,
    departures: Departures,
    next_ns: Option<u64>,
    sent: u64,
}

/// The receiver of one flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UdpReceiver {
    /// Datagrams that have arrived.
    pub received: u64,
    /// The highest number that has arrived, plus one.
    pub expected: u64,
}

impl UdpSender {
    /// A sender that begins some time after `start_ns` and sends nothing at or after `stop_ns`. Flows that start
    /// together are not in phase with one another.
    pub fn new(parameters: &UdpTraffic, start_ns: u64, stop_ns: u64, random: &mut impl Uniform) -> Self {
        let offset_ns = random.below(START_JITTER_NS.max(parameters.phase_ns()));
        Self {
            payload_bytes: parameters.payload_bytes,
            departures: parameters.departures(start_ns + offset_ns, stop_ns),
            next_ns: None,
            sent: 0,
        }
    }

    /// Stops at `stop_ns`, earlier than planned.
    pub fn bring_stop_forward(&mut self, stop_ns: u64) {
        self.departures.bring_stop_forward(stop_ns);
    }

    /// Chooses when the next datagram leaves; `None`: the flow has stopped.
    pub fn plan(&mut self, random: &mut impl Uniform) -> Option<u64> {
        self.next_ns = self.departures.next(&mut || random.bits());
        self.next_ns
    }

    /// When the next datagram leaves, as [planned](Self::plan).
    pub fn next_ns(&self) -> Option<u64> {
        self.next_ns
    }

    /// The next datagram.
    #[inline]
    pub fn next(&self) -> Datagram {
        Datagram { number: self.sent, payload_bytes: self.payload_bytes }
    }

    /// The next datagram has left.
    #[inline]
    pub fn has_left(&mut self) {
        self.sent += 1;
    }

    /// Datagrams sent so far.
    #[inline]
    pub fn sent(&self) -> u64 {
        self.sent
    }
}

impl UdpReceiver {
    /// A datagram with this number has arrived.
    #[inline]
    pub fn receive(&mut self, number: u64) {
        self.received += 1;
        self.expected = self.expected.max(number.saturating_add(1));
    }
}

#[cfg(test)]
mod tests {
    use bufferscope_scenario::Pattern;

    use super::*;
    use crate::random::Random;

    const MS: u64 = 1_000_000;

    /// 1000 bytes at 8 Mbit/s: one datagram per millisecond, for 10 ms.
    fn sender(random: &mut Random) -> UdpSender {
        let parameters =
            UdpTraffic { flows: 1, rate_bps: 8_000_000, payload_bytes: 1000, pattern: Pattern::Constant, on_off: None };
        UdpSender::new(&parameters, 5 * MS, 15 * MS, random)
    }

    #[test]
    fn datagrams_leave_at_the_rate_from_within_the_first_interval_until_the_stop() {
        let mut random = Random::new(1, 0);
        let mut sender = sender(&mut random);
        let times: Vec<u64> = std::iter::from_fn(|| sender.plan(&mut random)).collect();
        assert!((5 * MS..6 * MS).contains(&times[0]), "{times:?}");
        assert!(times.windows(2).all(|pair| pair[1] - pair[0] == MS), "{times:?}");
        assert!(times.last().is_some_and(|&last| (14 * MS..15 * MS).contains(&last)), "{times:?}");
    }

    #[test]
    fn a_datagram_that_could_not_leave_gives_its_number_to_the_next() {
        let mut random = Random::new(1, 0);
        let mut sender = sender(&mut random);
        sender.plan(&mut random);
        assert_eq!(sender.next(), Datagram { number: 0, payload_bytes: 1000 });
        sender.plan(&mut random);
        assert_eq!((sender.next().number, sender.sent()), (0, 0));
        sender.has_left();
        assert_eq!((sender.next().number, sender.sent()), (1, 1));
    }

    #[test]
    fn the_receiver_expects_what_follows_the_highest_number_whatever_is_missing() {
        let mut receiver = UdpReceiver::default();
        for number in [0, 3, 1] {
            receiver.receive(number);
        }
        assert_eq!(receiver, UdpReceiver { received: 3, expected: 4 });
        receiver.receive(u64::MAX);
        assert_eq!(receiver.expected, u64::MAX);
    }
}
