//! `htb`: a hierarchical token bucket. Classes form a tree. Each may send at a rate of its own, and up to its ceiling at
//! its parent's expense.
//!
//! Source: Linux `net/sched/sch_htb.c`, without hysteresis (`htb_hysteresis` is 0):
//! - tokens are nanoseconds; those of the rate and those of the ceiling may become negative, and then the class waits
//!   until they are not, in the order of time of its level;
//! - a class that has tokens is in a row of its level and prio; one that may only borrow is among the children of its
//!   parent (see [`tree`]);
//! - rows are served from the leaves to the root, and by prio within a level; the leaves of a row or parent take turns by
//!   their quanta;
//! - a packet is charged to its leaf and to all that contain it: those below the lender pay with the tokens of their
//!   ceilings only;
//! - packets without a class pass before all others, unshaped.
//!
//! Departs: the kernel stops catching up with the waiting classes after two jiffies of work; here work takes no time.

use bufferscope_scenario::{self as scenario, HtbClass, Reason};

use crate::network::pool::{Backlog, Fifo, PacketId, Pool};
use crate::network::qdisc::shared::classifier::Classifier;
use crate::network::qdisc::shared::fifo::tail_drop;
use crate::network::qdisc::shared::rate::Rate;
use crate::network::qdisc::{Attachment, Dequeued, Discipline, Qdisc, QdiscEvents, inside};
use crate::network::xmit::Xmit;

mod tree;

use tree::{Node, Tree};

const PRIOS: usize = scenario::Htb::PRIOS;
const LEVELS: usize = scenario::Htb::MOST_DEPTH;
/// Longest time whose tokens count (`mbuffer`).
const MOST_NS: i64 = 60_000_000_000;
/// How long a dequeue that found no event waits for the next, and how long a level without events is left alone.
const NO_EVENT_NS: u64 = 5_000_000_000;
const IDLE_LEVEL_NS: u64 = 1_000_000_000;

#[derive(Debug)]
pub(crate) struct Htb {
    /// Boxed to keep the discipline small.
    tree: Box<Tree>,
    /// The buckets of all classes, by index.
    buckets: Vec<Buckets>,
    /// The queues of all classes, by index; `None` for one that contains others.
    leaves: Vec<Option<Leaf>>,
    class_of: Classifier<Option<u16>>,
    direct: Fifo,
    direct_limit: u32,
    /// When each level must be looked at next (`near_ev_cache`).
    due_ns: [u64; LEVELS],
    /// The backlog of all classes.
    backlog: Backlog,
    warning: Option<String>,
}

/// The tokens of a class.
#[derive(Debug)]
struct Buckets {
    rate: Rate,
    ceil: Rate,
    buffer_ns: i64,
    cbuffer_ns: i64,
    tokens_ns: i64,
    ctokens_ns: i64,
    /// When they were last brought up to date.
    updated_at_ns: u64,
    mode: Mode,
    /// Until when it waits, while it is not [`Mode::CanSend`].
    waits_until_ns: Option<u64>,
}

/// The queue of a class without children.
#[derive(Debug)]
struct Leaf {
    qdisc: Qdisc,
    quantum: i32,
    /// What is left of its turn, by the level of its lender.
    deficit: [i32; LEVELS],
}

/// What a class may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// Not even borrow: its ceiling is reached.
    CantSend,
    /// Borrow from its parent: its rate is reached.
    MayBorrow,
    CanSend,
}

impl Discipline for Htb {
    type Parameters = scenario::Htb;

    const KEEPS_TIME: bool = true;

    fn new(parameters: &scenario::Htb, attachment: Attachment) -> Result<Self, String> {
        let tree = Tree::new(parameters)?;
        let is_class = |class: u16| usize::from(class) < parameters.classes.len();
        let named = parameters.filters.iter().map(|filter| filter.class).chain(parameters.default);
        if !named.into_iter().all(is_class) {
            return Err("htb: a filter or the default names a class that does not exist".to_owned());
        }
        let leaf = |(index, class): (u16, &HtbClass)| {
            let is_leaf = parameters.is_leaf(index);
            is_leaf.then(|| Leaf::new(class, parameters.r2q, attachment.inner(index))).transpose()
        };
        let leaves = (0..).zip(&parameters.classes).map(leaf).collect::<Result<Vec<_>, _>>()?;
        Ok(Self {
            tree: Box::new(tree),
            buckets: parameters.classes.iter().map(|class| Buckets::new(class, attachment.now_ns)).collect(),
            warning: warning(parameters, &leaves),
            leaves,
            class_of: class_of(parameters),
            direct: Fifo::new(),
            direct_limit: parameters.direct_qlen_packets,
            due_ns: [0; LEVELS],
            backlog: Backlog::default(),
        })
    }

    fn enqueue(&mut self, packet: PacketId, now_ns: u64, pool: &mut Pool, events: &mut QdiscEvents) -> Xmit {
        let Some(class) = self.class_of.of(pool.header(packet)) else {
            let fits = self.direct.packets() < self.direct_limit;
            return tail_drop(fits, packet, &mut self.direct, pool, events);
        };
        let xmit = self.watched(class, |leaf| leaf.enqueue(packet, now_ns, pool, events));
        if !self.is_empty(class) && !self.tree.is_active(class) {
            self.activate(class);
        }
        xmit
    }

    fn dequeue(&mut self, now_ns: u64, pool: &mut Pool, events: &mut QdiscEvents) -> Dequeued {
        if let Some(packet) = self.direct.pop(pool) {
            return Dequeued::Packet(packet);
        }
        if self.backlog.packets == 0 {
            return Dequeued::Nothing;
        }
        let mut next_ns = now_ns + NO_EVENT_NS;
        for level in 0..LEVELS {
            if now_ns >= self.due_ns[level] {
                self.due_ns[level] = self.wake(level, now_ns).unwrap_or(now_ns + IDLE_LEVEL_NS);
            }
            next_ns = next_ns.min(self.due_ns[level]);
            let mut prios = self.tree.prios(level);
            while prios != 0 {
                let prio = prios.trailing_zeros() as usize;
                prios &= prios - 1;
                match self.dequeue_from(level, prio, now_ns, pool, events) {
                    Dequeued::Packet(packet) => return Dequeued::Packet(packet),
                    Dequeued::NotBefore(at_ns) => next_ns = next_ns.min(at_ns),
                    Dequeued::Nothing => {}
                }
            }
        }
        if self.backlog.packets == 0 { Dequeued::Nothing } else { Dequeued::NotBefore(next_ns.max(now_ns + 1)) }
    }

    /// `htb_change_class`: with the same tree, classes keep their tokens and packets. Another tree begins anew, as `tc`
    /// would have to delete the old one.
    fn change(&mut self, to: Self, pool: &Pool, events: &mut QdiscEvents) {
        if !self.tree.has_form_of(&to.tree) {
            self.each_packet(pool, &mut |packet| events.drop(packet, Reason::PURGED));
            *self = to;
            return;
        }
        for (buckets, new) in self.buckets.iter_mut().zip(to.buckets) {
            (buckets.rate, buckets.ceil) = (new.rate, new.ceil);
            (buckets.buffer_ns, buckets.cbuffer_ns) = (new.buffer_ns, new.cbuffer_ns);
        }
        for (leaf, new) in self.leaves.iter_mut().zip(to.leaves) {
            if let (Some(leaf), Some(new)) = (leaf, new) {
                leaf.qdisc.change(new.qdisc, pool, events);
                leaf.quantum = new.quantum;
            }
        }
        self.tree.take_prios(&to.tree);
        (self.class_of, self.direct_limit, self.warning) = (to.class_of, to.direct_limit, to.warning);
        self.backlog = self.leaves.iter().flatten().map(|leaf| leaf.qdisc.backlog()).sum();
    }

    fn backlog(&self) -> Backlog {
        [self.backlog, self.direct.backlog()].into_iter().sum()
    }

    fn each_packet(&self, pool: &Pool, visit: &mut dyn FnMut(PacketId)) {
        self.direct.iter(pool).for_each(&mut *visit);
        self.leaves.iter().flatten().for_each(|leaf| leaf.qdisc.each_packet(pool, visit));
    }

    fn each_in_flow_queues(&self, pool: &Pool, visit: &mut dyn FnMut(u64, PacketId)) {
        let leaves = self.leaves.iter().enumerate().filter_map(|(index, leaf)| Some((index, leaf.as_ref()?)));
        for (index, leaf) in leaves {
            leaf.qdisc.each_in_flow_queues(pool, &mut |queue, packet| visit(inside(index, queue), packet));
        }
    }

    fn timer(&self) -> Option<u64> {
        self.leaves.iter().flatten().filter_map(|leaf| leaf.qdisc.timer()).min()
    }

    fn on_timer(&mut self, now_ns: u64, pool: &mut Pool, events: &mut QdiscEvents) {
        for class in 0..self.leaves.len() {
            let timer = self.leaves[class].as_ref().and_then(|leaf| leaf.qdisc.timer());
            if timer.is_some_and(|at_ns| at_ns <= now_ns) {
                self.watched(class as u16, |leaf| leaf.on_timer(now_ns, pool, events));
            }
        }
    }

    fn warning(&self) -> Option<String> {
        let inner = || self.leaves.iter().flatten().find_map(|leaf| leaf.qdisc.warning());
        self.warning.clone().or_else(inner)
    }
}

impl Htb {
    /// Serves the classes of a row in turn (`htb_dequeue_tree`).
    fn dequeue_from(
        &mut self,
        level: usize,
        prio: usize,
        now_ns: u64,
        pool: &mut Pool,
        events: &mut QdiscEvents,
    ) -> Dequeued {
        let Some(mut start) = self.tree.turn(level, prio) else { return Dequeued::Nothing };
        let (mut class, mut answer) = (start, Dequeued::Nothing);
        loop {
            // The queue may have dropped its last packet instead of passing it on.
            while self.is_empty(class) {
                self.deactivate(class);
                if self.tree.prios(level) & 1 << prio == 0 {
                    return answer;
                }
                let Some(next) = self.tree.turn(level, prio) else { return answer };
                if class == start {
                    start = next;
                }
                class = next;
            }
            match self.watched(class, |leaf| leaf.dequeue(now_ns, pool, events)) {
                Dequeued::Packet(packet) => {
                    self.account(class, level, prio, pool.header(packet).frame_bytes, now_ns);
                    return Dequeued::Packet(packet);
                }
                found => answer = answer.or_before(found),
            }
            self.tree.advance(class, level, prio);
            match self.tree.turn(level, prio) {
                Some(next) if next != start => class = next,
                _ => return answer,
            }
        }
    }

    /// Accounts for a packet of a class that leaves with tokens of this level.
    fn account(&mut self, class: u16, level: usize, prio: usize, frame_bytes: u32, now_ns: u64) {
        if let Some(leaf) = &mut self.leaves[usize::from(class)] {
            leaf.deficit[level] -= frame_bytes as i32;
            if leaf.deficit[level] < 0 {
                leaf.deficit[level] += leaf.quantum;
                self.tree.advance(class, level, prio);
            }
        }
        if self.is_empty(class) {
            self.deactivate(class);
        }
        self.charge(class, level, frame_bytes, now_ns);
    }

    /// `htb_charge_class`: all from the leaf to the root pay; those below the lender do not pay with the tokens of their
    /// rates.
    fn charge(&mut self, leaf: u16, level: usize, frame_bytes: u32, now_ns: u64) {
        let mut class = Some(leaf);
        while let Some(index) = class {
            let own_level = self.tree.level(index);
            let buckets = &mut self.buckets[usize::from(index)];
            buckets.take(own_level >= level, frame_bytes, now_ns);
            let before = buckets.mode;
            let wait_ns = self.change_mode(index, 0);
            let mode = self.buckets[usize::from(index)].mode;
            if before != mode {
                if before != Mode::CanSend {
                    self.stop_waiting(index);
                }
                if mode != Mode::CanSend {
                    self.wait(index, now_ns, wait_ns);
                }
            }
            class = self.tree.parent(index);
        }
    }

    /// Updates the waiting classes of a level whose time has come (`htb_do_events`). Returns the next time.
    fn wake(&mut self, level: usize, now_ns: u64) -> Option<u64> {
        loop {
            let (at_ns, class) = self.tree.first_waiting(level)?;
            if at_ns > now_ns {
                return Some(at_ns);
            }
            self.stop_waiting(class);
            let passed_ns = self.buckets[usize::from(class)].passed_ns(now_ns);
            let wait_ns = self.change_mode(class, passed_ns);
            if self.buckets[usize::from(class)].mode != Mode::CanSend {
                self.wait(class, now_ns, wait_ns);
            }
        }
    }

    /// Updates the mode of a class (`htb_change_class_mode`) as if `passed_ns` had passed since its tokens were last
    /// updated. Returns how long the mode lasts, unless the class may send.
    fn change_mode(&mut self, class: u16, passed_ns: i64) -> i64 {
        let buckets = &self.buckets[usize::from(class)];
        let (before, (mode, wait_ns)) = (buckets.mode, buckets.mode_after(passed_ns));
        if mode != before {
            let is_active = self.tree.is_active(class);
            if is_active && before != Mode::CantSend {
                self.unlink(class);
            }
            self.buckets[usize::from(class)].mode = mode;
            if is_active && mode != Mode::CantSend {
                self.link(class);
            }
        }
        wait_ns
    }

    fn activate(&mut self, class: u16) {
        self.tree.set_active(class);
        self.link(class);
    }

    fn deactivate(&mut self, class: u16) {
        if self.tree.is_active(class) {
            self.unlink(class);
            self.tree.set_inactive(class);
        }
    }

    /// Removes a class from the list from which it is served, and its ancestors too if necessary.
    fn unlink(&mut self, class: u16) {
        let buckets = &self.buckets;
        self.tree.unlink(class, |class| node(buckets[usize::from(class)].mode));
    }

    /// Adds a class to the list from which it is served, and its ancestors too if necessary.
    fn link(&mut self, class: u16) {
        let buckets = &self.buckets;
        self.tree.link(class, |class| node(buckets[usize::from(class)].mode));
    }

    /// `htb_add_to_wait_tree`.
    fn wait(&mut self, class: u16, now_ns: u64, wait_ns: i64) {
        let until_ns = now_ns + wait_ns.max(1) as u64;
        let level = self.tree.level(class);
        self.due_ns[level] = self.due_ns[level].min(until_ns);
        self.buckets[usize::from(class)].waits_until_ns = Some(until_ns);
        self.tree.wait(class, until_ns);
    }

    fn stop_waiting(&mut self, class: u16) {
        if let Some(until_ns) = self.buckets[usize::from(class)].waits_until_ns.take() {
            self.tree.stop_waiting(class, until_ns);
        }
    }

    fn is_empty(&self, class: u16) -> bool {
        self.leaves[usize::from(class)].as_ref().is_none_or(|leaf| leaf.qdisc.is_empty())
    }

    /// Calls `act` with the queue of a leaf, and updates the backlog of all classes.
    fn watched<T>(&mut self, class: u16, act: impl FnOnce(&mut Qdisc) -> T) -> T {
        let leaf = self.leaves[usize::from(class)].as_mut().expect("only leaves have queues");
        let before = leaf.qdisc.backlog();
        let result = act(&mut leaf.qdisc);
        self.backlog.adjust(before, leaf.qdisc.backlog());
        result
    }
}

impl Buckets {
    /// Full buckets.
    fn new(class: &HtbClass, now_ns: u64) -> Self {
        let (buffer_ns, cbuffer_ns) = (class.buffer_ns() as i64, class.cbuffer_ns() as i64);
        Self {
            rate: Rate::new(class.rate_bps),
            ceil: Rate::new(class.ceil_bps),
            buffer_ns,
            cbuffer_ns,
            tokens_ns: buffer_ns,
            ctokens_ns: cbuffer_ns,
            updated_at_ns: now_ns,
            mode: Mode::CanSend,
            waits_until_ns: None,
        }
    }

    fn passed_ns(&self, now_ns: u64) -> i64 {
        i64::try_from(now_ns - self.updated_at_ns).unwrap_or(MOST_NS).min(MOST_NS)
    }

    /// Adds the tokens that have arrived, and takes those of a frame. (`htb_accnt_tokens`, `htb_accnt_ctokens`; the
    /// tokens of a rate that does not pay are not limited to its bucket before the next time that it does.)
    fn take(&mut self, pays: bool, frame_bytes: u32, now_ns: u64) {
        let passed_ns = self.passed_ns(now_ns);
        let left = |tokens_ns: i64, size_ns: i64, rate: Rate| {
            let left_ns = (tokens_ns + passed_ns).min(size_ns) - rate.duration_ns(frame_bytes);
            if left_ns <= -MOST_NS { 1 - MOST_NS } else { left_ns }
        };
        self.tokens_ns =
            if pays { left(self.tokens_ns, self.buffer_ns, self.rate) } else { self.tokens_ns + passed_ns };
        self.ctokens_ns = left(self.ctokens_ns, self.cbuffer_ns, self.ceil);
        self.updated_at_ns = now_ns;
    }

    /// `htb_class_mode`, and how long it lasts.
    fn mode_after(&self, passed_ns: i64) -> (Mode, i64) {
        let (tokens_ns, ctokens_ns) = (self.tokens_ns + passed_ns, self.ctokens_ns + passed_ns);
        if ctokens_ns < 0 {
            (Mode::CantSend, -ctokens_ns)
        } else if tokens_ns >= 0 {
            (Mode::CanSend, 0)
        } else {
            (Mode::MayBorrow, -tokens_ns)
        }
    }
}

impl Leaf {
    fn new(class: &HtbClass, r2q: u32, attachment: Attachment) -> Result<Self, String> {
        let pfifo = scenario::Qdisc::Pfifo(scenario::Pfifo { limit_packets: scenario::Htb::LEAF_PACKETS });
        let qdisc = Qdisc::new(class.inner.as_deref().unwrap_or(&pfifo), attachment)?;
        let quantum = class.quantum_bytes.map_or_else(|| computed(class, r2q).clamp(1000, 200_000), u64::from);
        Ok(Self { qdisc, quantum: quantum.min(i32::MAX as u64) as i32, deficit: [0; LEVELS] })
    }
}

/// The list from which a class in this mode is served.
fn node(mode: Mode) -> Node {
    match mode {
        Mode::CanSend => Node::Row,
        Mode::MayBorrow => Node::Parent,
        Mode::CantSend => Node::Nowhere,
    }
}

/// The quantum that follows from a rate.
fn computed(class: &HtbClass, r2q: u32) -> u64 {
    class.rate_bps / 8 / u64::from(r2q.max(1))
}

/// The classifier of packets (`htb_classify`).
fn class_of(parameters: &scenario::Htb) -> Classifier<Option<u16>> {
    let leaf = |class: u16| parameters.is_leaf(class).then_some(class);
    let filters = parameters.filters.iter().filter_map(|filter| Some((&filter.chosen, Some(leaf(filter.class)?))));
    Classifier::new(filters, |_| parameters.default.and_then(leaf))
}

/// The kernel's warning about quanta out of bounds.
fn warning(parameters: &scenario::Htb, leaves: &[Option<Leaf>]) -> Option<String> {
    let leaves =
        parameters.classes.iter().zip(leaves).filter(|(class, leaf)| leaf.is_some() && class.quantum_bytes.is_none());
    leaves.map(|(class, _)| computed(class, parameters.r2q)).find(|quantum| !(1000..=200_000).contains(quantum)).map(
        |quantum| {
            let how = if quantum < 1000 { "small" } else { "big" };
            format!("htb: the quantum of a class would be {quantum} bytes, which is {how}; consider r2q or quantum")
        },
    )
}

#[cfg(test)]
mod tests;
