//! A call with G.711 over RTP. Each side that speaks sends a packet every 20 ms, without silence suppression.
//!
//! [`Probes`](crate::Probes) keep track of the packets.

use bufferscope_scenario::VoipTraffic;

use crate::datagram::Datagram;
use crate::random::Uniform;

/// One side of a call that speaks.
#[derive(Debug)]
pub struct Speaker {
    start_ns: u64,
    stop_ns: u64,
    sent: u64,
}

impl Speaker {
    /// Speaks from `start_ns` to `stop_ns`. Two telephones are not in phase with each other, or with anything else.
    pub fn new(start_ns: u64, stop_ns: u64, random: &mut impl Uniform) -> Self {
        Self { start_ns: start_ns + random.below(VoipTraffic::INTERVAL_NS), stop_ns, sent: 0 }
    }

    /// Stops at `stop_ns`, earlier than planned.
    pub fn bring_stop_forward(&mut self, stop_ns: u64) {
        self.stop_ns = stop_ns;
    }

    /// When the next packet leaves; `None`: the speaker has stopped.
    pub fn next_ns(&self) -> Option<u64> {
        let next_ns = self.start_ns + self.sent * VoipTraffic::INTERVAL_NS;
        (next_ns < self.stop_ns).then_some(next_ns)
    }

    /// The next packet leaves.
    pub fn send(&mut self) -> Datagram {
        let number = self.sent;
        self.sent += 1;
        Datagram { number, payload_bytes: VoipTraffic::PAYLOAD_BYTES }
    }

    /// From now on, speaks without end.
    pub fn resume(&mut self, now_ns: u64) {
        self.start_ns = now_ns.saturating_sub(self.sent * VoipTraffic::INTERVAL_NS);
        self.stop_ns = u64::MAX;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    const MS: u64 = 1_000_000;

    #[test]
    fn it_speaks_every_20_ms_until_it_stops_and_goes_on_when_it_resumes() {
        let mut speaker = Speaker::new(1000 * MS, 1050 * MS, &mut Random::new(1, 0));
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
}
