//! Counters of the packets in captures.

use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};

use crate::decode::{Decoded, Guess, Layers, Transport, Undecoded};
use crate::file::Packet;

/// The largest IP packet of Ethernet without jumbo frames.
const MTU_BYTES: u32 = 1500;

/// Counters of packets; bytes are those on the wire.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Counts {
    /// All packets.
    pub packets: u64,
    /// Their bytes on the wire.
    pub wire_bytes: u64,
    /// Their bytes in the files.
    pub captured_bytes: u64,
    /// Packets of which not everything was captured.
    pub cut: u64,
    /// Packets whose file does not say when they were captured.
    pub without_time: u64,
    /// Packets with a time before that of the first one.
    pub before_first: u64,
    /// Packets that were captured before, at the same vantage point.
    pub copies: u64,
    /// Segments that repeat an earlier one entirely, in flows where most do, and that may be copies or retransmissions.
    pub doubtful_copies: u64,
    /// Additional packets of frames that have several.
    pub more_in_frames: u64,
    /// Packets that the user's choice leaves out.
    pub not_chosen: u64,
    /// TCP segments.
    pub tcp: u64,
    /// Segments in several fragments of IP, which are not followed.
    pub fragmented_segments: u64,
    /// Segments whose options were cut off.
    pub without_options: u64,
    /// Segments in IP packets of more than 1500 bytes.
    pub beyond_mtu: u64,
    /// The largest of these packets.
    pub largest_ip_bytes: u32,
    /// UDP datagrams.
    pub udp: u64,
    /// Their payload.
    pub udp_bytes: u64,
    /// Echo requests and replies.
    pub echoes: u64,
    /// Other packets that were decoded, such as error messages of ICMP.
    pub others: u64,
    /// UDP datagrams whose contents are guessed and not decoded, by kind.
    #[serde(serialize_with = "by_guess")]
    pub guesses: [u64; Guess::WORDS.len()],
    /// Packets in tags and tunnels, by their kind.
    #[serde(serialize_with = "by_layer")]
    pub layers: [u64; Layers::WORDS.len()],
    /// Packets that could not be decoded, by the reason.
    #[serde(serialize_with = "by_reason")]
    pub undecoded: [u64; Undecoded::WORDS.len()],
}

impl Counts {
    #[inline]
    pub(super) fn packet(&mut self, packet: &Packet<'_>) {
        self.packets += 1;
        self.wire_bytes += u64::from(packet.wire_bytes);
        self.captured_bytes += packet.data.len() as u64;
        self.cut += u64::from((packet.data.len() as u64) < u64::from(packet.wire_bytes));
    }

    #[inline]
    pub(super) fn decoded(&mut self, decoded: &Decoded, packet: &Packet<'_>) {
        if !decoded.layers.is_empty() {
            for index in decoded.layers.indices() {
                self.layers[index] += 1;
            }
        }
        match decoded.transport {
            Transport::Tcp(tcp) => {
                self.tcp += 1;
                self.without_options += u64::from(tcp.options.truncated);
                // A length that exceeds the length on the wire is wrong; it is not an offloaded packet.
                if decoded.ip_bytes > MTU_BYTES && decoded.ip_bytes <= packet.wire_bytes {
                    self.beyond_mtu += 1;
                    self.largest_ip_bytes = self.largest_ip_bytes.max(decoded.ip_bytes);
                }
            }
            Transport::Udp { payload_bytes, guess, .. } => {
                self.udp += 1;
                if let Some(guess) = guess {
                    self.guesses[guess as usize] += 1;
                }
                self.udp_bytes += u64::from(payload_bytes);
            }
            Transport::Echo(_) => self.echoes += 1,
            Transport::Other => self.others += 1,
        }
    }

    pub(super) fn undecoded(&mut self, reason: Undecoded) {
        self.undecoded[reason as usize] += 1;
    }
}

fn by_guess<S: Serializer>(counts: &[u64], serializer: S) -> Result<S::Ok, S::Error> {
    by_word(Guess::WORDS, counts, serializer)
}

fn by_layer<S: Serializer>(counts: &[u64], serializer: S) -> Result<S::Ok, S::Error> {
    by_word(&Layers::WORDS, counts, serializer)
}

fn by_reason<S: Serializer>(counts: &[u64], serializer: S) -> Result<S::Ok, S::Error> {
    by_word(Undecoded::WORDS, counts, serializer)
}

/// Serialises only the counters that are not 0.
fn by_word<S: Serializer>(words: &[&str], counts: &[u64], serializer: S) -> Result<S::Ok, S::Error> {
    let mut map = serializer.serialize_map(None)?;
    for (word, count) in words.iter().zip(counts).filter(|(_, count)| **count > 0) {
        map.serialize_entry(word, count)?;
    }
    map.end()
}
