//! `udp`: flows that send at a given rate, whether or not their datagrams arrive, as `iperf3 -u` does.
//!
//! The receiver counts by sequence number: a datagram is lost if it is missing and one with a higher number has arrived
//! (RFC 3550, section A.3; iperf3 counts the same way). If datagrams are dropped and none with a higher number arrives,
//! the receiver cannot notice; they count as in flight.

use bufferscope_scenario::{Departures, End, UdpTraffic};

use crate::datagrams::{Arrival, Counted, Datagram, DatagramSockets, Datagrams, OverUdp, Plans};
use crate::iputils::TIMER_SLACK_NS;
use crate::random::Uniform;
use crate::starts::START_JITTER_NS;

/// The flows of an entry of traffic. A task is the next datagram of the flow with that index.
#[derive(Debug)]
pub(crate) struct Udp {
    payload_bytes: u32,
    flows: Vec<Flow>,
    /// The longest delay between a datagram's planned time and its departure. These delays do not accumulate.
    slack_ns: u64,
}

#[derive(Debug)]
struct Flow {
    sender: UdpSender,
    receiver: UdpReceiver,
}

impl Udp {
    fn plan<U: Uniform>(&mut self, flow: u64, now_ns: u64, plans: &mut Plans<U>) {
        let next_ns = self.flows[flow as usize].sender.plan(&mut plans.random);
        if let Some(nominal_ns) = next_ns {
            plans.plan_wake(nominal_ns, self.slack_ns, now_ns, flow);
        }
    }
}

impl OverUdp for Udp {
    type Parameters = UdpTraffic;
    type Programs = Self;

    const PUNCTUAL: bool = true;

    fn programs<U: Uniform>(parameters: &UdpTraffic, _spread_ns: u64, plans: &mut Plans<U>) -> Self {
        let mut flow = |_| {
            let sender = UdpSender::new(parameters, plans.start_ns, plans.stop_ns, &mut plans.random);
            Flow { sender, receiver: UdpReceiver::default() }
        };
        let flows: Vec<Flow> = (0..parameters.flows).map(&mut flow).collect();
        let slack_ns = parameters.phase_ns().min(TIMER_SLACK_NS);
        let mut udp = Self { payload_bytes: parameters.payload_bytes, flows, slack_ns };
        (0..parameters.flows.into()).for_each(|flow| udp.plan(flow, 0, plans));
        udp
    }
}

impl Datagrams for Udp {
    const AWAITS: bool = false;

    fn flows(&self) -> u32 {
        self.flows.len() as u32
    }

    fn clients(&self) -> u32 {
        self.flows()
    }

    fn on_task<U: Uniform, S: DatagramSockets>(
        &mut self,
        task: u64,
        now_ns: u64,
        plans: &mut Plans<U>,
        sockets: &mut S,
    ) -> Result<(), S::Error> {
        let sender = &mut self.flows[task as usize].sender;
        if sockets.send(End::From, task as u32, sender.next())? {
            sender.has_left();
        }
        self.plan(task, now_ns, plans);
        Ok(())
    }

    #[inline]
    fn on_arrival<U: Uniform, S: DatagramSockets>(
        &mut self,
        arrival: Arrival,
        _: &mut Plans<U>,
        _: &mut S,
    ) -> Result<(), S::Error> {
        if let Some(flow) = self.flows.get_mut(arrival.stream as usize)
            && arrival.number < flow.sender.sent()
        {
            flow.receiver.receive(arrival.number);
        }
        Ok(())
    }

    fn bring_stop_forward<U: Uniform>(&mut self, stop_ns: u64, plans: &mut Plans<U>) {
        self.flows.iter_mut().for_each(|flow| flow.sender.bring_stop_forward(stop_ns));
        plans.forget(|at_ns, _| at_ns >= stop_ns);
    }

    fn counted(&self, flow: u32) -> Option<Counted> {
        let Flow { sender, receiver: UdpReceiver { received, expected } } = &self.flows[flow as usize];
        let sent = sender.sent();
        let counted = Counted { payload_bytes: self.payload_bytes, sent, expected: *expected, received: *received };
        (sent > 0).then_some(counted)
    }
}

/// The sender of one flow.
#[derive(Debug)]
struct UdpSender {
    payload_bytes: u32,
    departures: Departures,
    sent: u64,
}

/// The receiver of one flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct UdpReceiver {
    /// Datagrams that have arrived.
    received: u64,
    /// The highest number that has arrived, plus one.
    expected: u64,
}

impl UdpSender {
    /// A sender that begins some time after `start_ns` and sends nothing at or after `stop_ns`. Flows that start
    /// together are not in phase with one another.
    fn new(parameters: &UdpTraffic, start_ns: u64, stop_ns: u64, random: &mut impl Uniform) -> Self {
        let offset_ns = random.below(START_JITTER_NS.max(parameters.phase_ns()));
        Self {
            payload_bytes: parameters.payload_bytes,
            departures: parameters.departures(start_ns + offset_ns, stop_ns),
            sent: 0,
        }
    }

    /// Stops at `stop_ns`, earlier than planned.
    fn bring_stop_forward(&mut self, stop_ns: u64) {
        self.departures.bring_stop_forward(stop_ns);
    }

    /// Chooses when the next datagram leaves; `None`: the flow has stopped.
    fn plan(&mut self, random: &mut impl Uniform) -> Option<u64> {
        self.departures.next(&mut || random.bits())
    }

    /// The next datagram.
    #[inline]
    fn next(&self) -> Datagram {
        Datagram { number: self.sent, payload_bytes: self.payload_bytes }
    }

    /// The next datagram has left.
    #[inline]
    fn has_left(&mut self) {
        self.sent += 1;
    }

    /// Datagrams sent so far.
    #[inline]
    fn sent(&self) -> u64 {
        self.sent
    }
}

impl UdpReceiver {
    /// A datagram with this number has arrived.
    #[inline]
    fn receive(&mut self, number: u64) {
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
