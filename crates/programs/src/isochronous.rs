//! A sender of datagrams at a fixed interval, whether or not they arrive: one direction of a call with G.711 over RTP,
//! which sends without silence suppression, or `irtt`, which measures round trips.
//!
//! [`Probes`](crate::Probes) keep track of the packets.

use bufferscope_scenario::{IrttTraffic, VoipTraffic};

use crate::datagram::Datagram;
use crate::random::Uniform;

/// A sender at a fixed interval.
#[derive(Debug)]
pub struct Isochronous {
    interval_ns: u64,
    payload_bytes: u32,
    start_ns: u64,
    stop_ns: u64,
    sent: u64,
}

impl Isochronous {
    /// One direction of a call, which sends from `start_ns` to `stop_ns`.
    pub fn speaker(start_ns: u64, stop_ns: u64, random: &mut impl Uniform) -> Self {
        Self::new(VoipTraffic::INTERVAL_NS, VoipTraffic::PAYLOAD_BYTES, [start_ns, stop_ns], random)
    }

    /// A prober that sends requests from `start_ns` to `stop_ns`.
    pub fn irtt(parameters: &IrttTraffic, start_ns: u64, stop_ns: u64, random: &mut impl Uniform) -> Self {
        Self::new(parameters.interval_ns, parameters.payload_bytes, [start_ns, stop_ns], random)
    }

    /// Two senders are not in phase with each other, or with anything else.
    fn new(interval_ns: u64, payload_bytes: u32, [start_ns, stop_ns]: [u64; 2], random: &mut impl Uniform) -> Self {
        let start_ns = start_ns + random.below(interval_ns);
        Self { interval_ns, payload_bytes, start_ns, stop_ns, sent: 0 }
    }

    /// Stops at `stop_ns`, earlier than planned.
    pub fn bring_stop_forward(&mut self, stop_ns: u64) {
        self.stop_ns = stop_ns;
    }

    /// When the next packet leaves; `None`: the sender has stopped.
    pub fn next_ns(&self) -> Option<u64> {
        let next_ns = self.start_ns.saturating_add(self.sent.saturating_mul(self.interval_ns));
        (next_ns < self.stop_ns).then_some(next_ns)
    }

    /// The next packet leaves.
    pub fn send(&mut self) -> Datagram {
        let number = self.sent;
        self.sent += 1;
        Datagram { number, payload_bytes: self.payload_bytes }
    }

    /// From now on, sends without end.
    pub fn resume(&mut self, now_ns: u64) {
        self.start_ns = now_ns.saturating_sub(self.sent * self.interval_ns);
        self.stop_ns = u64::MAX;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    const MS: u64 = 1_000_000;

    #[test]
    fn a_speaker_sends_every_20_ms_until_it_stops_and_goes_on_when_it_resumes() {
        let mut speaker = Isochronous::speaker(1000 * MS, 1050 * MS, &mut Random::new(1, 0));
        let first_ns = speaker.next_ns().unwrap();
        assert!((1000 * MS..1020 * MS).contains(&first_ns), "{first_ns}");
        let mut times = Vec::new();
        while let Some(at_ns) = speaker.next_ns() {
            assert_eq!(speaker.send(), Datagram { number: times.len() as u64, payload_bytes: 172 });
            times.push(at_ns - first_ns);
        }
        assert!(times == [0, 20 * MS] || times == [0, 20 * MS, 40 * MS], "{times:?}");
        speaker.resume(2000 * MS);
        assert_eq!(speaker.next_ns(), Some(2000 * MS));
        assert_eq!(speaker.send().number, times.len() as u64);
        assert_eq!(speaker.next_ns(), Some(2020 * MS));
    }

    #[test]
    fn a_prober_keeps_its_own_interval_and_size_from_a_phase_of_its_own() {
        let parameters = IrttTraffic { interval_ns: 200 * MS, payload_bytes: 60, timeout_ns: 1000 * MS };
        let mut first_times = std::collections::BTreeSet::new();
        for seed in 0..8 {
            let mut prober = Isochronous::irtt(&parameters, 500 * MS, 2500 * MS, &mut Random::new(seed, 0));
            let first_ns = prober.next_ns().unwrap();
            assert!((500 * MS..700 * MS).contains(&first_ns), "{first_ns}");
            first_times.insert(first_ns);
            for number in 0..10 {
                assert_eq!(prober.next_ns(), Some(first_ns + number * 200 * MS));
                assert_eq!(prober.send(), Datagram { number, payload_bytes: 60 });
            }
            assert_eq!(prober.next_ns(), None);
        }
        assert_eq!(first_times.len(), 8, "{first_times:?}");
    }
}
