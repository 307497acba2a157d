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
/// Segments of a packet.
pub(crate) type Segments = u32;
/// Per cent.
pub(crate) type Percent = u32;
/// How many of them.
pub(crate) type Timeouts = u32;

/// Settings of a host that some link names.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct Host {
    /// The node's name in the links.
    #[schemars(example = &"h1")]
    pub(crate) name: Name,
    /// Its TCP; what this leaves out is as in the experiment's own `tcp`.
    #[serde(default)]
    pub(crate) tcp: HostTcp,
}

/// TCP settings of a host or of all hosts, which Linux has as sysctls.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(deny_unknown_fields)]
pub(crate) struct HostTcp {
    /// Congestion control of what the host sends, where its traffic does not name another (`net.ipv4.tcp_congestion_control`).
    pub(crate) congestion: Congestion,
    /// Largest receive buffer that auto-tuning may reach (`net.ipv4.tcp_rmem[2]`).
    pub(crate) rmem_max: Buffer,
    /// Receive buffer that a connection starts with (`net.ipv4.tcp_rmem[1]`).
    pub(crate) rmem_default: Buffer,
    /// Largest send buffer that auto-tuning may reach (`net.ipv4.tcp_wmem[2]`).
    pub(crate) wmem_max: Buffer,
    /// Send buffer that a connection starts with (`net.ipv4.tcp_wmem[1]`).
    pub(crate) wmem_default: Buffer,
    /// The send buffer takes more from the application only while less than this is not sent yet
    /// (`net.ipv4.tcp_notsent_lowat`). Default: any amount.
    #[schemars(example = &"16kb")]
    pub(crate) notsent_lowat: Option<Unsent>,
    /// Initial congestion window in segments.
    #[schemars(range(min = 1, max = 1000))]
    pub(crate) initial_window: InitialWindow,
    /// Most segments that leave the host as one packet (`gso_max_segs` of ip-link(8)), which stays one in every queue up to the
    /// receiver, as over the virtual links of a testbed whose segmentation offload is on. 1: every packet is one segment.
    #[schemars(range(min = 1, max = 45))]
    pub(crate) gso_max_segs: Segments,
    /// Shrink congestion windows after idle times and while they are not used (`net.ipv4.tcp_slow_start_after_idle`).
    pub(crate) slow_start_after_idle: bool,
    /// Begin a connection with the slow-start threshold that the last one to the same host left behind
    /// (`net.ipv4.tcp_no_metrics_save` = 0 and `net.ipv4.tcp_no_ssthresh_metrics_save` = 0). So Linux did before 5.6; since
    /// then it does not.
    pub(crate) remember_ssthresh: bool,
    /// Timeouts after which a SYN's next timeout is not yet doubled (`net.ipv4.tcp_syn_linear_timeouts`). Linux has had this since
    /// 6.5, where it is 4: a SYN is sent again after 1, 1, 1, 1, 1, 2, 4 s; with 0, as before 6.5, after 1, 2, 4 s.
    #[schemars(range(min = 0, max = 127))]
    pub(crate) syn_linear_timeouts: Timeouts,
    /// Pacing rate in per cent of a window a round trip in slow start (`net.ipv4.tcp_pacing_ss_ratio`); of effect where packets
    /// are paced and the congestion control sets no rate of its own.
    #[schemars(range(min = 1, max = 1000))]
    pub(crate) pacing_ss_ratio: Percent,
    /// The same from half of the slow-start threshold on (`net.ipv4.tcp_pacing_ca_ratio`).
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
            slow_start_after_idle: defaults::slow_start_after_idle(),
            remember_ssthresh: defaults::remember_ssthresh(),
            syn_linear_timeouts: defaults::syn_linear_timeouts(),
            pacing_ss_ratio: defaults::pacing_ss_ratio(),
            pacing_ca_ratio: defaults::pacing_ca_ratio(),
        }
    }
}
