//! A call with G.711 over RTP, timed by the kernel's stamps of arrival.

use std::collections::VecDeque;
use std::io;
use std::os::fd::OwnedFd;

use bufferscope_records::{Name, ProbeRow};
use bufferscope_scenario::VoipTraffic;

use super::{AT_ONCE, DATAGRAM_BYTES, End, Opener, open_pair, send_number, take};
use crate::reactor::Event;
use crate::traffic::Desk;

/// One call.
#[derive(Debug)]
pub(in crate::traffic) struct Voip {
    index: usize,
    /// At `from` and at `to`.
    sockets: [OwnedFd; 2],
    /// What `from` says, and what `to` says if it speaks.
    streams: Vec<Speech>,
    payload: Vec<u8>,
    buffer: Vec<u8>,
}

#[derive(Debug)]
struct Speech {
    name: Name,
    start_ns: u64,
    /// Number of the next packet.
    next: u64,
    /// Number of the first packet of `awaited`.
    first: u64,
    /// Packets without a row yet: rows come in the order of sending.
    awaited: VecDeque<Packet>,
    /// Packets from this number on are sent only to see earlier ones overtaken, and have no rows.
    recorded: u64,
    /// The latest packet that has arrived.
    latest: Option<u64>,
}

#[derive(Clone, Copy, Debug)]
struct Packet {
    sent_ns: u64,
    arrived_ns: Option<u64>,
}

impl Voip {
    /// Opens the two ends and plans the first packets.
    pub(super) fn open(
        index: usize,
        parameters: &VoipTraffic,
        opener: &mut Opener,
        desk: &mut Desk<'_>,
    ) -> io::Result<Self> {
        let sockets = open_pair(index, End::To, opener, desk)?;
        let entry = &desk.scenario.traffic[index];
        let mut random = opener.random(index);
        let mut streams = Vec::new();
        for number in 0..parameters.streams() {
            // Two telephones have nothing that would keep them, or anything else, in phase.
            let start_ns = entry.start_ns + random.below(VoipTraffic::INTERVAL_NS);
            let name = desk.recorder.intern(&format!("{}/{}", entry.name, number + 1));
            if start_ns < entry.stop_ns {
                desk.reactor.at(start_ns, Event::Send(index, number));
            }
            streams.push(Speech {
                name,
                start_ns,
                next: 0,
                first: 0,
                awaited: VecDeque::new(),
                recorded: u64::MAX,
                latest: None,
            });
        }
        let payload = vec![0; VoipTraffic::PAYLOAD_BYTES as usize];
        Ok(Self { index, sockets, streams, payload, buffer: vec![0; DATAGRAM_BYTES] })
    }

    /// Sends the next packet of a stream.
    pub(super) fn send(&mut self, number: usize, desk: &mut Desk<'_>) -> io::Result<()> {
        let Some(stream) = self.streams.get_mut(number) else { return Ok(()) };
        let sent_ns = desk.now_ns();
        // What the kernel does not take is lost like what a queue does not.
        send_number(&self.sockets[number], stream.next, &mut self.payload)?;
        stream.awaited.push_back(Packet { sent_ns, arrived_ns: None });
        stream.next += 1;
        stream.settle(desk);
        let next_ns = stream.start_ns + stream.next * VoipTraffic::INTERVAL_NS;
        let is_over = stream.recorded < u64::MAX;
        if is_over || next_ns < desk.scenario.traffic[self.index].stop_ns {
            desk.reactor.at(next_ns, Event::Send(self.index, number as u32));
        }
        Ok(())
    }

    /// Packets have arrived at an end: what the other end says.
    pub(super) fn receive(&mut self, end: End, desk: &mut Desk<'_>) -> io::Result<()> {
        let (socket, speaker) = match end {
            End::From => (&self.sockets[0], 1),
            End::To => (&self.sockets[1], 0),
        };
        let Some(stream) = self.streams.get_mut(speaker) else { return Ok(()) };
        for _ in 0..AT_ONCE {
            let Some(received) = take(socket, &mut self.buffer, desk)? else { break };
            stream.arrived(received.number, received.at_ns);
        }
        stream.settle(desk);
        Ok(())
    }

    /// The scenario is over: what is sent from now on has no rows. A stream that had stopped goes on for that.
    pub(super) fn end(&mut self, desk: &mut Desk<'_>) {
        for (number, stream) in (0..).zip(&mut self.streams) {
            stream.recorded = stream.next;
            if stream.first < stream.next {
                let now_ns = desk.now_ns();
                stream.start_ns = now_ns.saturating_sub(stream.next * VoipTraffic::INTERVAL_NS);
                desk.reactor.at(now_ns, Event::Send(self.index, number));
            }
        }
    }

    /// Whether a packet that will have a row is still awaited. Once the scenario is over, a packet that a later one has overtaken
    /// is lost: none of the queueing disciplines reorders within a flow.
    pub(super) fn is_waiting(&mut self, desk: &mut Desk<'_>) -> bool {
        for stream in &mut self.streams {
            let overtaken = stream.latest.map_or(0, |latest| latest.min(stream.recorded));
            while stream.first < overtaken {
                stream.conclude(desk);
            }
            stream.settle(desk);
        }
        self.streams.iter().any(|stream| stream.first < stream.recorded)
    }

    /// When the last packet with a row times out.
    pub(super) fn times_out_ns(&self) -> Option<u64> {
        let last_ns = self.streams.iter().filter_map(|stream| Some(stream.awaited.back()?.sent_ns)).max()?;
        Some(last_ns + VoipTraffic::TIMEOUT_NS)
    }

    /// Gives up what is still awaited.
    pub(super) fn give_up(&mut self, desk: &mut Desk<'_>) {
        for stream in &mut self.streams {
            while stream.first < stream.recorded.min(stream.next) {
                stream.conclude(desk);
            }
        }
    }
}

impl Speech {
    fn arrived(&mut self, number: u64, at_ns: u64) {
        if number >= self.next {
            return;
        }
        self.latest = self.latest.max(Some(number));
        let place = number.checked_sub(self.first).and_then(|place| usize::try_from(place).ok());
        if let Some(packet) = place.and_then(|place| self.awaited.get_mut(place)) {
            packet.arrived_ns.get_or_insert(at_ns);
        }
    }

    /// Writes the rows of the oldest packets, as far as their fate is known.
    fn settle(&mut self, desk: &mut Desk<'_>) {
        let now_ns = desk.now_ns();
        while let Some(packet) = self.awaited.front() {
            if packet.arrived_ns.is_none() && now_ns < packet.sent_ns + VoipTraffic::TIMEOUT_NS {
                break;
            }
            self.conclude(desk);
        }
    }

    fn conclude(&mut self, desk: &mut Desk<'_>) {
        let Some(packet) = self.awaited.pop_front() else { return };
        let seq = self.first;
        self.first += 1;
        if seq >= self.recorded {
            return;
        }
        let took_ns = packet.arrived_ns.map(|at_ns| at_ns.saturating_sub(packet.sent_ns));
        desk.recorder.probe(ProbeRow {
            probe: self.name,
            seq,
            sent_ns: packet.sent_ns,
            rtt_ns: None,
            owd_up_ns: took_ns.filter(|&took_ns| took_ns < VoipTraffic::TIMEOUT_NS),
            owd_down_ns: None,
        });
    }
}
