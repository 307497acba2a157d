//! The driver of the `fifo` mode: ath9k in Linux 4.4, before mac80211 had queues for stations.
//!
//! It takes packets from the interface's queueing discipline while it has less than its limit for all stations together,
//! frames in aggregates included. It keeps them by station, and stations take turns.

use super::{HARDWARE_AGGREGATES, Medium, Sender, take};
use crate::network::Network;
use crate::network::routes::Step;
use crate::network::tap::Hook;
use crate::observation::recording::AnyRecording;

impl Medium {
    /// Gives the hardware of a sender as many aggregates as it takes, in the `fifo` mode.
    ///
    /// This is `ath_txq_schedule` of Linux 4.4, which runs after each aggregate that was sent and for each packet that
    /// the driver takes. It takes the first station off its list. If the hardware is full, it puts the station at the
    /// end, as if it had had its turn. So the order is not a fixed one: a station may be passed over, its packets
    /// collect meanwhile, and its next aggregate is larger. A station without packets leaves the list.
    pub(super) fn take_turns(&mut self, sender: u16, net: &mut Network, recording: &mut AnyRecording<'_>) {
        let of = usize::from(sender);
        let mut last = self.senders[of].scheduler.last();
        let mut has_sent = false;
        while let Some(receiver) = self.senders[of].scheduler.first() {
            let port = self.senders[of].ports[usize::from(receiver)] as usize;
            let is_full = self.senders[of].hardware.len() >= HARDWARE_AGGREGATES;
            let is_ready = net.ports[port].has_frames(true);
            if is_ready && !is_full {
                has_sent |= self.pass_on(sender, receiver, net, recording);
            }
            if net.ports[port].holds_frames() {
                self.senders[of].scheduler.activate(receiver);
            }
            if is_ready && is_full {
                return;
            }
            if Some(receiver) == last {
                if !has_sent {
                    return;
                }
                has_sent = false;
                last = self.senders[of].scheduler.last();
            }
        }
    }

    /// The driver takes packets from the interface's queueing discipline.
    pub(super) fn refill(&mut self, sender: u16, most: u32, net: &mut Network, recording: &mut AnyRecording<'_>) {
        let now_ns = net.now();
        let interface = self.senders[usize::from(sender)].ports[0];
        while self.senders[usize::from(sender)].held < most {
            let packet = take(interface, net, recording);
            net.settle_qdisc_events(interface, recording);
            let Some(packet) = packet else { break };
            let Sender { node, held, scheduler, .. } = &mut self.senders[usize::from(sender)];
            let destination = net.pool.header(packet).destination;
            let port = match net.routes.behind(destination, *node) {
                Step::Forward(port) => port,
                Step::Deliver => unreachable!("a packet that has arrived is not sent"),
            };
            *held += 1;
            net.show(packet, port, Hook::Ring);
            let radio = net.ports[port as usize].radio.as_mut().expect("the way leads over the air");
            radio.enter(packet, now_ns, &mut net.pool);
            radio.fifo.push(packet, &mut net.pool);
            scheduler.activate(radio.receiver);
            if port != interface {
                let interface = net.ports[interface as usize].radio.as_mut().expect("the interface has one");
                interface.counts.entered_elsewhere += 1;
            }
            self.take_turns(sender, net, recording);
        }
    }
}
