//! Recognises pairs of files with one direction each, as `tcpdump -Q in` and `-Q out` or a tap with two ports write
//! them.
//!
//! They are recognised by their first packets. Their times are assumed to come from one clock. This is refuted if an
//! acknowledgement precedes the data that it acknowledges.

use std::collections::HashMap;
use std::io::Cursor;

use crate::decode::{Decoded, Transport, decode};
use crate::file::Reader;
use crate::{Endpoint, Flags};

/// Maximum number of packets that are read at the beginning of a file.
const MOST_PACKETS: usize = 4096;

/// The segments of one direction of a connection, in the order of the file.
#[derive(Debug, Default)]
struct Sent {
    /// Times, the sequence number behind each segment, and the acknowledgement if it has one.
    segments: Vec<(i64, u32, Option<u32>)>,
}

/// The directions of connections at the beginning of a file.
#[derive(Debug, Default)]
pub(super) struct Directions(HashMap<[Endpoint; 2], Sent>);

impl Directions {
    /// Reads the start of a file, which may be cut off anywhere.
    pub(super) fn of(start: &[u8]) -> Self {
        let mut directions = Self::default();
        let Ok(mut reader) = Reader::open(Cursor::new(start.to_vec())) else { return directions };
        for _ in 0..MOST_PACKETS {
            let Ok(true) = reader.advance() else { break };
            let packet = reader.packet();
            let link_type = reader.interfaces()[packet.interface].link_type;
            if let (Some(t_ns), Ok(decoded)) = (packet.t_ns, decode(link_type, packet.data, packet.wire_bytes)) {
                directions.add(t_ns, &decoded);
            }
        }
        directions
    }

    fn add(&mut self, t_ns: i64, packet: &Decoded) {
        let (ports, segment) = match packet.transport {
            Transport::Tcp(tcp) => {
                let takes = u32::from(tcp.flags.has(Flags::SYN)) + u32::from(tcp.flags.has(Flags::FIN));
                let end = tcp.seq.wrapping_add(tcp.payload_bytes).wrapping_add(takes);
                ([tcp.from_port, tcp.to_port], (t_ns, end, tcp.flags.has(Flags::ACK).then_some(tcp.ack)))
            }
            // A reply acknowledges its request.
            Transport::Echo(echo) => {
                let seq = u32::from(echo.seq);
                ([echo.id; 2], (t_ns, seq, echo.is_reply.then_some(seq)))
            }
            Transport::Udp { .. } | Transport::Other => return,
        };
        let from = Endpoint { address: packet.from, port: ports[0] };
        let to = Endpoint { address: packet.to, port: ports[1] };
        self.0.entry([from, to]).or_default().segments.push(segment);
    }

    fn has(&self, [from, to]: [Endpoint; 2]) -> bool {
        self.0.contains_key(&[from, to])
    }

    /// Whether no connection has both of its directions in this file.
    fn is_one_way(&self) -> bool {
        !self.0.is_empty() && self.0.keys().all(|&[from, to]| !self.has([to, from]))
    }
}

/// The two files that have one direction each of the same connections; `None`: there are none, or more than two.
pub(super) fn complement(files: &[Directions]) -> Option<[usize; 2]> {
    let one_way: Vec<usize> = (0..files.len()).filter(|&file| files[file].is_one_way()).collect();
    let &[first, second] = &one_way[..] else { return None };
    let [a, b] = [&files[first], &files[second]];
    let shares_direction = a.0.keys().any(|ends| b.0.contains_key(ends));
    let mut shared = a.0.iter().filter_map(|(&[from, to], sent)| Some((sent, b.0.get(&[to, from])?))).peekable();
    shared.peek()?;
    let is_possible = shared.all(|(forth, back)| is_causal(forth, back) && is_causal(back, forth));
    (!shares_direction && is_possible).then_some([first, second])
}

/// Whether nothing is acknowledged before it was sent, except where the capture lost what was sent.
fn is_causal(sent: &Sent, back: &Sent) -> bool {
    let mut highest: Option<u32> = None;
    let mut too_early = 0;
    let mut sent = sent.segments.iter().peekable();
    for &(t_ns, _, ack) in &back.segments {
        while let Some(&&(at_ns, end, _)) = sent.peek()
            && at_ns <= t_ns
        {
            highest = Some(highest.map_or(end, |highest| if is_after(end, highest) { end } else { highest }));
            sent.next();
        }
        // Data that was sent before the capture began may be acknowledged at its start.
        let later = sent.peek().is_some();
        if let (Some(ack), Some(highest), true) = (ack, highest, later) {
            too_early += usize::from(is_after(ack, highest));
        }
    }
    10 * too_early <= back.segments.len()
}

fn is_after(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) > 0
}
