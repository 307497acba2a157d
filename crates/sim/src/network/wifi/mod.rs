//! Wi-Fi: ports that share a half-duplex channel.
//!
//! A port on the air has a [`Radio`] instead of a wire. Its link never accepts a packet from the port's queue. Instead,
//! a [`Medium`] takes packets out of the queues, puts them into aggregates, and puts those that arrive on the link's
//! delay line. [`airtime`] computes durations, [`contention`] models the access to the channel, [`scheduler`] chooses a
//! station, [`fifo`] is the driver of the `fifo` mode, and [`window`] tracks the frames in flight.
//!
//! Sources: "Ending the Anomaly" (Høiland-Jørgensen et al., USENIX ATC 2017); ath9k
//! (`drivers/net/wireless/ath/ath9k/xmit.c`) and mac80211 (`net/mac80211/tx.c`) of Linux 4.4 and 4.11.
//!
//! - As in ath9k, the hardware has two aggregates of each sender ([`HARDWARE_AGGREGATES`]), one of which may be on
//!   the air. An aggregate keeps the rate that it was made for.
//! - In the `fifo` mode the driver takes packets from the interface's queueing discipline and keeps them by station.
//! - In the `mac80211` mode an aggregate is filled from the station's own queue when the hardware has room for it.
//! - Lost frames are retransmitted in the station's next aggregate, before new ones. The whole aggregate fails if it
//!   collides, or if no frame arrives; then nothing acknowledges it.
//! - A packet leaves the port when it arrives in order, with the last bit of its aggregate. It counts as part of the
//!   driver until then, and so do those that wait in the receiver for an earlier one.
//!
//! Departures: there is one access category (BE). The airtime of a station's transmissions is charged only if they
//! arrive. Airtime queue limits (AQL, Linux 5.5) are not modelled. The rate is what the link's `rate` says: there is no
//! rate control, and no slower rate for retransmissions. The 8192 packets that mac80211 allows for all stations are
//! divided among them. A discipline is not notified when the channel is idle, so the average of `red` does not decay
//! meanwhile.

mod airtime;
mod contention;
mod fifo;
mod radio;
mod scheduler;
mod window;

use std::collections::VecDeque;

use bufferscope_records::Layer;
use bufferscope_scenario::{Aggregate as Limits, NodeIndex, Reason, Scenario, WifiQueueing};

use self::airtime::Phy;
use self::contention::Backoff;
pub(crate) use self::radio::Radio;
use self::scheduler::{Number, Scheduler};
use self::window::{Contents, Most, Tag};
use super::Network;
use super::pool::PacketId;
use super::port::Port;
use super::qdisc::Dequeued;
use super::routes::{PortIndex, Routes};
use super::tap::Hook;
use crate::observation::recording::AnyRecording;
use crate::random::{Random, Stream};

/// Aggregates of a sender that the hardware has at most (`ATH_AGGR_MIN_QDEPTH`).
const HARDWARE_AGGREGATES: usize = 2;

/// A channel and the senders that share it.
#[derive(Debug)]
pub(crate) struct Medium {
    index: u16,
    /// The access point, then the stations.
    senders: Vec<Sender>,
    /// Packets that a driver holds at most, in the `fifo` mode.
    fifo_packets: Option<u32>,
    limits: Limits,
    retries: u32,
    air: Air,
    /// The senders that are on the air. There are several if they collide.
    on_air: Vec<u16>,
    random: Random,
}

#[derive(Clone, Copy, Debug)]
enum Air {
    /// The channel is idle from then on; it may be in the future, while an acknowledgement is sent.
    Idle {
        since_ns: u64,
    },
    Busy,
}

/// A station that transmits.
#[derive(Debug)]
struct Sender {
    node: NodeIndex,
    /// The port of each receiver, by number.
    ports: Vec<PortIndex>,
    /// Packets in the driver.
    held: u32,
    hardware: VecDeque<Aggregate>,
    scheduler: Scheduler,
    backoff: Backoff,
}

/// An aggregate in the hardware.
#[derive(Clone, Copy, Debug)]
struct Aggregate {
    receiver: Number,
    tag: Tag,
    data_ns: u64,
    acknowledgement_ns: u64,
}

/// The channels of a scenario. Their ports get radios, and the ports of an interface with a single queue are entered
/// through the first.
pub(super) fn media(
    scenario: &Scenario,
    seed: u64,
    ports: &mut [Port],
    routes: &mut Routes,
) -> Vec<Option<Box<Medium>>> {
    let number = |n: usize| u16::try_from(n).expect("a scenario is small");
    let mut media = Vec::with_capacity(scenario.wifi.len());
    for (index, wifi) in scenario.wifi.iter().enumerate() {
        let index = number(index);
        let (fifo_packets, is_fair) = match wifi.queueing {
            WifiQueueing::Fifo { size_packets } => (Some(size_packets), false),
            WifiQueueing::Mac80211 { airtime_fairness } => (None, airtime_fairness),
        };
        let mut random = Random::new(seed, Stream::Wifi(index.into()));
        let mut sender = |node, ports: Vec<PortIndex>, is_fair| Sender {
            node,
            held: 0,
            hardware: VecDeque::with_capacity(HARDWARE_AGGREGATES),
            scheduler: Scheduler::new(ports.len(), is_fair),
            backoff: Backoff::new(&mut random),
            ports,
        };
        let stations = wifi.stations.iter().map(|station| {
            let link = &scenario.links[usize::from(station.link)];
            let forward = 2 * PortIndex::from(station.link);
            let is_forward = link.ends[0] == wifi.access_point;
            if is_forward { (link.ends[1], forward, forward + 1) } else { (link.ends[0], forward + 1, forward) }
        });
        let stations: Vec<_> = stations.collect();
        let mut senders = vec![sender(wifi.access_point, stations.iter().map(|station| station.1).collect(), is_fair)];
        for (receiver, (&(node, down, up), station)) in stations.iter().zip(&wifi.stations).enumerate() {
            let own = number(senders.len());
            ports[down as usize].set_radio(Radio::new(index, 0, number(receiver), station.error_rate));
            ports[up as usize].set_radio(Radio::new(index, own, 0, station.error_rate));
            senders.push(sender(node, vec![up], false));
        }
        if fifo_packets.is_some() {
            senders[0].ports[1..].iter().for_each(|&other| ports[other as usize].queue = None);
            routes.join(wifi.access_point, &senders[0].ports);
        }
        media.push(Some(Box::new(Medium {
            index,
            senders,
            fifo_packets,
            limits: wifi.aggregate,
            retries: wifi.retries,
            air: Air::Idle { since_ns: 0 },
            on_air: Vec::new(),
            random,
        })));
    }
    media
}

impl Network {
    /// A port on the air may have packets to send that it did not have before.
    pub(super) fn radio_has_packets(&mut self, port: PortIndex, recording: &mut AnyRecording<'_>) {
        let Some(radio) = &mut self.ports[port as usize].radio else { return };
        radio.is_held_back = false;
        let (index, sender, receiver) = (radio.medium, radio.sender, radio.receiver);
        self.with_medium(index, |medium, net| {
            match medium.fifo_packets {
                Some(most) => medium.refill(sender, most, net, recording),
                None => {
                    medium.senders[usize::from(sender)].scheduler.activate(receiver);
                    medium.fill(sender, net, recording);
                }
            }
            medium.contend(net);
        });
    }

    /// The event of a channel is due.
    pub(crate) fn medium_is_due(&mut self, index: u16, recording: &mut AnyRecording<'_>) {
        self.with_medium(index, |medium, net| match medium.air {
            Air::Idle { since_ns } => medium.begin(since_ns, net),
            Air::Busy => medium.end(net, recording),
        });
    }

    fn with_medium(&mut self, index: u16, act: impl FnOnce(&mut Medium, &mut Self)) {
        let mut medium = self.media[usize::from(index)].take().expect("a channel is used by one at a time");
        act(&mut medium, self);
        self.media[usize::from(index)] = Some(medium);
    }
}

impl Medium {
    /// Gives the hardware of a sender as many aggregates as it takes, in the `mac80211` mode.
    fn fill(&mut self, sender: u16, net: &mut Network, recording: &mut AnyRecording<'_>) {
        while self.senders[usize::from(sender)].hardware.len() < HARDWARE_AGGREGATES {
            let Sender { scheduler, ports, .. } = &mut self.senders[usize::from(sender)];
            let has_frames = |receiver| net.ports[ports[usize::from(receiver)] as usize].has_frames(false);
            let Some(receiver) = scheduler.next(has_frames) else { return };
            self.pass_on(sender, receiver, net, recording);
        }
    }

    /// Gives the hardware of a sender an aggregate for a receiver. Returns whether there was one.
    fn pass_on(&mut self, sender: u16, receiver: Number, net: &mut Network, recording: &mut AnyRecording<'_>) -> bool {
        let port = self.senders[usize::from(sender)].ports[usize::from(receiver)];
        let aggregate = self.aggregate(receiver, port, net, recording);
        self.senders[usize::from(sender)].hardware.extend(aggregate);
        aggregate.is_some()
    }

    /// Makes an aggregate for a receiver.
    fn aggregate(
        &mut self,
        receiver: Number,
        port: PortIndex,
        net: &mut Network,
        recording: &mut AnyRecording<'_>,
    ) -> Option<Aggregate> {
        let now_ns = net.now();
        let phy = Phy::at(net.ports[port as usize].link.rate_bps(now_ns)?);
        let frames = if phy.aggregates { self.limits.frames } else { 1 };
        let most = Most { frames, bytes: phy.most_bytes(&self.limits) };
        let is_fifo = self.fifo_packets.is_some();
        let mut radio = net.ports[port as usize].radio.take()?;
        let mut window = std::mem::take(&mut radio.window);
        let contents = window.aggregate(phy, most, || {
            let packet = match is_fifo {
                true => radio.fifo.pop(&net.pool)?,
                false => {
                    let packet = take(port, net, recording)?;
                    net.show(packet, port, Hook::Ring);
                    radio.enter(packet, now_ns, &mut net.pool);
                    packet
                }
            };
            Some((packet, net.pool.header(packet).ip_bytes))
        });
        radio.window = window;
        // The queue holds its packets back, or drops them.
        radio.is_held_back = contents.is_none();
        net.ports[port as usize].radio = Some(radio);
        net.settle_qdisc_events(port, recording);
        let Contents { tag, bytes, .. } = contents?;
        let acknowledgement_ns = phy.acknowledgement_ns();
        Some(Aggregate { receiver, tag, data_ns: phy.data_ns(bytes), acknowledgement_ns })
    }

    /// Schedules the next transmission, if the channel is idle and a station has packets.
    fn contend(&self, net: &mut Network) {
        let Air::Idle { since_ns } = self.air else { return };
        let now_ns = net.now();
        let ready = self.senders.iter().filter(|sender| !sender.hardware.is_empty());
        if let Some(at_ns) = ready.map(|sender| sender.backoff.begins_at(since_ns, now_ns)).min() {
            net.events.schedule(net.slots.medium(self.index), at_ns);
        }
    }

    /// The senders that have waited long enough begin.
    fn begin(&mut self, since_ns: u64, net: &mut Network) {
        let now_ns = net.now();
        let mut data_ns = 0;
        for (index, sender) in (0..).zip(&mut self.senders) {
            let begins = sender.backoff.begins_at(since_ns, now_ns) == now_ns;
            match sender.hardware.front() {
                Some(aggregate) if begins => {
                    self.on_air.push(index);
                    data_ns = data_ns.max(aggregate.data_ns);
                    let port = sender.ports[usize::from(aggregate.receiver)];
                    let radio = net.ports[port as usize].radio.as_mut().expect("it sends on the air");
                    radio.counts.transmissions += 1;
                    radio.counts.airtime_ns += aggregate.data_ns;
                }
                _ => sender.backoff.interrupt(since_ns, now_ns),
            }
        }
        self.air = Air::Busy;
        net.events.schedule(net.slots.medium(self.index), now_ns + data_ns);
    }

    /// The last bit of the data was sent.
    fn end(&mut self, net: &mut Network, recording: &mut AnyRecording<'_>) {
        let collide = self.on_air.len() > 1;
        let mut silence_ns = 0;
        for index in std::mem::take(&mut self.on_air) {
            let sender = &mut self.senders[usize::from(index)];
            let aggregate = sender.hardware.pop_front().expect("it was on the air");
            silence_ns = silence_ns.max(aggregate.acknowledgement_ns);
            let is_acknowledged = self.conclude(index, aggregate, collide, net, recording);
            self.senders[usize::from(index)].backoff.renew(is_acknowledged, &mut self.random);
            match self.fifo_packets {
                // The driver makes room for packets, but takes them only after it has given the hardware what it has.
                Some(most) => {
                    self.take_turns(index, net, recording);
                    self.refill(index, most, net, recording);
                }
                None => self.fill(index, net, recording),
            }
        }
        self.air = Air::Idle { since_ns: net.now() + silence_ns };
        self.contend(net);
    }

    /// Finds out which frames of an aggregate have arrived, and passes those on that are in order. Returns whether
    /// any has.
    fn conclude(
        &mut self,
        index: u16,
        aggregate: Aggregate,
        collides: bool,
        net: &mut Network,
        recording: &mut AnyRecording<'_>,
    ) -> bool {
        let Aggregate { receiver, tag, data_ns, .. } = aggregate;
        let (now_ns, random) = (net.now(), &mut self.random);
        let port = self.senders[usize::from(index)].ports[usize::from(receiver)];
        let mut radio = net.ports[port as usize].radio.take().expect("it sends on the air");
        let mut is_acknowledged = false;
        let mut window = std::mem::take(&mut radio.window);
        window.sent(tag, || {
            let is_received = !collides && radio.passes(random);
            is_acknowledged |= is_received;
            is_received
        });
        radio.window = window;
        let mut left = 0;
        while let Some(packet) = radio.window.give_up(self.retries) {
            left += 1;
            radio.leave(packet, &net.pool);
            radio.counts.dropped += 1;
            net.show_drop(packet, port, Reason::RETRIES.word);
            net.record_drop_or_mark((port, Layer::Ring), packet, Reason::RETRIES, recording);
            net.drop(packet);
        }
        while let Some(packet) = radio.window.deliver() {
            left += 1;
            radio.leave(packet, &net.pool);
            radio.counts.sent_packets += 1;
            radio.counts.sent_bytes += u64::from(net.pool.header(packet).frame_bytes);
            recording.ring_sojourn(port, now_ns, now_ns - net.pool.header(packet).at_ns);
            net.note_departure(packet);
            net.propagate(packet, port, now_ns);
        }
        net.ports[port as usize].radio = Some(radio);
        let sender = &mut self.senders[usize::from(index)];
        if self.fifo_packets.is_some() {
            sender.held -= left;
        }
        if net.ports[port as usize].has_frames(self.fifo_packets.is_some()) {
            sender.scheduler.activate(receiver);
        }
        // The access point charges stations for what it sends and what it receives.
        match index {
            0 => self.senders[0].scheduler.charge(receiver, data_ns),
            station if is_acknowledged => self.senders[0].scheduler.charge(station - 1, data_ns),
            _ => {}
        }
        is_acknowledged
    }
}

/// Takes the next packet of a port's queue.
fn take(port: PortIndex, net: &mut Network, recording: &mut AnyRecording<'_>) -> Option<PacketId> {
    let now_ns = net.now();
    let queue = net.ports[port as usize].queue.as_mut()?;
    match queue.dequeue(now_ns, &mut net.pool, &mut net.qdisc_events) {
        Dequeued::Packet(packet) => {
            recording.sojourn(port, now_ns, now_ns - net.pool.header(packet).at_ns);
            Some(packet)
        }
        Dequeued::Nothing => None,
        Dequeued::NotBefore(at_ns) => {
            net.events.schedule(net.slots.queue(port), at_ns);
            None
        }
    }
}
