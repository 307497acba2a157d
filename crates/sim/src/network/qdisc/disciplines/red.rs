//! `red`: random early detection. Drops arriving packets at random; the larger the *average* backlog, the more it
//! drops.
//!
//! Source: Linux' `net/sched/sch_red.c`; the average and the choice of packets are in [`shared::red_core`](crate::network::qdisc::shared::red_core). The hard
//! limit is that of the inner `bfifo`. With `adaptive`, a timer adapts the probability every half second (125 jiffies).
//!
//! The timer is that of `tc` and kernels before 5.7. Since then, `tc` passes flags on in an attribute of their own
//! (`TCA_RED_FLAGS`), while the kernel still looks for this one in the old attribute, and never starts the timer:
//! there, `adaptive` changes nothing. A warning says so.
//!
//! Departures: a packet that is marked and then finds no room counts only as dropped. Filters of `qevent` are not
//! modelled.

use bufferscope_programs::Uniform;
use bufferscope_scenario::{self as scenario, Averaging, Reason};

use crate::network::pool::{Backlog, Fifo, PacketId, Pool};
use crate::network::qdisc::shared::red_core::{Idle, RedCore, Verdict, Watch};
use crate::network::qdisc::{Attachment, Dequeued, Discipline, QdiscEvents};
use crate::network::xmit::Xmit;
use crate::random::{Random, Stream};
use crate::timers::Timers;

/// How often the probability is adapted (`HZ / 2`).
const ADAPTED_EVERY_NS: u64 = 500_000_000;

const ADAPTS: &str = "red: `adaptive` has an effect in the simulator but none on Linux since 5.7, which does not find the \
                      flag where tc since 5.7 passes it on";

#[derive(Debug)]
pub(crate) struct Red {
    queue: Fifo,
    limit_bytes: u64,
    ecn: bool,
    harddrop: bool,
    nodrop: bool,
    early: RedCore,
    watch: Watch,
    idle: Idle,
    random: Random,
    /// If the probability is adapted. Boxed to keep the discipline small.
    timer: Option<Box<Timer>>,
}

#[derive(Debug)]
struct Timer {
    timers: Timers,
    due_ns: u64,
}

impl Discipline for Red {
    type Parameters = scenario::Red;

    fn keeps_time(parameters: &scenario::Red) -> bool {
        parameters.adaptive
    }

    fn new(parameters: &scenario::Red, attachment: Attachment) -> Result<Self, String> {
        let Averaging { curve, idle } = parameters.averaging().map_err(|error| format!("red: {error}"))?;
        let mut random = Random::new(attachment.seed, Stream::Qdisc(attachment.port));
        let timer = parameters.adaptive.then(|| Box::new(Timer::new(attachment, &mut random)));
        Ok(Self {
            queue: Fifo::new(),
            limit_bytes: parameters.limit_bytes,
            ecn: parameters.ecn,
            harddrop: parameters.harddrop,
            nodrop: parameters.nodrop,
            early: RedCore::new(curve),
            watch: Watch::default(),
            idle: Idle::new(idle, 0),
            random,
            timer,
        })
    }

    fn enqueue(&mut self, packet: PacketId, now_ns: u64, pool: &mut Pool, events: &mut QdiscEvents) -> Xmit {
        self.idle.end(&self.early, &mut self.watch, self.queue.bytes(), now_ns);
        let header = pool.header(packet);
        let fits = self.queue.bytes() + u64::from(header.frame_bytes) <= self.limit_bytes;
        let (reason, marks) = match self.early.verdict(&mut self.watch, &mut self.random) {
            Verdict::Pass => (None, false),
            Verdict::RedCore => (Some(Reason::RED_EARLY), self.ecn),
            Verdict::Forced => (Some(Reason::RED_FORCED), self.ecn && !self.harddrop),
        };
        if let Some(reason) = reason
            && !(marks && (self.nodrop || header.class.ecn().is_capable()))
        {
            events.drop(packet, reason);
            return Xmit::Congested;
        }
        if !fits {
            events.drop(packet, Reason::OVERLIMIT);
            return Xmit::Dropped;
        }
        if marks {
            events.mark(packet, Reason::RED_MARK, pool);
        }
        self.queue.push(packet, pool);
        Xmit::Queued
    }

    fn dequeue(&mut self, _now_ns: u64, pool: &mut Pool, _events: &mut QdiscEvents) -> Dequeued {
        self.queue.pop(pool).into()
    }

    fn idle_since(&mut self, at_ns: u64) {
        self.idle.begin(at_ns);
    }

    /// `red_peek` only looks at the inner `bfifo`, so the idle time does not begin.
    fn peeked_empty_since(&mut self, _at_ns: u64) {}

    /// `__red_change`: the average begins anew, and so does the inner `bfifo`. The packets of the old one are dropped.
    fn change(&mut self, to: Self, pool: &Pool, events: &mut QdiscEvents) {
        events.purge(&self.queue, pool);
        let Self { random, .. } = std::mem::replace(self, to);
        self.random = random;
    }

    fn backlog(&self) -> Backlog {
        self.queue.backlog()
    }

    fn peek(&self) -> Option<PacketId> {
        self.queue.front()
    }

    fn each_packet(&self, pool: &Pool, visit: &mut dyn FnMut(PacketId)) {
        self.queue.iter(pool).for_each(visit);
    }

    fn timer(&self) -> Option<u64> {
        self.timer.as_ref().map(|timer| timer.due_ns)
    }

    fn on_timer(&mut self, now_ns: u64, _pool: &mut Pool, _events: &mut QdiscEvents) {
        self.early.adapt(self.idle.aged(self.watch.average, now_ns));
        if let Some(timer) = &mut self.timer {
            timer.due_ns = timer.timers.expiry_ns(now_ns, ADAPTED_EVERY_NS);
        }
    }

    fn warning(&self) -> Option<String> {
        let adapts = self.timer.is_some().then(|| ADAPTS.to_owned());
        adapts.into_iter().chain(self.early.warning("red")).reduce(|both, warning| format!("{both}; {warning}"))
    }
}

impl Timer {
    /// If the network was built with the discipline, its timer has been running since then, so its phase is arbitrary.
    fn new(attachment: Attachment, random: &mut Random) -> Self {
        let timers = Timers::of_node(attachment.node, attachment.seed);
        let after_ns = if attachment.now_ns == 0 { random.below(ADAPTED_EVERY_NS) } else { ADAPTED_EVERY_NS };
        Self { timers, due_ns: timers.expiry_ns(attachment.now_ns, after_ns) }
    }
}

#[cfg(test)]
mod tests;
