//! Samples of the ports' queues, and the drops between them.

use std::io;

use bufferscope_endpoint::byte_limits::Allowed;
use bufferscope_endpoint::netlink::Netlink;
use bufferscope_endpoint::qdisc_stats::{self, QdiscStats};
use bufferscope_plan::{InnerQdisc, LEAF_HANDLE};
use bufferscope_records::{CapacityRow, Layer, Name, QueueRow};
use bufferscope_scenario::{RateStep, Scenario, Shaper, TokenBucket};
use nix::net::if_::if_nametoindex;

use crate::cards::{Arrived, Gauge};
use crate::drop_counters::{self, DropCounters};
use crate::flow_queues::{self, Schedule};
use crate::traffic::RunContext;
use crate::warnings::Warnings;
use crate::wire_check::{Seen, WireCheck};

/// Samples all ports that have a rate.
#[derive(Debug)]
pub(crate) struct Sampler {
    hosts: Vec<Host>,
    flow_queues: Schedule,
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
    drops: DropCounters,
    label: String,
    /// `None` if its queue may hold packets back.
    check: Option<WireCheck>,
    /// The token bucket of its boost, if it has one.
    boost: Option<Tokens>,
    /// The disciplines inside its own.
    inner: Vec<Inner>,
    /// Whether any of these disciplines has flow queues.
    separates_flows: bool,
    /// Counts what has left its ring, if it has one.
    gauge: Option<Gauge>,
}

/// A discipline inside a port's own. Its drops and marks are known from its own counters. The counters of the port's
/// own discipline include its drops.
#[derive(Clone, Copy, Debug)]
struct Inner {
    handle: u32,
    /// Its parent: 0 for the port's own discipline, or the number, counted from 1, of another inner one.
    parent: usize,
    drops: DropCounters,
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
    pub(crate) fn open(context: &mut RunContext<'_>) -> io::Result<Self> {
        let mut hosts: Vec<Host> = Vec::new();
        for port in &context.network.plan.ports {
            let namespace = usize::from(port.node);
            context.network.namespaces[namespace].enter()?;
            let index = match hosts.iter().position(|host| host.namespace == namespace) {
                Some(index) => index,
                None => {
                    hosts.push(Host { netlink: Netlink::open()?, namespace, ports: Vec::new() });
                    hosts.len() - 1
                }
            };
            hosts[index].ports.push(Port {
                name: context.recorder.intern(&port.name),
                interface: if_nametoindex(port.device.as_str())?,
                sent_packets: Counter::default(),
                drops: DropCounters::default(),
                label: port.name.clone(),
                check: wire_check(scenario_port(context.scenario, port.link_direction), context.scenario),
                boost: Tokens::of(scenario_port(context.scenario, port.link_direction)),
                inner: port.inner.iter().map(Inner::new).collect(),
                separates_flows: scenario_port(context.scenario, port.link_direction).queue.separates_flows(),
                gauge: port.ring.map(|ring| context.network.cards.gauge(ring)).transpose()?,
            });
        }
        Ok(Self { hosts, flow_queues: Schedule::of(context.scenario) })
    }

    /// Records the current contents of every port in a sample that was due at this time.
    pub(crate) fn sample(&mut self, due_ns: u64, context: &mut RunContext<'_>) -> io::Result<()> {
        let with_flow_queues = self.flow_queues.take(due_ns);
        for Host { netlink, ports, .. } in &mut self.hosts {
            for port in ports {
                let t_ns = context.now_ns();
                let stats = qdisc_stats::read_one(netlink, port.interface, LEAF_HANDLE)?;
                let inner = port.read_inner(netlink)?;
                port.record(t_ns, &stats, &inner, context)?;
                if with_flow_queues && port.separates_flows && stats.packets > 0 {
                    let inner = port.inner.iter().map(|inner| inner.handle);
                    flow_queues::record(t_ns, (port.name, port.interface), inner, netlink, context)?;
                }
            }
        }
        Ok(())
    }

    /// Warns of ports that did not keep their rates.
    pub(crate) fn conclude(&self, warnings: &mut Warnings) {
        for port in self.hosts.iter().flat_map(|host| &host.ports) {
            if let Some(check) = &port.check {
                check.conclude(&port.label, warnings);
            }
        }
    }
}

fn scenario_port(scenario: &Scenario, (link, side): (usize, usize)) -> &bufferscope_scenario::Port {
    let link = &scenario.links[link];
    if side == 0 { &link.forward } else { &link.reverse }
}

fn wire_check(port: &bufferscope_scenario::Port, scenario: &Scenario) -> Option<WireCheck> {
    let segments = scenario.nodes.iter().map(|node| node.tcp.gso_max_segs).max().unwrap_or(1);
    let rates = port.rate.as_ref().map_or(&[][..], |rate| rate.steps());
    port.queue.has_steady_rate().then(|| WireCheck::new(rates, segments, shaper(port)))
}

/// The shaper of a port: its queueing discipline, or the bucket of its boost.
fn shaper(port: &bufferscope_scenario::Port) -> Option<Shaper> {
    let boosted = || Some(Shaper { rate_bps: port.rate.as_ref()?.at(0), burst_bytes: port.boost?.bytes });
    [port.queue.shaper(), boosted()].into_iter().flatten().min_by_key(|shaper| shaper.rate_bps)
}

/// The bucket of a port's boost, as estimated from samples of what the port has sent.
#[derive(Debug)]
struct Tokens {
    bucket: TokenBucket,
    sent_bytes: u64,
}

impl Tokens {
    fn of(port: &bufferscope_scenario::Port) -> Option<Self> {
        let mut bucket = TokenBucket::new(port.boost?, port.rate.as_ref()?.at(0));
        // The rate at the start is recorded with those of the other ports.
        bucket.take_rates(0).for_each(drop);
        Some(Self { bucket, sent_bytes: 0 })
    }

    /// The steps of the rate since the last sample.
    fn see(&mut self, t_ns: u64, sent_bytes: u64) -> impl Iterator<Item = RateStep> {
        self.bucket.saw_sent(t_ns, sent_bytes.saturating_sub(self.sent_bytes));
        self.sent_bytes = sent_bytes;
        self.bucket.take_rates(t_ns)
    }
}

impl Port {
    /// Reads the counters of the inner disciplines, after those of the outer one. So each drop of an inner discipline
    /// that the outer one has counted is also in the inner one's counters.
    fn read_inner(&self, netlink: &mut Netlink) -> io::Result<Vec<QdiscStats>> {
        self.inner.iter().map(|inner| qdisc_stats::read_one(netlink, self.interface, inner.handle)).collect()
    }

    /// `inner` are the counters of the inner disciplines, each before those inside it.
    fn record(
        &mut self,
        t_ns: u64,
        stats: &QdiscStats,
        inner: &[QdiscStats],
        context: &mut RunContext<'_>,
    ) -> io::Result<()> {
        let mut drops_inside = vec![0; 1 + inner.len()];
        for (index, (own, stats)) in self.inner.iter_mut().zip(inner).enumerate().rev() {
            own.drops
                .report(&without(stats, drops_inside[1 + index]), t_ns, self.name, |row| context.recorder.dropped(row));
            drops_inside[own.parent] += stats.drops.max(drops_inside[1 + index]);
        }
        self.drops.report(&without(stats, drops_inside[0]), t_ns, self.name, |row| context.recorder.dropped(row));
        let row = QueueRow {
            t_ns,
            port: self.name,
            layer: Layer::Qdisc,
            packets: stats.packets,
            bytes: stats.bytes,
            dropped: stats.drops.max(drops_inside[0]),
            marked: [stats].into_iter().chain(inner).map(drop_counters::marked).sum(),
            sent_packets: self.sent_packets.advance(stats.sent_packets as u32),
            sent_bytes: stats.sent_bytes,
            airtime_ns: None,
            transmissions: None,
            limit_bytes: None,
            inflight_bytes: None,
        };
        context.recorder.queue(row);
        let wire_bytes = match &self.gauge {
            None => stats.sent_bytes,
            Some(gauge) => {
                let arrived = gauge.read()?;
                context.recorder.queue(ring_row(row, arrived, gauge.read_limits()?));
                // On a card's wire every packet takes the time of a full one.
                arrived.packets * gauge.frame_bytes
            }
        };
        if let Some(boost) = &mut self.boost {
            for RateStep { from_ns, bits_per_second } in boost.see(t_ns, wire_bytes) {
                context.recorder.capacity(CapacityRow { t_ns: from_ns, port: self.name, rate_bps: bits_per_second });
            }
        }
        if let Some(check) = &mut self.check {
            check.see(Seen { t_ns, packets: stats.packets, bytes: stats.bytes, sent_bytes: wire_bytes });
        }
        Ok(())
    }
}

/// Counters without the drops of inner disciplines. What is left is the discipline's own.
fn without(stats: &QdiscStats, drops_inside: u64) -> QdiscStats {
    QdiscStats { drops: stats.drops.saturating_sub(drops_inside), ..*stats }
}

impl Inner {
    fn new(inner: &InnerQdisc) -> Self {
        Self { handle: inner.handle, parent: inner.parent, drops: DropCounters::default() }
    }
}

/// The row of the ring below a queue. The ring contains what the queue has passed on, minus what has arrived at the
/// wire's other end. A ring drops nothing.
fn ring_row(queue: QueueRow, arrived: Arrived, allowed: Option<Allowed>) -> QueueRow {
    QueueRow {
        layer: Layer::Ring,
        packets: queue.sent_packets.saturating_sub(arrived.packets),
        bytes: queue.sent_bytes.saturating_sub(arrived.bytes),
        dropped: 0,
        marked: 0,
        sent_packets: arrived.packets,
        sent_bytes: arrived.bytes,
        limit_bytes: allowed.map(|allowed| allowed.limit_bytes),
        inflight_bytes: allowed.map(|allowed| allowed.inflight_bytes),
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
