//! When slow start ends before a loss ends it.

use super::RttSample;

/// Watches slow start and says when it has gone far enough.
pub(crate) trait SlowStart {
    /// Should slow start end now, at a window of `cwnd` packets?
    fn is_over(&mut self, sample: &RttSample, min_rtt_ns: u64, cwnd: u32) -> bool;

    /// A retransmission timeout: slow start begins anew.
    fn on_timeout(&mut self, sample: &RttSample);
}

/// Plain slow start (RFC 5681, section 3.1): only congestion ends it.
#[derive(Debug)]
pub(crate) struct Standard;

impl SlowStart for Standard {
    fn is_over(&mut self, _sample: &RttSample, _min_rtt_ns: u64, _cwnd: u32) -> bool {
        false
    }

    fn on_timeout(&mut self, _sample: &RttSample) {}
}
