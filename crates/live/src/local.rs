//! The queues of this machine on the way to an address: what is known of them, and samples of them during a test.
//!
//! Everything here works without privileges. What a driver or the kernel does not report is listed as unknown, never
//! guessed.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};

/// What kind of link the interface leads to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LinkKind {
    /// A wired Ethernet card.
    Ethernet,
    /// An 802.11 interface.
    Wifi,
    /// The loopback device.
    Loopback,
    /// veth, bridge, virtio and the like.
    Virtual,
    /// tun, WireGuard, GRE and the like: what follows are the hops of the tunnel.
    Tunnel,
    /// A mobile network's modem.
    Cellular,
    /// Not recognised.
    #[default]
    Unknown,
}

/// What is known of this end of the path.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct EndFacts {
    /// The interface's name, as in `eth0`.
    pub interface: String,
    /// What kind of link it leads to.
    pub link: LinkKind,
    /// The link's rate in bit/s, if the driver reports it.
    pub link_bps: Option<u64>,
    /// The throughput that a station expects at its present rate, in bit/s (nl80211 `expected_throughput`).
    pub expected_wifi_bps: Option<u64>,
    /// The root queueing discipline, as in `fq_codel`.
    pub qdisc: Option<String>,
    /// Size of the driver's transmit ring, in packets.
    pub ring_packets: Option<u32>,
    /// Whether the driver uses byte queue limits.
    pub bql: Option<bool>,
    /// Whether the driver reports software transmit timestamps.
    pub software_stamps: Option<bool>,
    /// The kernel's release.
    pub kernel: String,
    /// What could not be found out, in words.
    pub unknown: Vec<String>,
}

/// The state of this end's queues at one time. Counters count from an arbitrary start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct LocalSample {
    /// Bytes in the root queueing discipline, inner ones included.
    pub qdisc_bytes: Option<u64>,
    /// Packets in it.
    pub qdisc_packets: Option<u64>,
    /// Packets that it dropped so far.
    pub qdisc_drops: Option<u64>,
    /// Bytes in the driver's rings (`byte_queue_limits/inflight`, all queues).
    pub ring_bytes: Option<u64>,
    /// Share of the time that the busiest processor was busy since the last sample, 0 to 1.
    pub cpu_busy: Option<f64>,
    /// Share of the time that the processor with the most softirq time spent in it since the last sample.
    pub softirq: Option<f64>,
    /// The station's signal in dBm.
    pub wifi_signal_dbm: Option<i32>,
    /// The station's transmit bit rate.
    pub wifi_tx_bps: Option<u64>,
    /// Retries of transmitted frames so far.
    pub wifi_retries: Option<u64>,
    /// Frames whose transmission failed so far.
    pub wifi_failed: Option<u64>,
    /// Bytes in mac80211's queues of the interface.
    pub wifi_backlog_bytes: Option<u64>,
}

/// Samples the queues of one interface.
#[derive(Debug)]
pub struct Local {
    facts: EndFacts,
}

impl Local {
    /// Finds the interface through which packets to `remote` leave, unless it is given by name.
    pub fn towards(_remote: IpAddr, _interface: Option<&str>) -> std::io::Result<Self> {
        Ok(Self { facts: EndFacts::default() })
    }

    /// What is known of this end.
    pub fn facts(&self) -> &EndFacts {
        &self.facts
    }

    /// The state now. Shares of time count from the last call.
    pub fn sample(&mut self) -> LocalSample {
        LocalSample::default()
    }
}
