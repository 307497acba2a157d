//! A call with G.711 over RTP, timed by the kernel's stamps of arrival.

use std::io;
use std::os::fd::OwnedFd;

use bufferscope_endpoint::datagram::{send_number, take};
use bufferscope_programs::{Probes, Speaker, Stage};
use bufferscope_records::Name;
use bufferscope_scenario::VoipTraffic;

use super::{DATAGRAM_BYTES, End, Opener, open_pair};
use crate::reactor::Event;
use crate::traffic::Desk;

/// One call.
#[derive(Debug)]
pub(in crate::traffic) struct Voip {
    index: usize,
    /// The sockets at `from` and at `to`.
    sockets: [OwnedFd; 2],
    /// The speech of `from`, and that of `to` if it speaks.
    streams: Vec<Speech>,
    payload: Vec<u8>,
    buffer: Vec<u8>,
}

#[derive(Debug)]
struct Speech {
    name: Name,
    speaker: Speaker,
    packets: Probes,
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
            let speaker = Speaker::new(entry.start_ns, entry.stop_ns, &mut random);
            let name = desk.recorder.intern(&format!("{}/{}", entry.name, number + 1));
            if let Some(at_ns) = speaker.next_ns() {
                desk.reactor.at(at_ns, Event::Send(index, number));
            }
            streams.push(Speech { name, speaker, packets: Probes::new(Stage::Far, VoipTraffic::TIMEOUT_NS) });
        }
        let payload = vec![0; VoipTraffic::PAYLOAD_BYTES as usize];
        Ok(Self { index, sockets, streams, payload, buffer: vec![0; DATAGRAM_BYTES] })
    }

    /// Sends the next packet of a stream.
    pub(super) fn send(&mut self, number: usize, desk: &mut Desk<'_>) -> io::Result<()> {
        let Some(stream) = self.streams.get_mut(number) else { return Ok(()) };
        let sent_ns = desk.now_ns();
        // A packet that the kernel does not accept is lost, like one that a queue does not accept.
        send_number(&self.sockets[number], stream.speaker.send().number, &mut self.payload)?;
        stream.packets.push(sent_ns);
        self.listen(number, desk)?;
        if let Some(at_ns) = self.streams[number].speaker.next_ns() {
            desk.reactor.at(at_ns, Event::Send(self.index, number as u32));
        }
        Ok(())
    }

    /// Packets with the speech of the other end have arrived at an end.
    pub(super) fn receive(&mut self, end: End, desk: &mut Desk<'_>) -> io::Result<()> {
        self.listen(usize::from(end == End::From), desk)
    }

    /// Reads the packets of a speaker that have arrived by now. Only after that may a missing packet count as lost,
    /// because this program may be late.
    fn listen(&mut self, speaker: usize, desk: &mut Desk<'_>) -> io::Result<()> {
        let Some(stream) = self.streams.get_mut(speaker) else { return Ok(()) };
        let now_ns = desk.now_ns();
        while let Some(received) = take(&self.sockets[1 - speaker], &mut self.buffer)? {
            stream.packets.see(received.number, Stage::Far, desk.arrival_ns(received.stamp_ns));
        }
        while let Some(outcome) = stream.packets.settled(now_ns) {
            desk.record_probe(stream.name, outcome);
        }
        Ok(())
    }

    /// The scenario is over. Packets that are sent from now on have no rows. A stream that had stopped resumes in order
    /// to send them.
    pub(super) fn end(&mut self, desk: &mut Desk<'_>) {
        for (number, stream) in (0..).zip(&mut self.streams) {
            stream.packets.end();
            if stream.packets.are_awaited() {
                let now_ns = desk.now_ns();
                stream.speaker.resume(now_ns);
                desk.reactor.at(now_ns, Event::Send(self.index, number));
            }
        }
    }

    /// Whether a packet that will have a row is still awaited.
    pub(super) fn is_waiting(&mut self, desk: &mut Desk<'_>) -> io::Result<bool> {
        (0..self.streams.len()).try_for_each(|speaker| self.listen(speaker, desk))?;
        Ok(self.streams.iter().any(|stream| stream.packets.are_awaited()))
    }

    /// When the last packet with a row times out.
    pub(super) fn times_out_ns(&self) -> Option<u64> {
        self.streams.iter().filter_map(|stream| stream.packets.last_timeout_ns()).max()
    }

    /// Gives up the packets that are still awaited.
    pub(super) fn give_up(&mut self, desk: &mut Desk<'_>) -> io::Result<()> {
        for speaker in 0..self.streams.len() {
            self.listen(speaker, desk)?;
            let stream = &mut self.streams[speaker];
            while let Some(outcome) = stream.packets.give_up() {
                desk.record_probe(stream.name, outcome);
            }
        }
        Ok(())
    }
}
