//! `netalyzr`: Netalyzr's test of the buffers on a path (Kreibich, Weaver, Nechaev, Paxson: "Netalyzr: illuminating the edge network",
//! IMC 2010, section 3.3).
//!
//! Small packets at a fixed interval first measure the mean round-trip time without load. Then a load fills the queues of
//! one direction: for each packet that returns, the client sends two more. For the direction from the server, the client
//! sends small packets that are answered with large ones; for the direction to the server, the reverse. The second half of
//! a load is measured: the rate at which answers arrive, and their mean round-trip time.
//!
//! Two details are not published. The rate of large packets, which Java limited to 20 Mbit/s in most implementations, is
//! limited here on average over 10 ms. A client that has received nothing for a second sends one more packet;
//! otherwise the loss of a few packets could end a load that has just begun.

use bufferscope_scenario::{End, NetalyzrTraffic};

use crate::datagrams::{Arrival, Datagram, DatagramSockets, Datagrams, OverUdp, Plans};
use crate::random::Uniform;

/// The time in which packets that the rate limit has held up may follow one another at once.
const BURST_NS: u64 = 10_000_000;
/// After this time without an answer, the client sends another packet to keep the load going.
const SILENCE_NS: u64 = 1_000_000_000;

/// A client and its server. Each stage is a stream; all of them belong to one flow.
#[derive(Debug)]
pub(crate) struct Netalyzr {
    test: NetalyzrTraffic,
    client: NetalyzrClient,
}

impl Netalyzr {
    /// The client does what is due, and plans when it continues.
    fn advance<U: Uniform, S: DatagramSockets>(
        &mut self,
        now_ns: u64,
        plans: &mut Plans<U>,
        sockets: &mut S,
    ) -> Result<(), S::Error> {
        plans.forget(|_, _| true);
        loop {
            match self.client.next(now_ns) {
                NetalyzrStep::Send(stage, packet) => {
                    sockets.send(End::From, stage as u32, packet)?;
                }
                NetalyzrStep::Estimated(estimate) => sockets.record_estimate(estimate)?,
                NetalyzrStep::Wait(at_ns) => {
                    plans.plan(at_ns, 0);
                    return Ok(());
                }
                NetalyzrStep::Finished => return Ok(()),
            }
        }
    }
}

impl OverUdp for Netalyzr {
    type Parameters = NetalyzrTraffic;
    type Programs = Self;

    fn programs<U: Uniform>(parameters: &NetalyzrTraffic, _spread_ns: u64, plans: &mut Plans<U>) -> Self {
        plans.plan(plans.start_ns, 0);
        let client = NetalyzrClient::new(parameters, plans.start_ns, plans.stop_ns);
        Self { test: parameters.clone(), client }
    }
}

impl Datagrams for Netalyzr {
    const AWAITS: bool = true;

    fn flows(&self) -> u32 {
        1
    }

    fn streams(&self) -> u32 {
        NetalyzrStage::ALL.len() as u32
    }

    fn on_task<U: Uniform, S: DatagramSockets>(
        &mut self,
        _: u64,
        now_ns: u64,
        plans: &mut Plans<U>,
        sockets: &mut S,
    ) -> Result<(), S::Error> {
        self.advance(now_ns, plans, sockets)
    }

    /// A packet has arrived at the server, or an answer at the client.
    fn on_arrival<U: Uniform, S: DatagramSockets>(
        &mut self,
        arrival: Arrival,
        plans: &mut Plans<U>,
        sockets: &mut S,
    ) -> Result<(), S::Error> {
        let Some(stage) = NetalyzrStage::of(arrival.stream) else { return Ok(()) };
        match arrival.at {
            End::To => {
                let answer = stage.answer(&self.test, arrival.number);
                sockets.send(End::To, arrival.stream, answer).map(|_| ())
            }
            End::From => {
                self.client.receive(stage, arrival.number, arrival.at_ns);
                self.advance(arrival.at_ns, plans, sockets)
            }
        }
    }

    fn bring_stop_forward<U: Uniform>(&mut self, stop_ns: u64, _: &mut Plans<U>) {
        self.client.bring_stop_forward(stop_ns);
    }

    fn finish<U: Uniform, S: DatagramSockets>(
        &mut self,
        plans: &mut Plans<U>,
        sockets: &mut S,
    ) -> Result<(), S::Error> {
        plans.forget(|_, _| true);
        self.client.close().map_or(Ok(()), |estimate| sockets.record_estimate(estimate))
    }
}

/// The stage that a packet belongs to. The client's packets carry it, so that the server knows the size of the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum NetalyzrStage {
    /// Measure the round-trip time without load.
    Idle = 0,
    /// Fill the queues on the path from the server.
    Down = 1,
    /// Fill the queues on the path to the server.
    Up = 2,
}

/// What the client observed under the load of one direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NetalyzrEstimate {
    /// [`NetalyzrStage::Down`] or [`NetalyzrStage::Up`].
    pub stage: NetalyzrStage,
    /// When the load began.
    pub started_ns: u64,
    /// Mean round-trip time without load; `None`: no packet was answered.
    pub idle_ns: Option<u64>,
    /// Mean round-trip time in the second half of the load; `None`: no answer arrived in it.
    pub loaded_ns: Option<u64>,
    /// Bits of payload of the large packets that made the round trip, per second of the second half of the load.
    pub rate_bps: u64,
    /// Packets that the client sent under load.
    pub sent: u64,
    /// Answers that arrived in the second half of the load.
    pub received: u64,
}

/// What the client does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NetalyzrStep {
    /// Send this packet, which is for this stage, and ask again.
    Send(NetalyzrStage, Datagram),
    /// A load is over. Ask again.
    Estimated(NetalyzrEstimate),
    /// Nothing before this time, unless an answer arrives.
    Wait(u64),
    /// The test is over.
    Finished,
}

/// The client. The number of a packet is the time at which it was sent, so the client need not remember its packets.
#[derive(Debug)]
struct NetalyzrClient {
    test: NetalyzrTraffic,
    start_ns: u64,
    stop_ns: u64,
    phase: Phase,
    idle: RoundTrips,
    load: Load,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Before the next small packet, whose number is this.
    Idle(u32),
    /// Before the load of a direction, or in it.
    Before(NetalyzrStage),
    Load(NetalyzrStage),
    Over,
}

/// The number of round trips, and the sum of their times.
#[derive(Clone, Copy, Debug, Default)]
struct RoundTrips {
    count: u64,
    sum_ns: u64,
}

/// The state of a load.
#[derive(Clone, Copy, Debug, Default)]
struct Load {
    from_ns: u64,
    sent: u64,
    /// Packets that the client may still send for the answers that it received.
    owed: u64,
    /// When the rate limit would let the next packet leave if packets left at equal intervals.
    due_ns: u64,
    /// When a packet was last sent or received.
    active_ns: u64,
    measured: RoundTrips,
}

impl NetalyzrClient {
    /// A client whose test begins at `start_ns`, and which sends nothing at or after `stop_ns`.
    fn new(test: &NetalyzrTraffic, start_ns: u64, stop_ns: u64) -> Self {
        let (idle, load) = (RoundTrips::default(), Load::default());
        Self { test: test.clone(), start_ns, stop_ns, phase: Phase::Idle(0), idle, load }
    }

    /// Stops at `stop_ns`, earlier than planned. A load that is cut short gives no estimate.
    fn bring_stop_forward(&mut self, stop_ns: u64) {
        self.stop_ns = stop_ns;
    }

    /// What to do now. To be asked at the start, at the time of the last [`NetalyzrStep::Wait`], and after each answer.
    #[inline]
    fn next(&mut self, now_ns: u64) -> NetalyzrStep {
        loop {
            let from_ns = match self.phase {
                Phase::Idle(number) if number < self.test.probes => {
                    self.start_ns + u64::from(number) * self.test.interval_ns
                }
                Phase::Idle(_) => {
                    self.phase = Phase::Before(NetalyzrStage::Down);
                    continue;
                }
                Phase::Before(stage) => self.begins_ns(stage),
                Phase::Load(stage) => match self.under_load(stage, now_ns) {
                    Some(step) => return step,
                    None => continue,
                },
                Phase::Over => return NetalyzrStep::Finished,
            };
            if from_ns >= self.stop_ns {
                self.phase = Phase::Over;
            } else if now_ns < from_ns {
                return NetalyzrStep::Wait(from_ns);
            } else if let Phase::Idle(number) = self.phase {
                self.phase = Phase::Idle(number + 1);
                return self.packet(NetalyzrStage::Idle, now_ns);
            } else if let Phase::Before(stage) = self.phase {
                self.load = Load { from_ns, owed: 1, due_ns: from_ns, active_ns: now_ns, ..Load::default() };
                self.phase = Phase::Load(stage);
            }
        }
    }

    /// The run is over. A load that lasted to the end has an estimate, too.
    fn close(&mut self) -> Option<NetalyzrEstimate> {
        let Phase::Load(stage) = self.phase else { return None };
        self.phase = Phase::Over;
        (self.load.from_ns + self.test.load_ns <= self.stop_ns).then(|| self.estimate(stage))
    }

    /// The answer to the packet with this number, which was for this stage, has arrived.
    #[inline]
    fn receive(&mut self, stage: NetalyzrStage, number: u64, now_ns: u64) {
        let took_ns = now_ns.saturating_sub(number);
        if stage == NetalyzrStage::Idle {
            self.idle.add(took_ns);
        } else if self.phase == Phase::Load(stage) && now_ns < self.load.from_ns + self.test.load_ns {
            if now_ns >= self.load.from_ns + self.test.load_ns / 2 {
                self.load.measured.add(took_ns);
            }
            self.load.owed = self.load.owed.saturating_add(2);
            self.load.active_ns = now_ns;
        }
    }

    #[inline]
    fn under_load(&mut self, stage: NetalyzrStage, now_ns: u64) -> Option<NetalyzrStep> {
        let until_ns = self.load.from_ns + self.test.load_ns;
        if now_ns >= until_ns {
            self.phase = if stage == NetalyzrStage::Down { Phase::Before(NetalyzrStage::Up) } else { Phase::Over };
            return Some(NetalyzrStep::Estimated(self.estimate(stage)));
        }
        if now_ns >= self.stop_ns {
            self.phase = Phase::Over;
            return None;
        }
        let load = &mut self.load;
        if load.owed == 0 && now_ns >= load.active_ns + SILENCE_NS {
            load.owed = 1;
        }
        let wait_ns = if load.owed == 0 {
            load.active_ns + SILENCE_NS
        } else if load.due_ns > now_ns + BURST_NS {
            load.due_ns - BURST_NS
        } else {
            load.owed -= 1;
            load.sent += 1;
            load.due_ns = load.due_ns.max(now_ns) + self.test.spacing_ns();
            load.active_ns = now_ns;
            return Some(self.packet(stage, now_ns));
        };
        Some(NetalyzrStep::Wait(wait_ns.min(until_ns).min(self.stop_ns)))
    }

    fn packet(&self, stage: NetalyzrStage, now_ns: u64) -> NetalyzrStep {
        let payload_bytes =
            if stage == NetalyzrStage::Up { self.test.payload_bytes } else { NetalyzrTraffic::SMALL_BYTES };
        NetalyzrStep::Send(stage, Datagram { number: now_ns, payload_bytes })
    }

    fn begins_ns(&self, stage: NetalyzrStage) -> u64 {
        let down_ns = self.start_ns + u64::from(self.test.probes) * self.test.interval_ns;
        if stage == NetalyzrStage::Up { down_ns + self.test.load_ns + self.test.pause_ns } else { down_ns }
    }

    fn estimate(&self, stage: NetalyzrStage) -> NetalyzrEstimate {
        let Load { from_ns, sent, measured, .. } = self.load;
        let bits = u128::from(measured.count) * u128::from(self.test.payload_bytes) * 8;
        let half_ns = u128::from(self.test.load_ns - self.test.load_ns / 2);
        NetalyzrEstimate {
            stage,
            started_ns: from_ns,
            idle_ns: self.idle.mean_ns(),
            loaded_ns: measured.mean_ns(),
            rate_bps: u64::try_from(bits * 1_000_000_000 / half_ns).unwrap_or(u64::MAX),
            sent,
            received: measured.count,
        }
    }
}

impl NetalyzrStage {
    /// Every stage.
    const ALL: [Self; 3] = [Self::Idle, Self::Down, Self::Up];

    /// The stage with this number; `None` if there is no such stage.
    fn of(number: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|stage| *stage as u32 == number)
    }

    /// The server's answer to a packet of this stage with this number.
    #[inline]
    fn answer(self, test: &NetalyzrTraffic, number: u64) -> Datagram {
        let payload_bytes = if self == Self::Down { test.payload_bytes } else { NetalyzrTraffic::SMALL_BYTES };
        Datagram { number, payload_bytes }
    }
}

impl RoundTrips {
    fn add(&mut self, took_ns: u64) {
        self.count += 1;
        self.sum_ns = self.sum_ns.saturating_add(took_ns);
    }

    fn mean_ns(&self) -> Option<u64> {
        self.sum_ns.checked_div(self.count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// Two probes 10 ms apart, loads of 1 s from 20 ms and from 1520 ms on, at most one packet of 1000 bytes per ms.
    fn client() -> NetalyzrClient {
        let test = NetalyzrTraffic {
            probes: 2,
            interval_ns: 10 * MS,
            load_ns: 1000 * MS,
            pause_ns: 500 * MS,
            payload_bytes: 1000,
            rate_bps: 8_000_000,
        };
        NetalyzrClient::new(&test, 0, u64::MAX)
    }

    /// All that the client sends at this time, and the step that ends it.
    fn steps(client: &mut NetalyzrClient, now_ns: u64) -> (Vec<(NetalyzrStage, Datagram)>, NetalyzrStep) {
        let mut sent = Vec::new();
        loop {
            match client.next(now_ns) {
                NetalyzrStep::Send(stage, datagram) => sent.push((stage, datagram)),
                step => return (sent, step),
            }
        }
    }

    #[test]
    fn a_test_begins_with_small_packets_at_the_interval() {
        let mut client = client();
        let probe = |number| (NetalyzrStage::Idle, Datagram { number, payload_bytes: 32 });
        assert_eq!(steps(&mut client, 0), (vec![probe(0)], NetalyzrStep::Wait(10 * MS)));
        client.receive(NetalyzrStage::Idle, 0, 4 * MS);
        assert_eq!(steps(&mut client, 4 * MS), (vec![], NetalyzrStep::Wait(10 * MS)));
        assert_eq!(steps(&mut client, 10 * MS), (vec![probe(10 * MS)], NetalyzrStep::Wait(20 * MS)));
        client.receive(NetalyzrStage::Idle, 10 * MS, 16 * MS);
        let first = (NetalyzrStage::Down, Datagram { number: 20 * MS, payload_bytes: 32 });
        assert_eq!(steps(&mut client, 20 * MS), (vec![first], NetalyzrStep::Wait(1020 * MS)));
        assert_eq!(client.idle.mean_ns(), Some(5 * MS), "(4 + 6) / 2");
    }

    #[test]
    fn each_answer_brings_two_packets_as_far_as_the_rate_allows() {
        let mut client = client();
        client.phase = Phase::Idle(2);
        let (sent, _) = steps(&mut client, 20 * MS);
        assert_eq!(sent.len(), 1);
        client.receive(NetalyzrStage::Down, 20 * MS, 24 * MS);
        assert_eq!(steps(&mut client, 24 * MS).0.len(), 2);
        // Thirty answers at once: 60 packets, of which the 10 ms of a burst and the one on time may leave.
        (0..30).for_each(|_| client.receive(NetalyzrStage::Down, 24 * MS, 30 * MS));
        let (sent, step) = steps(&mut client, 30 * MS);
        assert_eq!((sent.len(), step), (11, NetalyzrStep::Wait(31 * MS)));
        assert_eq!(steps(&mut client, 31 * MS).0.len(), 1);
    }

    #[test]
    fn the_second_half_of_a_load_is_measured_with_large_packets_in_its_direction() {
        let mut client = client();
        client.phase = Phase::Before(NetalyzrStage::Up);
        client.idle.add(5 * MS);
        let (sent, _) = steps(&mut client, 1520 * MS);
        assert_eq!(sent, [(NetalyzrStage::Up, Datagram { number: 1520 * MS, payload_bytes: 1000 })]);
        for (sent_ms, now_ms) in [(1520, 1990), (1600, 2020), (1700, 2120), (1800, 2519), (1900, 2520)] {
            client.receive(NetalyzrStage::Up, sent_ms * MS, now_ms * MS);
        }
        let (_, step) = steps(&mut client, 2520 * MS);
        // Three answers in [2020 ms, 2520 ms), after 420, 420 and 719 ms: 3 * 8000 bits in 0.5 s.
        let expected = NetalyzrEstimate {
            stage: NetalyzrStage::Up,
            started_ns: 1520 * MS,
            idle_ns: Some(5 * MS),
            loaded_ns: Some(1559 * MS / 3),
            rate_bps: 48_000,
            sent: 1,
            received: 3,
        };
        assert_eq!(step, NetalyzrStep::Estimated(expected));
        assert_eq!(client.next(2520 * MS), NetalyzrStep::Finished);
    }

    #[test]
    fn a_load_goes_on_after_a_second_of_silence() {
        let mut client = client();
        client.test.load_ns = 10_000 * MS;
        client.phase = Phase::Before(NetalyzrStage::Down);
        assert_eq!(steps(&mut client, 20 * MS).1, NetalyzrStep::Wait(1020 * MS));
        let (sent, step) = steps(&mut client, 1020 * MS);
        assert_eq!((sent.len(), step), (1, NetalyzrStep::Wait(2020 * MS)));
    }

    #[test]
    fn a_test_that_is_stopped_gives_no_estimate_of_the_load_that_it_cuts_short() {
        let mut client = client();
        client.phase = Phase::Before(NetalyzrStage::Down);
        steps(&mut client, 20 * MS);
        client.bring_stop_forward(500 * MS);
        client.receive(NetalyzrStage::Down, 20 * MS, 600 * MS);
        assert_eq!(client.next(600 * MS), NetalyzrStep::Finished);
    }

    #[test]
    fn a_load_that_lasts_to_the_end_is_reported_when_the_run_is_over() {
        for (stop_ms, is_told) in [(1020, true), (1019, false)] {
            let mut client = client();
            client.phase = Phase::Before(NetalyzrStage::Down);
            client.bring_stop_forward(stop_ms * MS);
            steps(&mut client, 20 * MS);
            client.receive(NetalyzrStage::Down, 20 * MS, 600 * MS);
            assert_eq!(client.close().map(|estimate| estimate.received), is_told.then_some(1));
            assert_eq!(client.next(1020 * MS), NetalyzrStep::Finished);
        }
    }

    #[test]
    fn only_requests_for_the_load_from_the_server_have_large_answers() {
        let client = client();
        let bytes = |number| NetalyzrStage::of(number).map(|stage| stage.answer(&client.test, 7).payload_bytes);
        assert_eq!([0, 1, 2, 3].map(bytes), [Some(32), Some(1000), Some(32), None]);
    }
}
