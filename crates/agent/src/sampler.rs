//! Samples of the ports' queues, and the drops between them.

use std::io;

use bufferscope_plan::LEAF_HANDLE;
use bufferscope_records::{Layer, Name, QueueRow};
use bufferscope_scenario::Scenario;
use nix::net::if_::if_nametoindex;

use crate::cards::{Arrived, Gauge};
use crate::fate_counts::{self, FateCounts};
use crate::kernel::netlink::Netlink;
use crate::kernel::qdisc_stats::{self, QdiscStats};
use crate::traffic::Desk;
use crate::warnings::Warnings;
use crate::wire_check::{Seen, WireCheck};

/// Samples all ports that have a rate.
#[derive(Debug)]
pub(crate) struct Sampler {
    hosts: Vec<Host>,
}

/// The ports of one namespace.
#[derive(Debug)]
struct Host {
    netlink: Netlink,
    namespace: usize,
    ports: Vec<Port>,
}

#[derive(Debug)]
struct Port {
    name: Name,
    interface: u32,
    sent_packets: Counter,
    fates: FateCounts,
    label: String,
    check: WireCheck,
    /// Counts what has left its ring, if it has one.
    gauge: Option<Gauge>,
}

/// A count that continues when the kernel's 32-bit counter wraps around. The counter of a fast port does so within
/// hours.
#[derive(Clone, Copy, Debug, Default)]
struct Counter {
    total: u64,
    last: u32,
}

impl Sampler {
    /// Opens a socket in every namespace that has ports with a rate.
    pub(crate) fn open(desk: &mut Desk<'_>) -> io::Result<Self> {
        let mut hosts: Vec<Host> = Vec::new();
        for port in &desk.network.plan.ports {
            let namespace = usize::from(port.node);
            desk.network.namespaces[namespace].enter()?;
            let place = match hosts.iter().position(|host| host.namespace == namespace) {
                Some(place) => place,
                None => {
                    hosts.push(Host { netlink: Netlink::open()?, namespace, ports: Vec::new() });
                    hosts.len() - 1
                }
            };
            hosts[place].ports.push(Port {
                name: desk.recorder.intern(&port.name),
                interface: if_nametoindex(port.device.as_str())?,
                sent_packets: Counter::default(),
                fates: FateCounts::default(),
                label: port.name.clone(),
                check: wire_check(desk.scenario, port.place),
                gauge: port.ring.map(|ring| desk.network.cards.gauge(ring)).transpose()?,
            });
        }
        Ok(Self { hosts })
    }

    /// Records the current contents of every port.
    pub(crate) fn sample(&mut self, desk: &mut Desk<'_>) -> io::Result<()> {
        for Host { netlink, ports, .. } in &mut self.hosts {
            for port in ports {
                let t_ns = desk.now_ns();
                let stats = qdisc_stats::read_one(netlink, port.interface, LEAF_HANDLE)?;
                port.record(t_ns, &stats, desk)?;
            }
        }
        Ok(())
    }

    /// Warns of ports that did not keep their rates.
    pub(crate) fn conclude(&self, warnings: &mut Warnings) {
        for port in self.hosts.iter().flat_map(|host| &host.ports) {
            port.check.conclude(&port.label, warnings);
        }
    }
}

fn wire_check(scenario: &Scenario, (link, side): (usize, usize)) -> WireCheck {
    let link = &scenario.links[link];
    let port = if side == 0 { &link.forward } else { &link.reverse };
    let segments = scenario.nodes.iter().map(|node| node.tcp.gso_max_segs).max().unwrap_or(1);
    WireCheck::new(port.rate.as_ref().map_or(&[], |rate| rate.steps()), segments, port.queue.shaper())
}

impl Port {
    fn record(&mut self, t_ns: u64, stats: &QdiscStats, desk: &mut Desk<'_>) -> io::Result<()> {
        self.fates.tell(stats, t_ns, self.name, |row| desk.recorder.dropped(row));
        let row = QueueRow {
            t_ns,
            port: self.name,
            layer: Layer::Qdisc,
            packets: stats.packets,
            bytes: stats.bytes,
            dropped: stats.drops,
            marked: fate_counts::marked(stats),
            sent_packets: self.sent_packets.advance(stats.sent_packets as u32),
            sent_bytes: stats.sent_bytes,
        };
        desk.recorder.queue(row);
        let wire_bytes = match &self.gauge {
            None => stats.sent_bytes,
            Some(gauge) => {
                let arrived = gauge.read()?;
                desk.recorder.queue(ring_row(row, arrived));
                // On a card's wire every packet takes the time of a full one.
                arrived.packets * gauge.frame_bytes
            }
        };
        self.check.see(Seen { t_ns, packets: stats.packets, sent_bytes: wire_bytes });
        Ok(())
    }
}

/// The row of the ring below a queue. The ring contains what the queue has passed on, minus what has arrived at the
/// wire's other end. A ring drops nothing.
fn ring_row(queue: QueueRow, arrived: Arrived) -> QueueRow {
    QueueRow {
        layer: Layer::Ring,
        packets: queue.sent_packets.saturating_sub(arrived.packets),
        bytes: queue.sent_bytes.saturating_sub(arrived.bytes),
        dropped: 0,
        marked: 0,
        sent_packets: arrived.packets,
        sent_bytes: arrived.bytes,
        ..queue
    }
}

impl Counter {
    fn advance(&mut self, now: u32) -> u64 {
        self.total += u64::from(now.wrapping_sub(self.last));
        self.last = now;
        self.total
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_goes_on_where_the_kernel_begins_anew() {
        let mut counter = Counter::default();
        assert_eq!(counter.advance(u32::MAX - 1), u64::from(u32::MAX) - 1);
        assert_eq!(counter.advance(3), u64::from(u32::MAX) + 4);
    }
}
