//! The queues of this machine on the way to an address: what is known of them, and samples of them during a test.
//!
//! Everything here works without privileges. What a driver or the kernel does not report is listed as unknown, never
//! guessed.

mod bql;
mod driver;
mod kind;
mod link;
mod processors;
mod route;
mod sysfs;
mod wifi;

use std::io;
use std::net::IpAddr;

use bufferscope_endpoint::netlink::Netlink;
use bufferscope_endpoint::qdisc_stats;
pub use bufferscope_verdict::input::LinkKind;
use serde::{Deserialize, Serialize};

use bql::Bql;
use driver::Driver;
use kind::Hints;
use link::Link;
use processors::Processors;
use sysfs::Directory;
use wifi::Wifi;

/// The kernel's release, as `uname -r` prints it.
const RELEASE: &str = "/proc/sys/kernel/osrelease";
/// Neither stamps nor anything else shows what is in a driver without byte queue limits.
const DRIVER_UNKNOWN: &str = "how long packets are in the driver: it has no byte queue limits";
/// An entry of `EndFacts::unknown` that samples may remove.
const BQL_UNDECIDED: &str = "whether the driver uses byte queue limits: it has not sent enough yet";

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
    /// At the server: the highest rate of a flood that it accepts, in bit/s; `None`: it accepts none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub accepts_flood_bps: Option<u64>,
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
///
/// Its sockets belong to the network namespace of the thread that creates it.
#[derive(Debug)]
pub struct Local {
    facts: EndFacts,
    queues: Option<Queues>,
    processors: Option<Processors>,
}

/// What a sample reads about the interface.
#[derive(Debug)]
struct Queues {
    netlink: Netlink,
    interface: u32,
    bql: Option<Bql>,
    wifi: Option<Wifi>,
}

impl Local {
    /// Finds the interface through which packets to `remote` leave, unless it is given by name.
    ///
    /// Fails if there is no such interface, or no route to the address. Anything else that cannot be found out is only
    /// listed as unknown.
    pub fn towards(remote: IpAddr, interface: Option<&str>) -> io::Result<Self> {
        let mut local = Self { facts: EndFacts::default(), queues: None, processors: None };
        local.look_at_machine();
        let mut netlink = match Netlink::open() {
            Ok(netlink) => netlink,
            Err(error) if interface.is_some() => return Err(error),
            Err(error) => {
                local.unknown(format!("the interface: no netlink socket: {error}"));
                return Ok(local);
            }
        };
        let found = match interface {
            Some(name) => Link::named(&mut netlink, name),
            None => route::interface_towards(&mut netlink, remote)
                .map_err(|error| io::Error::new(error.kind(), format!("there is no route to {remote}: {error}")))
                .and_then(|index| Link::read(&mut netlink, index)),
        };
        local.look_at_interface(found?, netlink);
        Ok(local)
    }

    /// What is known of this end. Whether the driver uses byte queue limits may only be known after some samples.
    pub fn facts(&self) -> &EndFacts {
        &self.facts
    }

    /// The state now. Shares of time count from the last call.
    pub fn sample(&mut self) -> LocalSample {
        let mut sample = LocalSample::default();
        if let Some(shares) = self.processors.as_mut().and_then(Processors::look) {
            sample.cpu_busy = Some(shares.busy);
            sample.softirq = Some(shares.softirq);
        }
        let Some(queues) = &mut self.queues else { return sample };
        if let Ok(root) = qdisc_stats::read_root(&mut queues.netlink, queues.interface) {
            sample.qdisc_bytes = Some(root.bytes);
            sample.qdisc_packets = Some(root.packets);
            sample.qdisc_drops = Some(root.drops);
        }
        if let Some(bql) = &mut queues.bql {
            sample.ring_bytes = bql.inflight_bytes();
            if self.facts.bql != bql.uses() {
                self.facts.bql = bql.uses();
                self.facts.unknown.retain(|words| words != BQL_UNDECIDED && words != DRIVER_UNKNOWN);
                if self.facts.bql == Some(false) {
                    self.facts.unknown.push(DRIVER_UNKNOWN.to_owned());
                }
            }
        }
        if let Some(station) = queues.wifi.as_mut().and_then(Wifi::station) {
            sample.wifi_signal_dbm = station.signal_dbm;
            sample.wifi_tx_bps = station.tx_bps;
            sample.wifi_retries = station.retries;
            sample.wifi_failed = station.failed;
            sample.wifi_backlog_bytes = station.backlog_bytes;
        }
        sample
    }

    fn unknown(&mut self, words: impl Into<String>) {
        self.facts.unknown.push(words.into());
    }

    fn look_at_machine(&mut self) {
        match std::fs::read_to_string(RELEASE) {
            Ok(release) => release.trim_end().clone_into(&mut self.facts.kernel),
            Err(error) => self.unknown(format!("the kernel's release: {error}")),
        }
        match Processors::open() {
            Ok(processors) => self.processors = Some(processors),
            Err(error) => self.unknown(format!("how busy the processors are: {error}")),
        }
    }

    fn look_at_interface(&mut self, mut link: Link, mut netlink: Netlink) {
        self.facts.interface.clone_from(&link.name);
        let sysfs = Directory::of(&link);
        link.bus = link.bus.take().or_else(|| sysfs.as_ref()?.bus());
        let mut wifi = Wifi::of(link.index);
        self.look_at_driver(&link, wifi.is_some(), sysfs.as_ref());
        match qdisc_stats::read_root(&mut netlink, link.index) {
            Ok(_) => self.facts.qdisc.clone_from(&link.qdisc),
            Err(_) if link.is_down() => self.unknown("the queueing discipline: the interface is down"),
            Err(error) => self.unknown(format!("the queueing discipline: {error}")),
        }
        if self.facts.qdisc.as_deref() == Some("noqueue")
            && matches!(self.facts.link, LinkKind::Virtual | LinkKind::Tunnel)
        {
            self.unknown("the queue of the interface below: this one has no queue");
        }
        let bql = self.look_at_limits(sysfs.as_ref());
        if let Some(wifi) = &mut wifi {
            self.look_at_station(wifi);
        }
        self.queues = Some(Queues { netlink, interface: link.index, bql, wifi });
    }

    fn look_at_driver(&mut self, link: &Link, is_wifi: bool, sysfs: Option<&Directory>) {
        let driver = match Driver::of(&link.name) {
            Ok(driver) => Some(driver),
            Err(error) => {
                self.unknown(format!("what the driver reports: {error}"));
                None
            }
        };
        let driver = driver.as_ref();
        let (name, devtype) = (driver.and_then(Driver::name), sysfs.and_then(Directory::devtype));
        let hints = Hints { is_wifi, driver: name.as_deref(), devtype: devtype.as_deref() };
        self.facts.link = kind::kind_of(link, hints);
        if self.facts.link == LinkKind::Unknown {
            self.unknown("the kind of link");
        }
        let Some(driver) = driver else { return };
        self.facts.software_stamps = driver.has_software_stamps();
        if self.facts.software_stamps.is_none() {
            self.unknown("software timestamps: the driver does not report whether it takes them");
        }
        // A loopback device has neither a rate nor a ring.
        if self.facts.link == LinkKind::Loopback {
            return;
        }
        self.facts.ring_packets = driver.ring_packets();
        if self.facts.ring_packets.is_none() {
            self.unknown("the ring: the driver does not report its size");
        }
        // The rate of a Wi-Fi link changes all the time, and is a part of samples.
        if self.facts.link == LinkKind::Wifi {
            return;
        }
        if kind::has_made_up_rate(link) {
            self.unknown("the link's rate: such a device has none");
            return;
        }
        self.facts.link_bps = driver.link_bps();
        if self.facts.link_bps.is_none() {
            self.unknown("the link's rate: the driver does not report it");
        }
    }

    fn look_at_limits(&mut self, sysfs: Option<&Directory>) -> Option<Bql> {
        let Some(directory) = sysfs else {
            self.unknown("whether the driver uses byte queue limits: /sys does not show this network namespace");
            return None;
        };
        match Bql::open(directory.path()) {
            Ok(bql) => {
                self.facts.bql = bql.uses();
                match bql.uses() {
                    None => self.unknown(BQL_UNDECIDED),
                    Some(false) => self.unknown(DRIVER_UNKNOWN),
                    Some(true) => {}
                }
                Some(bql)
            }
            Err(why) => {
                self.unknown(format!("whether the driver uses byte queue limits: {why}"));
                None
            }
        }
    }

    fn look_at_station(&mut self, wifi: &mut Wifi) {
        let Some(station) = wifi.station() else {
            self.unknown("the Wi-Fi station at the other end: not exactly one");
            return;
        };
        self.facts.expected_wifi_bps = station.expected_bps;
        if station.expected_bps.is_none() {
            self.unknown("the expected Wi-Fi throughput: the driver does not report it");
        }
        if station.backlog_bytes.is_none() {
            self.unknown("the Wi-Fi backlog: the driver does not use mac80211's queues");
        }
    }
}
