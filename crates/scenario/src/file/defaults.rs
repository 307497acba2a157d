//! Every default that is a plain value, with its origin. Defaults that depend on other keys are in [`crate::resolve`].

use super::datagrams::{DatagramSize, LookUpTimeout};
use super::link::{Delay, Rate};
use super::overhead::{LinkBytes, Overhead};
use super::recording::Sample;
use super::ring::{HoldTime, RingBytes};
use super::streams::RequestSize;
use super::traffic::{Payload, PingTimeout};
use super::varying::Mean;
use super::wifi::{FifoSize, Retries};
use super::{Duration, Interval, Moment};
use crate::congestion::Congestion;
use crate::file::host::{Buffer, InitialWindow, Percent, Segments, Timeouts};
use crate::model::{ByteLimits, Table};
use crate::sizes::ETHERNET_HEADER_BYTES;
use crate::units::{KB, MB, MS, SECOND};

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

pub(super) fn start() -> Moment {
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

pub(super) fn flows() -> u32 {
    1
}

pub(super) fn stagger() -> Moment {
    Moment::new(0)
}

pub(super) fn transfers() -> u32 {
    1
}

/// Linux since 2.6.19.
pub(super) fn congestion() -> Congestion {
    Congestion::Cubic
}

pub(super) fn ping_interval() -> Interval {
    Interval::new(100 * MS)
}

/// ping(8), `-s`.
pub(crate) fn ping_size() -> Payload {
    Payload::new(56)
}

/// Longer than any delay that an experiment is expected to cause, so that a late answer does not count as lost.
pub(crate) fn ping_timeout() -> PingTimeout {
    PingTimeout::new(60 * SECOND)
}

/// A page every two seconds, as in the CS244 lab on bufferbloat.
pub(super) fn web_interval() -> Interval {
    Interval::new(2 * SECOND)
}

pub(super) fn web_request() -> RequestSize {
    RequestSize::new(200)
}

/// What `iperf3 -u` uses on a path for packets of 1500 bytes: the segment size of its TCP connection.
pub(super) fn udp_size() -> DatagramSize {
    DatagramSize::new(1448)
}

pub(super) fn both_ways() -> bool {
    true
}

pub(super) fn dns_interval() -> Interval {
    Interval::new(SECOND)
}

/// Header (RFC 1035, section 4.1.1), the question `www.example.org` in 21 bytes, an empty OPT record in 11 (RFC 6891).
pub(super) fn dns_request() -> DatagramSize {
    DatagramSize::new(44)
}

/// The same with four addresses of 16 bytes each.
pub(super) fn dns_response() -> DatagramSize {
    DatagramSize::new(108)
}

/// resolv.conf(5), `timeout`.
pub(super) fn dns_timeout() -> LookUpTimeout {
    LookUpTimeout::new(5 * SECOND)
}

/// resolv.conf(5), `attempts`.
pub(super) fn dns_attempts() -> u32 {
    2
}

/// Kreibich et al., "Netalyzr: illuminating the edge network", IMC 2010, section 3.3: "a 10 Hz train of 200 small UDP packets".
pub(super) fn netalyzr_probes() -> u32 {
    200
}

/// The same: 10 Hz.
pub(super) fn netalyzr_interval() -> Interval {
    Interval::new(100 * MS)
}

/// The same: "exponentially ramping up (over 10 seconds)".
pub(super) fn netalyzr_load() -> Duration {
    Duration::new(10 * SECOND)
}

/// The same: "waiting 5 seconds for queues to drain".
pub(super) fn netalyzr_pause() -> Moment {
    Moment::new(5 * SECOND)
}

/// The same: "1000-byte replies".
pub(super) fn netalyzr_size() -> DatagramSize {
    DatagramSize::new(1000)
}

/// The same: most Java implementations throttle sending to 20 Mbit/s.
pub(super) fn netalyzr_rate() -> Rate {
    Rate::new(20_000_000)
}

/// irtt-client(1), `-i`.
pub(super) fn irtt_interval() -> Interval {
    Interval::new(SECOND)
}

/// What `irtt client` sends if nothing makes it longer: 16 bytes of header, 12 of the server's counts and 32 of time stamps.
pub(crate) fn irtt_size() -> DatagramSize {
    DatagramSize::new(60)
}

/// Flent's `--delay`.
pub(super) fn load_delay() -> Moment {
    Moment::new(5 * SECOND)
}

/// Flent's `--step-size`.
pub(super) fn load_interval() -> Interval {
    Interval::new(200 * MS)
}

/// As in Chromium and Firefox, to one server over HTTP/1.1.
pub(crate) fn page_connections() -> u32 {
    6
}

pub(super) fn peers() -> u32 {
    10
}

/// BEP 3.
pub(super) fn unchoked() -> u32 {
    4
}

/// uTP's congestion control (BEP 29), which was later published as RFC 6817.
pub(super) fn bittorrent_congestion() -> Congestion {
    Congestion::Ledbat
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
