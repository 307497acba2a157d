//! Every default that is a plain value, with its origin. Defaults that depend on other keys are in [`crate::resolve`].

use super::link::Delay;
use super::overhead::{LinkBytes, Overhead};
use super::recording::Sample;
use super::ring::{HoldTime, RingBytes};
use super::varying::Mean;
use super::wifi::{FifoSize, Retries};
use super::{Interval, Moment};
use crate::congestion::Congestion;
use crate::file::host::{Buffer, InitialWindow, Percent, Segments, Timeouts};
use crate::model::{ByteLimits, Table};
use crate::sizes::ETHERNET_HEADER_BYTES;
use crate::units::{KB, MB, MS};

pub(super) fn repeat() -> u32 {
    1
}

/// Enough to see the shape of a distribution.
pub(super) fn sessions() -> u32 {
    1000
}

/// The same for all groups.
pub(super) fn weight() -> f64 {
    1.0
}

pub(super) fn warmup() -> Moment {
    Moment::new(0)
}

/// Between two samples.
pub(super) fn interval() -> Interval {
    Interval::new(10 * MS)
}

/// Between two changes of a random walk: much less than the coherence of cellular links, which is seconds.
pub(super) fn walk_step() -> Mean {
    Mean::new(100 * MS)
}

pub(super) fn sample() -> Sample {
    Sample::Both(interval())
}

pub(super) fn record() -> Vec<Table> {
    Table::RECORDED.to_vec()
}

pub(super) fn delay() -> Delay {
    Delay::new(0)
}

/// Ethernet's header, which is what Linux' tc counts on top of the IP packet.
pub(super) fn overhead() -> Overhead {
    Overhead::Bytes(LinkBytes::new(ETHERNET_HEADER_BYTES.into()))
}

/// The drivers that Gettys and Nichols describe (2011), and the usual size of a ring.
pub(super) fn wifi_fifo() -> FifoSize {
    FifoSize::new(256)
}

/// `ATH_MAX_SW_RETRIES` of `drivers/net/wireless/ath/ath9k/ath9k.h`.
pub(super) fn wifi_retries() -> Retries {
    30
}

/// As in mac80211, where it cannot be switched off.
pub(super) fn airtime_fairness() -> bool {
    true
}

/// Linux' `hold_time`: one second of jiffies.
pub(super) fn hold_time() -> HoldTime {
    HoldTime::new(ByteLimits::DEFAULT.hold_ns)
}

pub(super) fn limit_min() -> RingBytes {
    RingBytes::new(ByteLimits::DEFAULT.min_bytes)
}

/// Linux since 2.6.19.
pub(super) fn congestion() -> Congestion {
    Congestion::Cubic
}

/// `net.ipv4.tcp_rmem[2]` on a machine with enough memory.
pub(super) fn rmem_max() -> Buffer {
    Buffer::new(6 * MB)
}

/// `net.ipv4.tcp_rmem[1]`.
pub(super) fn rmem_default() -> Buffer {
    Buffer::new(128 * KB)
}

/// `net.ipv4.tcp_wmem[2]` on a machine with enough memory.
pub(super) fn wmem_max() -> Buffer {
    Buffer::new(4 * MB)
}

/// `net.ipv4.tcp_wmem[1]`.
pub(super) fn wmem_default() -> Buffer {
    Buffer::new(16 * KB)
}

/// RFC 6928.
pub(super) fn initial_window() -> InitialWindow {
    10
}

/// What a testbed should have; Linux' own is 65,535.
pub(super) fn gso_max_segs() -> Segments {
    1
}

/// Linux' `net.ipv4.tcp_min_tso_segs`.
pub(super) fn min_tso_segs() -> Segments {
    2
}

/// Linux' `net.ipv4.tcp_slow_start_after_idle`.
pub(super) fn slow_start_after_idle() -> bool {
    true
}

/// Linux' `net.ipv4.tcp_no_ssthresh_metrics_save`.
pub(super) fn remember_ssthresh() -> bool {
    false
}

/// What Linux did before it had `net.ipv4.tcp_syn_linear_timeouts`; Debian's 6.1 does.
pub(super) fn syn_linear_timeouts() -> Timeouts {
    0
}

/// Linux' `net.ipv4.tcp_pacing_ss_ratio`.
pub(super) fn pacing_ss_ratio() -> Percent {
    200
}

/// Linux' `net.ipv4.tcp_pacing_ca_ratio`.
pub(super) fn pacing_ca_ratio() -> Percent {
    120
}
