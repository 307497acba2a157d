//! Senders of datagrams at a fixed interval, whether or not they arrive, and what becomes of their packets.
//!
//! Every packet has an outcome, in the order of sending. A packet counts as lost as soon as it or its answer is known to
//! be dropped, or when it takes longer than the timeout.

use bufferscope_scenario::End;

use crate::datagrams::{Arrival, Datagram, DatagramSockets, Datagrams, Plans};
use crate::iputils::TIMER_SLACK_NS;
use crate::probes::{Probes, Stage};
use crate::random::Uniform;

/// The senders of an entry of traffic, each with its stream of packets. A task is the next packet of the stream with that
/// index.
#[derive(Debug)]
pub(crate) struct Senders {
    streams: Vec<Stream>,
    /// Whether the packets are answered at once, with as many bytes.
    answered: bool,
}

#[derive(Debug)]
struct Stream {
    /// Where it sends.
    from: End,
    sender: Isochronous,
    packets: Probes,
}

/// What a sender sends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rhythm {
    /// Time between two packets.
    pub(crate) interval_ns: u64,
    /// UDP payload of each.
    pub(crate) payload_bytes: u32,
    /// A packet that takes longer is lost.
    pub(crate) timeout_ns: u64,
}

/// A sender at a fixed interval.
#[derive(Debug)]
struct Isochronous {
    interval_ns: u64,
    payload_bytes: u32,
    start_ns: u64,
    stop_ns: u64,
    sent: u64,
}

impl Senders {
    /// One-way streams, one from each of these ends.
    pub(crate) fn one_way<U: Uniform>(streams: &[(End, Rhythm)], spread_ns: u64, plans: &mut Plans<U>) -> Self {
        let stream = |&(from, rhythm): &(End, Rhythm)| Stream::new(from, rhythm, Stage::Far, spread_ns, plans);
        let streams = streams.iter().map(stream).collect();
        Self::new(streams, false, plans)
    }

    /// Requests from `from`, and their answers.
    pub(crate) fn round_trips<U: Uniform>(rhythm: Rhythm, spread_ns: u64, plans: &mut Plans<U>) -> Self {
        let stream = Stream::new(End::From, rhythm, Stage::Back, spread_ns, plans);
        Self::new(vec![stream], true, plans)
    }

    fn new<U: Uniform>(streams: Vec<Stream>, answered: bool, plans: &mut Plans<U>) -> Self {
        let senders = Self { streams, answered };
        (0..senders.streams.len()).for_each(|stream| senders.plan(stream, 0, plans));
        senders
    }

    /// The flow of a stream's outcomes. Round trips are those of the entry.
    fn flow(&self, stream: usize) -> Option<u32> {
        (!self.answered).then_some(stream as u32)
    }

    fn plan<U: Uniform>(&self, stream: usize, now_ns: u64, plans: &mut Plans<U>) {
        if let Some(nominal_ns) = self.streams[stream].sender.next_ns() {
            plans.plan_wake(nominal_ns, TIMER_SLACK_NS, now_ns, stream as u64);
        }
    }
}

impl Datagrams for Senders {
    const AWAITS: bool = true;

    fn flows(&self) -> u32 {
        self.streams.len() as u32
    }

    fn on_task<U: Uniform, S: DatagramSockets>(
        &mut self,
        task: u64,
        now_ns: u64,
        plans: &mut Plans<U>,
        sockets: &mut S,
    ) -> Result<(), S::Error> {
        let stream = &mut self.streams[task as usize];
        stream.packets.push(now_ns);
        // A packet that the host does not accept is lost, like one that a queue does not accept.
        sockets.send(stream.from, task as u32, stream.sender.send())?;
        self.plan(task as usize, now_ns, plans);
        Ok(())
    }

    fn on_arrival<U: Uniform, S: DatagramSockets>(
        &mut self,
        arrival: Arrival,
        _: &mut Plans<U>,
        sockets: &mut S,
    ) -> Result<(), S::Error> {
        let Arrival { at, stream: index, number, at_ns } = arrival;
        let Some(stream) = self.streams.get_mut(index as usize) else { return Ok(()) };
        if at != stream.from {
            stream.packets.see(number, Stage::Far, at_ns);
            if self.answered {
                // An answer that the host does not accept is lost, too.
                let answer = Datagram { number, payload_bytes: stream.sender.payload_bytes };
                sockets.send(at, index, answer)?;
            }
        } else if self.answered {
            stream.packets.see(number, Stage::Back, at_ns);
        }
        Ok(())
    }

    fn on_loss(&mut self, stream: u32, number: u64) {
        self.streams[stream as usize].packets.lose(number);
    }

    fn settle<S: DatagramSockets>(&mut self, now_ns: u64, sockets: &mut S) -> Result<(), S::Error> {
        for index in 0..self.streams.len() {
            while let Some(outcome) = self.streams[index].packets.settled(now_ns) {
                sockets.record_probe(self.flow(index), outcome)?;
            }
        }
        Ok(())
    }

    fn bring_stop_forward<U: Uniform>(&mut self, stop_ns: u64, plans: &mut Plans<U>) {
        self.streams.iter_mut().for_each(|stream| stream.sender.stop_ns = stop_ns);
        plans.forget(|at_ns, _| at_ns >= stop_ns);
    }

    fn first_timeout_ns(&self) -> Option<u64> {
        self.streams.iter().filter_map(|stream| stream.packets.first_timeout_ns()).min()
    }

    fn last_timeout_ns(&self) -> Option<u64> {
        self.streams.iter().filter_map(|stream| stream.packets.last_timeout_ns()).max()
    }

    fn is_waiting(&self) -> bool {
        self.streams.iter().any(|stream| stream.packets.are_awaited())
    }

    /// Packets that are sent from now on have no outcomes. A stream that had stopped resumes in order to send them.
    fn resume<U: Uniform>(&mut self, now_ns: u64, plans: &mut Plans<U>) {
        plans.forget(|_, _| true);
        for (index, stream) in (0..).zip(&mut self.streams) {
            stream.packets.end();
            if stream.packets.are_awaited() {
                stream.sender.resume(now_ns);
                plans.plan(now_ns, index);
            }
        }
        plans.stop_ns = u64::MAX;
    }

    fn give_up<S: DatagramSockets>(&mut self, sockets: &mut S) -> Result<(), S::Error> {
        for index in 0..self.streams.len() {
            while let Some(outcome) = self.streams[index].packets.give_up() {
                sockets.record_probe(self.flow(index), outcome)?;
            }
        }
        Ok(())
    }
}

impl Stream {
    fn new<U: Uniform>(from: End, rhythm: Rhythm, last: Stage, spread_ns: u64, plans: &mut Plans<U>) -> Self {
        let times_ns = [plans.start_ns, plans.stop_ns];
        let sender = Isochronous::new(rhythm, times_ns, &mut plans.random);
        Self { from, sender, packets: Probes::new(last, rhythm.timeout_ns).spread(spread_ns) }
    }
}

impl Isochronous {
    /// Two senders are not in phase with each other, or with anything else.
    fn new(rhythm: Rhythm, [start_ns, stop_ns]: [u64; 2], random: &mut impl Uniform) -> Self {
        let Rhythm { interval_ns, payload_bytes, .. } = rhythm;
        let start_ns = start_ns + random.below(interval_ns);
        Self { interval_ns, payload_bytes, start_ns, stop_ns, sent: 0 }
    }

    /// When the next packet leaves; `None`: the sender has stopped.
    fn next_ns(&self) -> Option<u64> {
        let next_ns = self.start_ns.saturating_add(self.sent.saturating_mul(self.interval_ns));
        (next_ns < self.stop_ns).then_some(next_ns)
    }

    /// The next packet leaves.
    fn send(&mut self) -> Datagram {
        let number = self.sent;
        self.sent += 1;
        Datagram { number, payload_bytes: self.payload_bytes }
    }

    /// From now on, sends without end.
    fn resume(&mut self, now_ns: u64) {
        self.start_ns = now_ns.saturating_sub(self.sent * self.interval_ns);
        self.stop_ns = u64::MAX;
    }
}

#[cfg(test)]
mod tests {
    use bufferscope_scenario::VoipTraffic;

    use super::*;
    use crate::random::Random;

    const MS: u64 = 1_000_000;

    #[test]
    fn a_speaker_sends_every_20_ms_until_it_stops_and_goes_on_when_it_resumes() {
        let (interval_ns, payload_bytes) = (VoipTraffic::INTERVAL_NS, VoipTraffic::PAYLOAD_BYTES);
        let speech = Rhythm { interval_ns, payload_bytes, timeout_ns: VoipTraffic::TIMEOUT_NS };
        let mut speaker = Isochronous::new(speech, [1000 * MS, 1050 * MS], &mut Random::new(1, 0));
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
        let rhythm = Rhythm { interval_ns: 200 * MS, payload_bytes: 60, timeout_ns: 1000 * MS };
        let mut first_times = std::collections::BTreeSet::new();
        for seed in 0..8 {
            let mut prober = Isochronous::new(rhythm, [500 * MS, 2500 * MS], &mut Random::new(seed, 0));
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
