//! `voip`: a call with G.711 over RTP, without silence suppression.

use bufferscope_scenario::{End, VoipTraffic};

use crate::datagrams::{OverUdp, Plans};
use crate::isochronous::{Rhythm, Senders};
use crate::random::Uniform;

/// A call. Each end that speaks has a stream, whose packets have no answers.
#[derive(Debug)]
pub(crate) struct Voip;

impl OverUdp for Voip {
    type Parameters = VoipTraffic;
    type Programs = Senders;

    fn programs<U: Uniform>(parameters: &VoipTraffic, spread_ns: u64, plans: &mut Plans<U>) -> Senders {
        let speech = Rhythm {
            interval_ns: VoipTraffic::INTERVAL_NS,
            payload_bytes: VoipTraffic::PAYLOAD_BYTES,
            timeout_ns: VoipTraffic::TIMEOUT_NS,
        };
        let streams = [(End::From, speech), (End::To, speech)];
        Senders::one_way(if parameters.both_ways { &streams } else { &streams[..1] }, spread_ns, plans)
    }
}
