//! `irtt`: round trips over UDP at a fixed interval.

use bufferscope_scenario::IrttTraffic;

use crate::datagrams::{OverUdp, Plans};
use crate::isochronous::{Rhythm, Senders};
use crate::random::Uniform;

/// A prober, whose requests are answered at once.
#[derive(Debug)]
pub(crate) struct Irtt;

impl OverUdp for Irtt {
    type Parameters = IrttTraffic;
    type Programs = Senders;

    fn programs<U: Uniform>(parameters: &IrttTraffic, spread_ns: u64, plans: &mut Plans<U>) -> Senders {
        let &IrttTraffic { interval_ns, payload_bytes, timeout_ns } = parameters;
        Senders::round_trips(Rhythm { interval_ns, payload_bytes, timeout_ns }, spread_ns, plans)
    }
}
