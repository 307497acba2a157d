//! The queues of a tin: which queue a flow has, how hosts are counted, and the lists in which queues wait for service
//! (`cake_hash`, `cake_get_flow_quantum` and the bulk flow counts of `net/sched/sch_cake.c`).
//!
//! A flow's hash chooses a set of eight queues. It gets the one that is reserved for it or else a free one, and shares one
//! only if all eight are taken. Sending and receiving hosts are found likewise in tables of their own.
//!
//! Departs: the hash of a host is computed from its number, not from its address.

use bufferscope_programs::{Uniform, scramble};
use bufferscope_scenario::FlowMode;

use super::cobalt::{Cobalt, Parameters};
use super::rotation::{Hosts, Rotation, rounded, window};
use crate::network::packet::Header;
use crate::network::pool::Fifo;
use crate::random::Random;

/// Number of queues, and of hosts on either side.
pub(super) const QUEUES: usize = 1024;
/// Queues in a set.
const WAYS: usize = 8;

/// Where a queue is in the rotation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Set {
    /// In no list.
    Free,
    /// It has not used up its first quantum.
    Sparse,
    /// Counted as sparse, but in the list of bulk queues: it used up its quantum and was empty.
    SparseWait,
    Bulk,
    /// Empty, and COBALT's state is not at rest.
    Decaying,
}

/// The lists of queues that are linked; the old ones have their [`Rotation`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum List {
    New,
    Decaying,
}

/// One queue.
#[derive(Debug)]
pub(super) struct Flow {
    pub(super) queue: Fifo,
    pub(super) cobalt: Cobalt,
    /// Valid unless the queue waits in the rotation, which knows its deficit then.
    pub(super) deficit: i32,
    pub(super) set: Set,
    hosts: Hosts,
}

/// A row of the table of hosts, which serves both sides.
#[derive(Clone, Copy, Debug, Default)]
struct Host {
    tags: [u32; 2],
    bulk_flows: [u16; 2],
}

/// A member of a list, or its head. Lists are circular.
#[derive(Clone, Copy, Debug)]
struct Link {
    next: u16,
    previous: u16,
}

/// The isolation of flows, as bits that are tested for each packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Isolation {
    by_flow: bool,
    /// Whether queues are distinguished by hosts on either side or, with `by_flow`, the hosts share fairly.
    by_host: [bool; 2],
}

/// The queues of a tin.
#[derive(Debug)]
pub(super) struct Flows {
    pub(super) flows: Vec<Flow>,
    /// The flows' hashes.
    tags: Vec<u32>,
    hosts: Vec<Host>,
    links: Vec<Link>,
    old: Rotation,
    pub(super) sparse: u32,
    pub(super) bulk: u32,
    pub(super) decaying: u32,
    /// Bytes that a queue may send per round.
    pub(super) quantum: u32,
    salt: u64,
}

/// Random numbers of 16 bits by which shares are rounded, four of each that is drawn.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Dithers {
    bits: u64,
    left: u32,
}

/// The quotients by which a quantum is divided among the flows of a host.
const QUOTIENTS: [u16; QUEUES + 1] = {
    let mut quotients = [u16::MAX; QUEUES + 1];
    let mut load = 1;
    while load <= QUEUES {
        quotients[load] = (65535 / load) as u16;
        load += 1;
    }
    quotients
};

impl Isolation {
    pub(super) fn new(mode: FlowMode) -> Self {
        Self { by_flow: mode.by_flow(), by_host: [mode.by_source(), mode.by_destination()] }
    }

    /// Whether hosts of this side share fairly.
    #[inline]
    fn counts(self, side: usize) -> bool {
        self.by_flow && self.by_host[side]
    }

    fn is_blind(self) -> bool {
        !self.by_flow && self.by_host == [false; 2]
    }
}

impl Dithers {
    #[inline]
    fn next(&mut self, random: &mut Random) -> i16 {
        if self.left == 0 {
            *self = Self { bits: random.bits(), left: 4 };
        }
        let dither = self.bits as i16;
        *self = Self { bits: self.bits >> 16, left: self.left - 1 };
        dither
    }
}

impl List {
    #[inline]
    fn head(self) -> u16 {
        QUEUES as u16 + self as u16
    }
}

impl Flows {
    pub(super) fn new(salt: u64) -> Self {
        let flow = || Flow { queue: Fifo::new(), cobalt: Cobalt::new(), deficit: 0, set: Set::Free, hosts: [0; 2] };
        Self {
            flows: std::iter::repeat_with(flow).take(QUEUES).collect(),
            tags: vec![0; QUEUES],
            hosts: vec![Host::default(); QUEUES],
            links: (0..QUEUES as u16 + 2).map(|own| Link { next: own, previous: own }).collect(),
            old: Rotation::new(),
            sparse: 0,
            bulk: 0,
            decaying: 0,
            quantum: 0,
            salt,
        }
    }

    /// Whether any queue is to be served that is not only decaying.
    #[inline]
    pub(super) fn any_active(&self) -> bool {
        self.sparse + self.bulk > 0
    }

    /// The queue of a packet.
    #[inline]
    pub(super) fn classify(&mut self, header: &Header, isolation: Isolation) -> usize {
        let hash = if isolation.by_flow {
            header.low_hash()
        } else if isolation.is_blind() {
            return 0;
        } else {
            let [source, destination] = self.host_hashes(header);
            let of = |side: usize, hash: u32| if isolation.by_host[side] { hash } else { 0 };
            of(0, source) ^ of(1, destination)
        };
        let direct = hash as usize % QUEUES;
        if self.tags[direct] == hash && self.flows[direct].set != Set::Free {
            return direct;
        }
        self.reserve(hash, header, isolation)
    }

    /// Finds the queue of a flow that is not in the queue of its hash, and its hosts.
    fn reserve(&mut self, hash: u32, header: &Header, isolation: Isolation) -> usize {
        let first = hash as usize % QUEUES;
        let free = |index: &usize| self.flows[*index].set == Set::Free;
        let reserved = ways(first).find(|index| self.tags[*index] == hash);
        let chosen = reserved.or_else(|| ways(first).find(free));
        let index = chosen.unwrap_or(first);
        let allocates = match reserved {
            Some(index) => free(&index),
            None => true,
        };
        if chosen.is_none() && self.flows[index].set == Set::Bulk {
            self.count_bulk(index, isolation, false);
        }
        self.tags[index] = hash;
        if allocates && (isolation.counts(0) || isolation.counts(1)) {
            let hashes = self.host_hashes(header);
            let mut rows = self.flows[index].hosts;
            for side in [0, 1].into_iter().filter(|side| isolation.counts(*side)) {
                rows[side] = self.host(side, hashes[side]);
            }
            let flow = &mut self.flows[index];
            if std::mem::replace(&mut flow.hosts, rows) != rows && matches!(flow.set, Set::SparseWait | Set::Bulk) {
                self.old.change_hosts(index as u16, rows);
            }
            if self.flows[index].set == Set::Bulk {
                self.count_bulk(index, isolation, true);
            }
        }
        index
    }

    /// The row of a host: its own, or else one without bulk flows, or else one that it shares with another host.
    fn host(&mut self, side: usize, hash: u32) -> u16 {
        let first = hash as usize % QUEUES;
        let known = ways(first).find(|row| self.hosts[*row].tags[side] == hash);
        let free = || ways(first).find(|row| self.hosts[*row].bulk_flows[side] == 0);
        let row = known.or_else(free).unwrap_or(first);
        self.hosts[row].tags[side] = hash;
        row as u16
    }

    fn host_hashes(&self, header: &Header) -> [u32; 2] {
        let hash = |side: u64, host: u16| (scramble(self.salt ^ side << 32 ^ u64::from(host)) >> 32) as u32;
        [hash(0, header.source), hash(1, header.destination)]
    }

    /// Adds a queue to the bulk queues of its hosts, or removes it.
    pub(super) fn count_bulk(&mut self, index: usize, isolation: Isolation, more: bool) {
        let rows = self.flows[index].hosts;
        for side in [0, 1].into_iter().filter(|side| isolation.counts(*side)) {
            let count = &mut self.hosts[usize::from(rows[side])].bulk_flows[side];
            *count = if more { (*count + 1).min(QUEUES as u16) } else { count.saturating_sub(1) };
        }
    }

    /// The bytes that a queue may send per round: its share of the quantum of its host, rounded at random.
    #[inline]
    pub(super) fn share(&self, index: usize, isolation: Isolation, dithers: &mut Dithers, random: &mut Random) -> i32 {
        rounded(scaled_share(self.quantum, &self.hosts, self.flows[index].hosts, isolation), dithers.next(random))
    }

    /// A queue has used up its quantum and is not empty.
    pub(super) fn become_bulk(&mut self, index: usize, isolation: Isolation) {
        self.flows[index].set = Set::Bulk;
        self.bulk += 1;
        self.count_bulk(index, isolation, true);
    }

    /// A queue was to be served and is empty. It stays in the rotation until COBALT's state is at rest.
    pub(super) fn retire(&mut self, index: usize, parameters: &Parameters, isolation: Isolation, now_ns: i64) {
        if self.old.taken() == Some(index as u16) {
            self.old.remove_taken();
        } else {
            self.unlink(index);
        }
        let flow = &mut self.flows[index];
        flow.cobalt.on_empty(parameters, now_ns);
        let set = if flow.cobalt.is_at_rest(now_ns) { Set::Free } else { Set::Decaying };
        match std::mem::replace(&mut flow.set, set) {
            Set::Bulk => {
                self.bulk -= 1;
                self.count_bulk(index, isolation, false);
            }
            Set::Sparse | Set::SparseWait => self.sparse -= 1,
            Set::Decaying => self.decaying -= 1,
            Set::Free => {}
        }
        if set == Set::Decaying {
            self.decaying += 1;
            self.append(index, List::Decaying);
        }
    }

    /// The first queue of a list.
    #[inline]
    pub(super) fn first(&self, list: List) -> Option<usize> {
        let head = list.head();
        let next = self.links[usize::from(head)].next;
        (next != head).then_some(usize::from(next))
    }

    /// Moves a queue to the end of a list.
    #[inline]
    pub(super) fn append(&mut self, index: usize, list: List) {
        self.unlink(index);
        let (head, own) = (list.head(), index as u16);
        let last = std::mem::replace(&mut self.links[usize::from(head)].previous, own);
        self.links[usize::from(last)].next = own;
        self.links[index] = Link { next: head, previous: last };
    }

    /// Moves a queue from its list to the end of the old ones.
    pub(super) fn append_old(&mut self, index: usize) {
        debug_assert_ne!(self.flows[index].set, Set::Decaying, "an empty queue has not used up its deficit");
        self.unlink(index);
        let Flow { hosts, deficit, .. } = self.flows[index];
        self.old.append(index as u16, hosts, deficit);
    }

    /// The old queue whose turn it is. The others that were due get their shares.
    #[inline]
    pub(super) fn next_old(
        &mut self,
        isolation: Isolation,
        dithers: &mut Dithers,
        random: &mut Random,
    ) -> Option<usize> {
        let Self { flows, hosts: table, old, quantum, .. } = self;
        // Most flows have the same hosts as the one before.
        let mut last = None;
        let mut share = |hosts| match last {
            Some((same, share)) if same == hosts => share,
            _ => {
                let share = scaled_share(*quantum, table, hosts, isolation);
                last = Some((hosts, share));
                share
            }
        };
        if let Some(taken) = old.taken() {
            let deficit = flows[usize::from(taken)].deficit;
            if deficit > 0 {
                return Some(taken.into());
            }
            old.put_back(deficit, |hosts| rounded(share(hosts), dithers.next(random)));
        }
        let (next, deficit) = old.turn(share, || window(dithers.next(random)))?;
        flows[usize::from(next)].deficit = deficit;
        Some(next.into())
    }

    /// Takes a queue out of its list, if it is in one.
    #[inline]
    pub(super) fn unlink(&mut self, index: usize) {
        let own = index as u16;
        let Link { next, previous } = std::mem::replace(&mut self.links[index], Link { next: own, previous: own });
        self.links[usize::from(previous)].next = next;
        self.links[usize::from(next)].previous = previous;
        self.links[index] = Link { next: own, previous: own };
    }
}

/// The share of a queue of these hosts before it is rounded, in 65536ths of a byte.
#[inline]
fn scaled_share(quantum: u32, table: &[Host], hosts: Hosts, isolation: Isolation) -> u32 {
    let bulk_flows =
        |side: usize| if isolation.counts(side) { table[usize::from(hosts[side])].bulk_flows[side] } else { 0 };
    let load = bulk_flows(0).max(bulk_flows(1)).max(1);
    quantum * u32::from(QUOTIENTS[usize::from(load)])
}

/// The members of a set, from this one on.
fn ways(first: usize) -> impl Iterator<Item = usize> {
    let set = first - first % WAYS;
    (0..WAYS).map(move |step| set + (first + step) % WAYS)
}

#[cfg(test)]
mod tests;
