//! The settings with which an endpoint is created.

use bufferscope_scenario::Congestion;
use bufferscope_scenario::sizes::MSS_BYTES;

use super::Timers;
use crate::transport::congestion::Settings;

/// Settings of one endpoint, named after Linux' sysctls where they exist.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Payload bytes in a full segment.
    pub mss_bytes: u32,
    /// Initial congestion window in segments (RFC 6928: 10).
    pub initial_window_packets: u32,
    /// Slow-start threshold that the connection starts with, `u32::MAX` for none (`TCP_METRIC_SSTHRESH`). It has no
    /// effect if the congestion control governs its window.
    pub ssthresh_packets: u32,
    /// Receive buffer the connection starts with (`net.ipv4.tcp_rmem[1]`).
    pub rmem_default_bytes: u64,
    /// Largest receive buffer that auto-tuning may reach (`net.ipv4.tcp_rmem[2]`).
    pub rmem_max_bytes: u64,
    /// Send buffer the connection starts with (`net.ipv4.tcp_wmem[1]`).
    pub wmem_default_bytes: u64,
    /// Largest send buffer that auto-tuning may reach (`net.ipv4.tcp_wmem[2]`).
    pub wmem_max_bytes: u64,
    /// The application may write more only while there is less unsent data than this (`net.ipv4.tcp_notsent_lowat`).
    pub notsent_lowat_bytes: u64,
    /// Congestion control of the data this endpoint sends.
    pub congestion: Congestion,
    /// The window of [`Congestion::Window`]; other congestion controls ignore it.
    pub window_packets: u32,
    /// Queueing delay that [`Congestion::Ledbat`] or [`Congestion::LedbatPlusPlus`] aims at; other congestion controls
    /// ignore it.
    pub target_ns: u64,
    /// Pace packets even where the congestion control does not require it (`SO_MAX_PACING_RATE`).
    pub pacing: bool,
    /// Pacing rate in per cent of one window per round trip. The first value applies in slow start
    /// (`net.ipv4.tcp_pacing_ss_ratio`), the second from half of the threshold on (`net.ipv4.tcp_pacing_ca_ratio`).
    /// They have no effect where the congestion control sets the rate.
    pub pacing_percent: [u32; 2],
    /// Shrink the window after idle times, and while the application does not use it
    /// (`net.ipv4.tcp_slow_start_after_idle`).
    pub slow_start_after_idle: bool,
    /// Number of SYN timeouts before the timeout starts to double (`net.ipv4.tcp_syn_linear_timeouts`).
    pub syn_linear_timeouts: u32,
    /// Send written data at once, even if it does not fill a segment (`TCP_NODELAY`).
    pub no_delay: bool,
    /// Maximum number of segments that leave as one packet (ip-link(8), `gso_max_segs`); 1 without segmentation
    /// offload.
    pub gso_max_segs: u32,
    /// Minimum number of segments in such a packet (`net.ipv4.tcp_min_tso_segs`).
    pub min_tso_segs: u32,
    /// Seed of the congestion control's random numbers. BBR uses random numbers so that flows that began together do
    /// not probe together.
    pub seed: u64,
    /// Ask for ECN (client) or accept it (server); used when both ends want it (RFC 3168, section 6.1.1).
    pub ecn: bool,
    /// Ask for accurate ECN, and accept it (RFC 9768; `net.ipv4.tcp_ecn` = 3 of kernels that have it).
    pub accurate_ecn: bool,
    /// How precise the host's timers are.
    pub timers: Timers,
}

/// The side of the handshake that an endpoint is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Sends the SYN.
    Client,
    /// Answers the SYN.
    Server,
}

impl Config {
    /// The settings for the congestion control.
    pub(crate) fn control(&self) -> Settings {
        Settings {
            congestion: self.congestion,
            initial_window_packets: self.initial_window_packets,
            ssthresh_packets: self.ssthresh_packets,
            window_packets: self.window_packets,
            target_ns: self.target_ns,
            seed: self.seed,
            timers: self.timers,
        }
    }

    /// Linux' defaults, with CUBIC, without ECN, and with exact timers.
    pub const DEFAULT: Self = Self {
        mss_bytes: MSS_BYTES,
        initial_window_packets: 10,
        ssthresh_packets: u32::MAX,
        rmem_default_bytes: 131_072,
        rmem_max_bytes: 6 << 20,
        wmem_default_bytes: 16 << 10,
        wmem_max_bytes: 4 << 20,
        notsent_lowat_bytes: u32::MAX as u64,
        congestion: Congestion::Cubic,
        window_packets: 10,
        target_ns: 100_000_000,
        pacing: false,
        pacing_percent: [200, 120],
        slow_start_after_idle: true,
        syn_linear_timeouts: 0,
        no_delay: false,
        gso_max_segs: 1,
        min_tso_segs: 2,
        seed: 0,
        ecn: false,
        accurate_ecn: false,
        timers: Timers::Exact,
    };
}

impl Default for Config {
    fn default() -> Self {
        Self::DEFAULT
    }
}
