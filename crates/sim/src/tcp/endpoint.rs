//! One end of a TCP connection (RFC 9293).

use super::{Config, Outbox, Role, Sample, Segment};
use crate::packet::Ecn;

/// One end of a connection.
#[derive(Debug)]
pub struct Endpoint {}

impl Endpoint {
    /// An endpoint that waits: a client for [`connect`](Self::connect), a server for a SYN.
    pub fn new(_config: &Config, _role: Role) -> Self {
        Self {}
    }

    /// Sends the SYN (client).
    pub fn connect(&mut self, _now_ns: u64, _out: &mut Outbox) {
        unimplemented!()
    }

    /// The application makes `bytes` more payload available; `u64::MAX` never runs out.
    pub fn offer(&mut self, _now_ns: u64, _bytes: u64, _out: &mut Outbox) {
        unimplemented!()
    }

    /// The application has no more to offer: a FIN follows what was offered.
    pub fn finish_sending(&mut self, _now_ns: u64, _out: &mut Outbox) {
        unimplemented!()
    }

    /// Forgets what was offered and not yet sent, then finishes.
    pub fn stop_offering(&mut self, _now_ns: u64, _out: &mut Outbox) {
        unimplemented!()
    }

    /// A segment arrived, in an IP packet with codepoint `ecn`.
    pub fn on_segment(&mut self, _now_ns: u64, _segment: &Segment, _ecn: Ecn, _out: &mut Outbox) {
        unimplemented!()
    }

    /// Does what was due at [`deadline`](Self::deadline); harmless when called early.
    pub fn on_timer(&mut self, _now_ns: u64, _out: &mut Outbox) {
        unimplemented!()
    }

    /// When [`on_timer`](Self::on_timer) has to be called next, if nothing arrives before.
    pub fn deadline(&self) -> Option<u64> {
        unimplemented!()
    }

    /// Payload received in order (and read at once by the application).
    pub fn received_bytes(&self) -> u64 {
        unimplemented!()
    }

    /// Payload of ours acknowledged cumulatively.
    pub fn acked_bytes(&self) -> u64 {
        unimplemented!()
    }

    /// Has everything the peer will ever send arrived, FIN included?
    pub fn peer_finished(&self) -> bool {
        unimplemented!()
    }

    /// Have both sides' FINs been acknowledged? A closed endpoint still answers a repeated FIN (as in TIME-WAIT), so keep
    /// it until its peer is closed too.
    pub fn is_closed(&self) -> bool {
        unimplemented!()
    }

    /// The state of the sending side.
    pub fn sample(&self) -> Sample {
        unimplemented!()
    }
}
