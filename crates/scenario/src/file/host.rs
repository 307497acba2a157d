//! `[[host]]`: settings of one host.

use schemars::JsonSchema;
use serde::Deserialize;

use super::defaults;
use crate::congestion::Congestion;
use crate::quantity::{Quantity, Sizes};
use crate::text::Name;
use crate::units::{GB, KB};

/// A receive or send buffer.
pub(crate) type Buffer = Quantity<Sizes, { 4 * KB }, GB>;
/// Payload that is not sent yet.
pub(crate) type Unsent = Quantity<Sizes, 1, GB>;
/// Segments.
pub(crate) type InitialWindow = u32;
/// Segments in a packet.
pub(crate) type Segments = u32;
/// Per cent.
pub(crate) type Percent = u32;
/// A number of SYN timeouts.
pub(crate) type Timeouts = u32;

/// Settings of one host.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct Host {
    /// The name of the node, as in `ends` of its links.
    #[schemars(example = &"h1")]
    pub(crate) name: Name,
    /// TCP settings of this host. Missing keys are as in the experiment's `tcp`.
    #[serde(default)]
    pub(crate) tcp: HostTcp,
}

/// TCP settings of one host or of all hosts. In Linux they are sysctls.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(deny_unknown_fields)]
pub(crate) struct HostTcp {
    /// Congestion control for traffic that does not name its own (`net.ipv4.tcp_congestion_control`).
    pub(crate) congestion: Congestion,
    /// Largest receive buffer that auto-tuning may reach (`net.ipv4.tcp_rmem[2]`).
    pub(crate) rmem_max: Buffer,
    /// Initial receive buffer of a connection (`net.ipv4.tcp_rmem[1]`).
    pub(crate) rmem_default: Buffer,
    /// Largest send buffer that auto-tuning may reach (`net.ipv4.tcp_wmem[2]`).
    pub(crate) wmem_max: Buffer,
    /// Initial send buffer of a connection (`net.ipv4.tcp_wmem[1]`).
    pub(crate) wmem_default: Buffer,
    /// The send buffer accepts more data only while less than this is unsent (`net.ipv4.tcp_notsent_lowat`). Default: no
    /// limit.
    #[schemars(example = &"16kb")]
    pub(crate) notsent_lowat: Option<Unsent>,
    /// Initial congestion window in segments.
    #[schemars(range(min = 1, max = 1000))]
    pub(crate) initial_window: InitialWindow,
    /// Maximum number of segments that leave the host as one packet (`gso_max_segs` of ip-link(8)). The packet stays whole in
    /// every queue up to the receiver, as on the virtual links of a testbed with segmentation offload. 1: every packet is one
    /// segment.
    #[schemars(range(min = 1, max = 45))]
    pub(crate) gso_max_segs: Segments,
    /// Minimum number of segments that leave as one packet if the window has room for them, whatever the rate is
    /// (`net.ipv4.tcp_min_tso_segs`, since Linux 3.12). It matters if `gso_max_segs` is larger; `bbr` chooses its own. Before
    /// 3.12, packets were as large as window and `gso_max_segs` allowed, which 45 brings back.
    #[schemars(range(min = 1, max = 255))]
    pub(crate) min_tso_segs: Segments,
    /// Reduce the congestion window after idle times and while it is not fully used (`net.ipv4.tcp_slow_start_after_idle`).
    pub(crate) slow_start_after_idle: bool,
    /// Start a connection with the slow-start threshold at which the last one to the same host ended
    /// (`net.ipv4.tcp_no_metrics_save` = 0 and `net.ipv4.tcp_no_ssthresh_metrics_save` = 0). This was the default before
    /// Linux 5.6.
    pub(crate) remember_ssthresh: bool,
    /// Number of SYN timeouts before the timeout starts to double (`net.ipv4.tcp_syn_linear_timeouts`, since Linux 6.5, whose
    /// default is 4). With 4, a SYN is retransmitted after 1, 1, 1, 1, 1, 2, 4 s; with 0, as before 6.5, after 1, 2, 4 s.
    #[schemars(range(min = 0, max = 127))]
    pub(crate) syn_linear_timeouts: Timeouts,
    /// Pacing rate in slow start, in per cent of one window per round trip (`net.ipv4.tcp_pacing_ss_ratio`). It applies if
    /// packets are paced and the congestion control sets no rate of its own.
    #[schemars(range(min = 1, max = 1000))]
    pub(crate) pacing_ss_ratio: Percent,
    /// The same once the window reaches half of the slow-start threshold (`net.ipv4.tcp_pacing_ca_ratio`).
    #[schemars(range(min = 1, max = 1000))]
    pub(crate) pacing_ca_ratio: Percent,
}

impl Default for HostTcp {
    fn default() -> Self {
        Self {
            congestion: defaults::congestion(),
            rmem_max: defaults::rmem_max(),
            rmem_default: defaults::rmem_default(),
            wmem_max: defaults::wmem_max(),
            wmem_default: defaults::wmem_default(),
            notsent_lowat: None,
            initial_window: defaults::initial_window(),
            gso_max_segs: defaults::gso_max_segs(),
            min_tso_segs: defaults::min_tso_segs(),
            slow_start_after_idle: defaults::slow_start_after_idle(),
            remember_ssthresh: defaults::remember_ssthresh(),
            syn_linear_timeouts: defaults::syn_linear_timeouts(),
            pacing_ss_ratio: defaults::pacing_ss_ratio(),
            pacing_ca_ratio: defaults::pacing_ca_ratio(),
        }
    }
}
