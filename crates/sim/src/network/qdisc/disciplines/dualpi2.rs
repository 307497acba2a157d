//! `dualpi2`: dual-queue coupled active queue management. Packets of scalable congestion controls wait in a queue of their
//! own, which a step threshold keeps short; the same controller sets the probability of marks for both queues.
//!
//! Source: RFC 9332 with its appendix A, as implemented in Linux 6.18 (`net/sched/sch_dualpi2.c`). The kernel differs from
//! the RFC's pseudocode, and this file follows the kernel:
//! - the base probability `p` is an integer of 32 bits and may reach certainty. Packets of the C queue are dropped or
//!   marked with p², decided by two draws, and those of the L queue with k·p. Above k·p = 1, the overload, packets of
//!   both queues are dropped with p², and those of the L queue that are not are marked;
//! - the controller uses the larger of the two queues' delays. The delay of a queue is the time for which its first
//!   packet has waited;
//! - the native signal of the L queue is a step instead of a ramp, in addition to the coupled signal. With
//!   `min_qlen_step = 0`, the default, it also applies to a packet that found the L queue empty, which the RFC exempts
//!   (`Th_len`);
//! - the two queues are served by weighted round robin instead of a time-shifted FIFO;
//! - packets are neither marked nor dropped while the backlog is less than two full frames.
//!
//! The time spent in a queue counts for the step from when the packet is enqueued to when it is dequeued.
//!
//! Departs:
//! - the timer is exact. The kernel restarts its timer when it has been served, some microseconds late;
//! - filters and priorities, which can move packets of other transports to the L queue, are not modelled, so all there
//!   support ECN;
//! - after the limit was lowered, the kernel computes the delay from the first dropped packet until another packet
//!   leaves;
//! - if the link's overhead is not 14 bytes, the kernel ignores it for segments that it has split off.
//!
//! In its first version, the kernel's file miscounted split packets in the disciplines above it. This has been
//! corrected since.

use std::collections::VecDeque;

use bufferscope_programs::Uniform;
use bufferscope_scenario::sizes::FRAME_BYTES;
use bufferscope_scenario::{self as scenario, Encapsulation, Reason, StepThreshold};

use crate::network::pool::{Backlog, Fifo, PacketId, Pool};
use crate::network::qdisc::shared::segments::each_segment;
use crate::network::qdisc::{Attachment, Dequeued, Discipline, QdiscEvents};
use crate::network::traffic_class::Ecn;
use crate::network::truesize::truesize;
use crate::network::xmit::Xmit;
use crate::random::{Random, Stream};

/// Certainty, as a probability (`MAX_PROB`).
const CERTAIN: u32 = u32::MAX;
const NS_PER_S: u64 = 1_000_000_000;
/// The controller multiplies weights with times in units of this many nanoseconds (`ALPHA_BETA_GRANULARITY`).
const GRAIN_NS: u64 = 64;
/// By how many bits weights, in 256ths of a hertz, are scaled down for these (`ALPHA_BETA_SCALING`).
const WEIGHT_SHIFT: u32 = 2;
/// Below this, nothing is dropped or marked at random.
const STANDING_BYTES: u64 = 2 * FRAME_BYTES as u64;

#[derive(Debug)]
pub(crate) struct Dualpi2 {
    /// The C queue.
    classic: Fifo,
    /// The L queue.
    scalable: Fifo,
    /// Boxed to keep the discipline small.
    state: Box<State>,
}

#[derive(Debug)]
struct State {
    settings: Settings,
    controller: Controller,
    /// Whether the step threshold applies to each packet of the L queue.
    applies_step: VecDeque<bool>,
    memory_bytes: u64,
    /// The next packet is from the C queue if this is positive.
    credit: i32,
    random: Random,
    /// When the timer is due.
    due_ns: u64,
}

/// The parameters as the kernel keeps them, except those of the controller.
#[derive(Debug)]
struct Settings {
    limit_packets: u32,
    memory_limit_bytes: u64,
    coupling_factor: u8,
    step_threshold: StepThreshold,
    min_qlen_step: u32,
    drops_on_overload: bool,
    drops_on_arrival: bool,
    any_ect: bool,
    /// In per cent.
    classic_weight: i32,
    splits: bool,
    link: Encapsulation,
}

/// The proportional integral controller.
#[derive(Debug)]
struct Controller {
    target_ns: u64,
    tupdate_ns: u64,
    alpha: u32,
    beta: u32,
    probability: u32,
    /// The delay at the last update.
    last_delay_ns: u64,
}

/// What happens to a packet at random.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Pass,
    Mark,
    Drop,
}

/// A packet taken out of one of the queues.
struct Taken {
    packet: PacketId,
    is_scalable: bool,
    applies_step: bool,
    /// By how much the credit changes if it is passed on.
    credit: i32,
}

impl Discipline for Dualpi2 {
    type Parameters = scenario::Dualpi2;

    const KEEPS_TIME: bool = true;

    fn new(parameters: &scenario::Dualpi2, attachment: Attachment) -> Result<Self, String> {
        let mut random = Random::new(attachment.seed, Stream::Qdisc(attachment.port));
        let settings = Settings::new(parameters, attachment.encapsulation);
        let controller = Controller::new(&parameters.controller);
        // If the network was built with it, the kernel's timer has been running since then, so its phase is arbitrary.
        let after_ns = if attachment.now_ns == 0 { random.below(controller.tupdate_ns) } else { controller.tupdate_ns };
        let state = State {
            credit: settings.initial_credit(),
            settings,
            controller,
            applies_step: VecDeque::new(),
            memory_bytes: 0,
            random,
            due_ns: attachment.now_ns + after_ns,
        };
        Ok(Self { classic: Fifo::new(), scalable: Fifo::new(), state: Box::new(state) })
    }

    fn enqueue(&mut self, packet: PacketId, _now_ns: u64, pool: &mut Pool, events: &mut QdiscEvents) -> Xmit {
        if !self.state.settings.splits {
            return self.enqueue_one(packet, pool, events);
        }
        let link = self.state.settings.link;
        each_segment(packet, &link, pool, events, |packet, pool, events| self.enqueue_one(packet, pool, events))
    }

    fn dequeue(&mut self, now_ns: u64, pool: &mut Pool, events: &mut QdiscEvents) -> Dequeued {
        while let Some(Taken { packet, is_scalable, applies_step, credit }) = self.take(pool) {
            if !self.state.settings.drops_on_arrival && self.signal(packet, is_scalable, pool, events) == Verdict::Drop
            {
                continue;
            }
            if applies_step && self.is_above_step(now_ns - pool.header(packet).at_ns) {
                events.mark(packet, Reason::STEP_MARK, pool);
            }
            self.state.credit += credit;
            return Dequeued::Packet(packet);
        }
        Dequeued::Nothing
    }

    /// `dualpi2_change`: the probability and the timer stay, the credit does not, and packets over a lowered limit are
    /// dropped from the heads, those of the C queue first.
    fn change(&mut self, to: Self, pool: &Pool, events: &mut QdiscEvents) {
        let state = &mut *self.state;
        state.controller.change(to.state.controller);
        state.settings = to.state.settings;
        state.credit = state.settings.initial_credit();
        while self.packets() > self.state.settings.limit_packets
            || self.state.memory_bytes > self.state.settings.memory_limit_bytes
        {
            let taken = if self.classic.is_empty() { self.pop_scalable(pool) } else { self.pop_classic(pool) };
            let Some(taken) = taken else { break };
            events.drop(taken.packet, Reason::OVERLIMIT);
        }
    }

    fn backlog(&self) -> Backlog {
        [&self.classic, &self.scalable].into_iter().map(Fifo::backlog).sum()
    }

    fn each_packet(&self, pool: &Pool, visit: &mut dyn FnMut(PacketId)) {
        self.classic.iter(pool).chain(self.scalable.iter(pool)).for_each(visit);
    }

    fn timer(&self) -> Option<u64> {
        Some(self.state.due_ns)
    }

    fn on_timer(&mut self, now_ns: u64, pool: &mut Pool, _events: &mut QdiscEvents) {
        let delay_ns = |queue: &Fifo| queue.front().map_or(0, |packet| now_ns - pool.header(packet).at_ns);
        let delay_ns = delay_ns(&self.classic).max(delay_ns(&self.scalable));
        let State { settings, controller, due_ns, .. } = &mut *self.state;
        controller.update(delay_ns);
        if !settings.drops_on_overload {
            controller.probability = controller.probability.min(CERTAIN / u32::from(settings.coupling_factor));
        }
        *due_ns = now_ns + controller.tupdate_ns;
    }
}

impl Dualpi2 {
    fn packets(&self) -> u32 {
        self.classic.packets() + self.scalable.packets()
    }

    /// Enqueues a packet as it is (`dualpi2_enqueue_skb`).
    fn enqueue_one(&mut self, packet: PacketId, pool: &mut Pool, events: &mut QdiscEvents) -> Xmit {
        let header = pool.header(packet);
        let (memory_bytes, settings) = (truesize(packet, pool), &self.state.settings);
        let is_scalable = settings.is_scalable(header.class.ecn());
        if self.packets() >= settings.limit_packets
            || self.state.memory_bytes + memory_bytes > settings.memory_limit_bytes
        {
            events.drop(packet, Reason::OVERLIMIT);
            return Xmit::Dropped;
        }
        if settings.drops_on_arrival && self.signal(packet, is_scalable, pool, events) == Verdict::Drop {
            // The kernel returns success to the sender.
            return Xmit::Orphaned;
        }
        let state = &mut *self.state;
        state.memory_bytes += memory_bytes;
        if is_scalable {
            state.applies_step.push_back(self.scalable.packets() >= state.settings.min_qlen_step);
            self.scalable.push(packet, pool);
        } else {
            self.classic.push(packet, pool);
        }
        Xmit::Queued
    }

    /// The next packet (`dequeue_packet`).
    fn take(&mut self, pool: &Pool) -> Option<Taken> {
        let (has_classic, has_scalable) = (!self.classic.is_empty(), !self.scalable.is_empty());
        let taken = if has_scalable && (!has_classic || self.state.credit <= 0) {
            self.pop_scalable(pool)
        } else {
            self.pop_classic(pool)
        };
        if taken.is_none() {
            self.state.credit = self.state.settings.initial_credit();
        }
        let mut taken = taken?;
        let classic_weight = self.state.settings.classic_weight;
        let weight = match (taken.is_scalable, has_classic, has_scalable) {
            (true, true, _) => classic_weight,
            (false, _, true) => classic_weight - 100,
            _ => 0,
        };
        taken.credit = weight * pool.header(taken.packet).frame_bytes as i32;
        Some(taken)
    }

    fn pop_classic(&mut self, pool: &Pool) -> Option<Taken> {
        let packet = self.classic.pop(pool)?;
        self.state.memory_bytes -= truesize(packet, pool);
        Some(Taken { packet, is_scalable: false, applies_step: false, credit: 0 })
    }

    fn pop_scalable(&mut self, pool: &Pool) -> Option<Taken> {
        let packet = self.scalable.pop(pool)?;
        self.state.memory_bytes -= truesize(packet, pool);
        let applies_step = self.state.applies_step.pop_front().unwrap_or(false);
        Some(Taken { packet, is_scalable: true, applies_step, credit: 0 })
    }

    /// Drops or marks a packet at random (`must_drop`).
    fn signal(&mut self, packet: PacketId, is_scalable: bool, pool: &mut Pool, events: &mut QdiscEvents) -> Verdict {
        if self.backlog().bytes < STANDING_BYTES {
            return Verdict::Pass;
        }
        let is_capable = pool.header(packet).class.ecn().is_capable();
        let verdict = if is_scalable { self.state.scalable_verdict() } else { self.state.classic_verdict(is_capable) };
        match verdict {
            Verdict::Pass => {}
            Verdict::Mark => _ = events.mark(packet, Reason::DUALPI2_MARK, pool),
            Verdict::Drop => events.drop(packet, Reason::DUALPI2),
        }
        verdict
    }

    /// Whether a packet that leaves the L queue after this time is to be marked (`do_step_aqm`).
    fn is_above_step(&self, delay_ns: u64) -> bool {
        match self.state.settings.step_threshold {
            StepThreshold::Time(most_ns) => delay_ns > most_ns.min(u32::MAX.into()),
            StepThreshold::Packets(most) => self.scalable.packets() > most,
        }
    }
}

impl State {
    /// The probability for the L queue, which can be more than certainty: an overload.
    fn coupled(&self) -> u64 {
        u64::from(self.controller.probability) * u64::from(self.settings.coupling_factor)
    }

    fn is_overloaded(&self) -> bool {
        self.coupled() > CERTAIN.into()
    }

    /// Draws once for the base probability, and again if that comes true.
    fn squared(&mut self) -> bool {
        let probability = self.controller.probability;
        self.roll(probability) && self.roll(probability)
    }

    fn roll(&mut self, probability: u32) -> bool {
        self.random.next_u32() <= probability
    }

    /// `dualpi2_classic_marking`.
    fn classic_verdict(&mut self, is_capable: bool) -> Verdict {
        match (self.squared(), is_capable && !self.is_overloaded()) {
            (false, _) => Verdict::Pass,
            (true, true) => Verdict::Mark,
            (true, false) => Verdict::Drop,
        }
    }

    /// `dualpi2_scalable_marking`.
    fn scalable_verdict(&mut self) -> Verdict {
        if self.is_overloaded() {
            let drops = self.settings.drops_on_overload && self.squared();
            return if drops { Verdict::Drop } else { Verdict::Mark };
        }
        let coupled = self.coupled() as u32;
        if self.roll(coupled) { Verdict::Mark } else { Verdict::Pass }
    }
}

impl Settings {
    fn new(parameters: &scenario::Dualpi2, link: Encapsulation) -> Self {
        let limit_bytes = u64::from(parameters.limit_packets) * STANDING_BYTES;
        Self {
            limit_packets: parameters.limit_packets,
            memory_limit_bytes: parameters.memlimit_bytes.map_or(limit_bytes.min(u32::MAX.into()), u64::from),
            coupling_factor: parameters.coupling_factor,
            step_threshold: parameters.step_threshold,
            min_qlen_step: parameters.min_qlen_step,
            drops_on_overload: parameters.drop_on_overload,
            drops_on_arrival: parameters.drop_enqueue,
            any_ect: parameters.any_ect,
            classic_weight: parameters.classic_protection_percent.into(),
            splits: parameters.split_gso,
            link,
        }
    }

    /// Whether a packet with this field belongs in the L queue.
    fn is_scalable(&self, ecn: Ecn) -> bool {
        match ecn {
            Ecn::NotEct => false,
            Ecn::Ect0 => self.any_ect,
            Ecn::Ect1 | Ecn::Ce => true,
        }
    }

    /// The credit after both queues were empty (`dualpi2_calculate_c_protection`).
    fn initial_credit(&self) -> i32 {
        FRAME_BYTES as i32 * (2 * self.classic_weight - 100)
    }
}

impl Controller {
    fn new(parameters: &scenario::Pi2) -> Self {
        Self {
            target_ns: parameters.target_ns / 1000 * 1000,
            tupdate_ns: (parameters.tupdate_ns / 1000 * 1000).min(u32::MAX.into()),
            alpha: scaled(parameters.alpha),
            beta: scaled(parameters.beta),
            probability: 0,
            last_delay_ns: 0,
        }
    }

    /// Takes over the parameters of `to`.
    fn change(&mut self, to: Self) {
        let Self { probability, last_delay_ns, .. } = *self;
        *self = Self { probability, last_delay_ns, ..to };
    }

    /// Adapts the probability to the delay (`calculate_probability`). As in the kernel, a step of more than certainty is
    /// cut to its low 32 bits.
    fn update(&mut self, delay_ns: u64) {
        let weighed =
            |from_ns: u64, weight: u32| (delay_ns as i64).wrapping_sub(from_ns as i64).wrapping_mul(weight.into());
        let change = weighed(self.target_ns, self.alpha).wrapping_add(weighed(self.last_delay_ns, self.beta));
        self.last_delay_ns = delay_ns;
        let step = (change.unsigned_abs() / GRAIN_NS) as u32;
        let before = self.probability;
        self.probability =
            if change > 0 { before.checked_add(step).unwrap_or(CERTAIN) } else { before.saturating_sub(step) };
    }
}

/// A weight in 256ths of a hertz as the controller uses it (`dualpi2_scale_alpha_beta`).
fn scaled(weight: u32) -> u32 {
    (((u64::from(weight) * u64::from(CERTAIN)) >> WEIGHT_SHIFT) / NS_PER_S) as u32
}

#[cfg(test)]
mod tests;
