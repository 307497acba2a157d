//! A call with G.711 over RTP, or round trips over UDP, timed by the kernel's stamps of arrival.

use std::io;
use std::os::fd::OwnedFd;

use bufferscope_endpoint::datagram::{NUMBER_BYTES, send_number, take};
use bufferscope_programs::{self as programs, Probes, Stage};
use bufferscope_records::Name;
use bufferscope_scenario::{IrttTraffic, VoipTraffic};

use super::{DATAGRAM_BYTES, End, Opener, open_pair};
use crate::reactor::Event;
use crate::traffic::RunContext;

/// The senders of one entry of traffic.
#[derive(Debug)]
pub(in crate::traffic) struct Isochronous {
    index: usize,
    /// The sockets at `from` and at `to`.
    sockets: [OwnedFd; 2],
    /// That of `from`, and that of `to` if there is one.
    streams: Vec<Stream>,
    /// Whether `to` answers what `from` sends.
    answers: bool,
    payload: Vec<u8>,
    buffer: Vec<u8>,
}

#[derive(Debug)]
struct Stream {
    name: Name,
    sender: programs::Isochronous,
    packets: Probes,
}

impl Isochronous {
    /// Opens the two ends of a call and plans the first packets.
    pub(super) fn voip(
        index: usize,
        parameters: &VoipTraffic,
        opener: &mut Opener,
        context: &mut RunContext<'_>,
    ) -> io::Result<Self> {
        let entry = &context.scenario.traffic[index];
        let mut random = opener.random(index);
        let spread_ns = context.scenario.delay_spread_ns();
        let mut stream = |number| {
            let sender = programs::Isochronous::speaker(entry.start_ns, entry.stop_ns, &mut random);
            let name = context.recorder.intern(&format!("{}/{number}", entry.name));
            let packets = Probes::new(Stage::Far, VoipTraffic::TIMEOUT_NS).spread(spread_ns);
            Stream { name, sender, packets }
        };
        let streams = (1..=parameters.streams()).map(&mut stream).collect();
        Self::open(index, streams, VoipTraffic::PAYLOAD_BYTES, false, opener, context)
    }

    /// Opens the two ends of a round trip and plans the first request.
    pub(super) fn irtt(
        index: usize,
        parameters: &IrttTraffic,
        opener: &mut Opener,
        context: &mut RunContext<'_>,
    ) -> io::Result<Self> {
        let entry = &context.scenario.traffic[index];
        let sender = programs::Isochronous::irtt(parameters, entry.start_ns, entry.stop_ns, &mut opener.random(index));
        let name = context.recorder.intern(&entry.name);
        let packets = Probes::new(Stage::Back, parameters.timeout_ns).spread(context.scenario.delay_spread_ns());
        let stream = Stream { name, sender, packets };
        Self::open(index, vec![stream], parameters.payload_bytes, true, opener, context)
    }

    fn open(
        index: usize,
        streams: Vec<Stream>,
        payload_bytes: u32,
        answers: bool,
        opener: &mut Opener,
        context: &mut RunContext<'_>,
    ) -> io::Result<Self> {
        let sockets = open_pair(index, End::To, opener, context)?;
        for (number, stream) in (0..).zip(&streams) {
            if let Some(at_ns) = stream.sender.next_ns() {
                context.reactor.at(at_ns, Event::Send(index, number));
            }
        }
        let payload = vec![0; (payload_bytes as usize).max(NUMBER_BYTES)];
        Ok(Self { index, sockets, streams, answers, payload, buffer: vec![0; DATAGRAM_BYTES] })
    }

    /// Sends the next packet of a stream.
    pub(super) fn send(&mut self, number: usize, context: &mut RunContext<'_>) -> io::Result<()> {
        let Some(stream) = self.streams.get_mut(number) else { return Ok(()) };
        let sent_ns = context.now_ns();
        // A packet that the kernel does not accept is lost, like one that a queue does not accept.
        send_number(&self.sockets[number], stream.sender.send().number, &mut self.payload)?;
        stream.packets.push(sent_ns);
        self.listen(number, context)?;
        if let Some(at_ns) = self.streams[number].sender.next_ns() {
            context.reactor.at(at_ns, Event::Send(self.index, number as u32));
        }
        Ok(())
    }

    /// Packets have arrived at an end.
    pub(super) fn receive(&mut self, end: End, context: &mut RunContext<'_>) -> io::Result<()> {
        self.listen(if self.answers { 0 } else { usize::from(end == End::From) }, context)
    }

    /// Reads the packets of a sender that have arrived by now, and their answers if there are any. Only after that may
    /// a missing packet count as lost, because this program may be late.
    fn listen(&mut self, sender: usize, context: &mut RunContext<'_>) -> io::Result<()> {
        let Some(stream) = self.streams.get_mut(sender) else { return Ok(()) };
        let now_ns = context.now_ns();
        while let Some(received) = take(&self.sockets[1 - sender], &mut self.buffer)? {
            stream.packets.see(received.number, Stage::Far, context.arrival_ns(received.stamp_ns));
            if self.answers {
                // An answer that the kernel does not accept is lost, too.
                send_number(&self.sockets[1 - sender], received.number, &mut self.payload)?;
            }
        }
        while self.answers
            && let Some(received) = take(&self.sockets[sender], &mut self.buffer)?
        {
            stream.packets.see(received.number, Stage::Back, context.arrival_ns(received.stamp_ns));
        }
        while let Some(outcome) = stream.packets.settled(now_ns) {
            context.record_probe(stream.name, outcome);
        }
        Ok(())
    }

    /// The scenario is over. Packets that are sent from now on have no rows. A stream that had stopped resumes in order
    /// to send them.
    pub(super) fn end(&mut self, context: &mut RunContext<'_>) {
        for (number, stream) in (0..).zip(&mut self.streams) {
            stream.packets.end();
            if stream.packets.are_awaited() {
                let now_ns = context.now_ns();
                stream.sender.resume(now_ns);
                context.reactor.at(now_ns, Event::Send(self.index, number));
            }
        }
    }

    /// Whether a packet that will have a row is still awaited.
    pub(super) fn is_waiting(&mut self, context: &mut RunContext<'_>) -> io::Result<bool> {
        (0..self.streams.len()).try_for_each(|sender| self.listen(sender, context))?;
        Ok(self.streams.iter().any(|stream| stream.packets.are_awaited()))
    }

    /// When the last packet with a row times out.
    pub(super) fn times_out_ns(&self) -> Option<u64> {
        self.streams.iter().filter_map(|stream| stream.packets.last_timeout_ns()).max()
    }

    /// Gives up the packets that are still awaited.
    pub(super) fn give_up(&mut self, context: &mut RunContext<'_>) -> io::Result<()> {
        for sender in 0..self.streams.len() {
            self.listen(sender, context)?;
            let stream = &mut self.streams[sender];
            while let Some(outcome) = stream.packets.give_up() {
                context.record_probe(stream.name, outcome);
            }
        }
        Ok(())
    }
}
