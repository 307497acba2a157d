//! Datagrams at a rate. If datagrams become due while this program does something else, they are sent together as soon
//! as possible, as iperf3 does. This keeps the average rate. If many are late, this is reported.

use std::io;
use std::os::fd::OwnedFd;

use bufferscope_endpoint::datagram::{NUMBER_BYTES, send_number, take};
use bufferscope_endpoint::socket;
use bufferscope_programs::{Random, UdpReceiver, UdpSender};
use bufferscope_records::{Datagrams, FlowRow, Name};
use bufferscope_scenario::UdpTraffic;
use nix::sys::epoll::EpollFlags;

use super::{AT_ONCE, DATAGRAM_BYTES, Opener, address};
use crate::reactor::{Event, Token};
use crate::traffic::RunContext;

/// A datagram that leaves later than this counts as late. The time is much longer than a timer's wake-up takes.
const LATE_NS: u64 = 1_000_000;
/// At most one in this many may be late.
const LATE_ONE_IN: u64 = 100;

/// The flows of one entry of traffic.
#[derive(Debug)]
pub(in crate::traffic) struct Udp {
    index: usize,
    flows: Vec<Flow>,
    /// The socket at which all flows arrive. A datagram's number identifies its flow, because each flow counts in steps
    /// of the number of flows.
    receiver: OwnedFd,
    random: Random,
    payload: Vec<u8>,
    buffer: Vec<u8>,
    /// Datagrams that left late, and those that the kernel did not accept.
    late: u64,
    refused: u64,
}

#[derive(Debug)]
struct Flow {
    name: Name,
    socket: OwnedFd,
    sender: UdpSender,
    receiver: UdpReceiver,
}

impl Udp {
    /// Opens the sockets and plans the first datagrams.
    pub(super) fn open(
        index: usize,
        parameters: &UdpTraffic,
        opener: &mut Opener,
        context: &mut RunContext<'_>,
    ) -> io::Result<Self> {
        let entry = &context.scenario.traffic[index];
        let [from, to] = [entry.from, entry.to].map(usize::from);
        let address = address(index, to, context);
        context.network.namespaces[to].enter()?;
        let receiver = socket::udp(address, None, entry.dscp)?;
        context.reactor.watch(&receiver, EpollFlags::EPOLLIN, Token::DatagramsAtTo(index as u32))?;
        let mut random = opener.random(index);
        let mut flows = Vec::new();
        for number in 0..parameters.flows {
            let socket = opener.sender(from, address, entry.dscp, context)?;
            let name = context.recorder.intern(&format!("{}/{}", entry.name, number + 1));
            let mut sender = UdpSender::new(parameters, entry.start_ns, entry.stop_ns, &mut random);
            if let Some(at_ns) = sender.plan(&mut random) {
                context.reactor.at(at_ns, Event::Send(index, number));
            }
            flows.push(Flow { name, socket, sender, receiver: UdpReceiver::default() });
        }
        Ok(Self {
            index,
            flows,
            receiver,
            random,
            payload: vec![0; (parameters.payload_bytes as usize).max(NUMBER_BYTES)],
            buffer: vec![0; DATAGRAM_BYTES],
            late: 0,
            refused: 0,
        })
    }

    /// Sends the datagrams of a flow that are due by now, and plans the next one.
    pub(super) fn send(&mut self, number: u32, context: &mut RunContext<'_>) -> io::Result<()> {
        let stride = self.flows.len() as u64;
        let Some(flow) = self.flows.get_mut(number as usize) else { return Ok(()) };
        for _ in 0..AT_ONCE {
            let now_ns = context.now_ns();
            let Some(at_ns) = flow.sender.next_ns().filter(|&at_ns| at_ns <= now_ns) else { break };
            let own_number = flow.sender.next().number;
            if send_number(&flow.socket, own_number * stride + u64::from(number), &mut self.payload)? {
                flow.sender.has_left();
                self.late += u64::from(now_ns - at_ns > LATE_NS);
            } else {
                self.refused += 1;
            }
            flow.sender.plan(&mut self.random);
        }
        if let Some(at_ns) = flow.sender.next_ns() {
            context.reactor.at(at_ns, Event::Send(self.index, number));
        }
        Ok(())
    }

    /// Counts the datagrams that have arrived.
    pub(super) fn receive(&mut self) -> io::Result<()> {
        let stride = self.flows.len() as u64;
        for _ in 0..AT_ONCE {
            let Some(received) = take(&self.receiver, &mut self.buffer)? else { break };
            let Some(flow) = received.number.checked_rem(stride).and_then(|flow| self.flows.get_mut(flow as usize))
            else {
                continue;
            };
            let number = received.number / stride;
            if number < flow.sender.sent() && received.bytes == self.payload.len() {
                flow.receiver.receive(number);
            }
        }
        Ok(())
    }

    /// Records a sample of every flow that has begun.
    pub(super) fn sample(&self, context: &mut RunContext<'_>) {
        let (t_ns, payload_bytes) = (context.now_ns(), self.payload.len() as u64);
        for flow in self.flows.iter().filter(|flow| flow.sender.sent() > 0) {
            let UdpReceiver { received, expected } = flow.receiver;
            let datagrams = Datagrams { payload_bytes, sent: flow.sender.sent(), expected, received };
            context.recorder.flow(FlowRow::of_datagrams(t_ns, flow.name, datagrams));
        }
    }

    /// The scenario is over. Reports how this machine has disturbed the traffic.
    pub(super) fn end(&mut self, context: &mut RunContext<'_>) -> io::Result<()> {
        let name = &context.scenario.traffic[self.index].name;
        let missed = socket::datagrams_missed(&self.receiver)?;
        if missed > 0 {
            context.warnings.add(format!("{missed} datagrams of `{name}` arrived faster than this machine read them"));
        }
        if self.refused > 0 {
            let refused = self.refused;
            context
                .warnings
                .add(format!("{refused} datagrams of `{name}` were not sent: the socket's buffer was full"));
        }
        let sent: u64 = self.flows.iter().map(|flow| flow.sender.sent()).sum();
        if self.late > sent / LATE_ONE_IN {
            let late = self.late;
            context.warnings.add(format!("{late} of {sent} datagrams of `{name}` left more than a millisecond late"));
        }
        Ok(())
    }
}
