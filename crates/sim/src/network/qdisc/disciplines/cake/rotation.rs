//! The list of old flows, which get a share of a quantum in turn until one of them may send (DRR++ in `cake_dequeue` of
//! `net/sched/sch_cake.c`).
//!
//! A host's quantum is divided among its flows, so in Linux all of them get their turns for about every packet. Here,
//! up to [`MOST_MEMBERS`] flows that follow one another form a bundle. While none of them may send, a bundle gets its
//! shares at once: it notes them for each pair of hosts, because the flows between the same two hosts have the same
//! share. Flows are visited one by one only in the bundle with the flow whose turn it is. The result is the same as
//! with individual visits.
//!
//! A lap is one pass through the list, from a mark that does not move. New members go behind the flow that was visited last.
//!
//! Departs: one random number rounds all shares of a lap, where the kernel draws one for each. A flow gets one share in a
//! lap, so the shares of each flow are as random as in the kernel, and independent of one another. Those of different flows
//! are not.

/// Most flows in a bundle. A packet requires visits to about this many flows, and to all bundles.
const MOST_MEMBERS: usize = 32;
/// Neighbouring bundles with at most this many members in total are merged.
const MERGED_MEMBERS: usize = MOST_MEMBERS * 3 / 4;
/// Most pairs of hosts in a bundle.
const MOST_PAIRS: usize = 4;

/// Rows of a flow in the tables of sending and receiving hosts.
pub(super) type Hosts = [u16; 2];

/// The old flows, in order.
#[derive(Debug)]
pub(super) struct Rotation {
    /// None is empty.
    bundles: Vec<Bundle>,
    /// The bundle and the member that are visited next. At the end of a lap, it is behind the last bundle.
    bundle: usize,
    member: usize,
    /// Whether it is the turn of this member; then the caller of [`turn`](Self::turn) keeps its deficit.
    is_taken: bool,
    /// No flow of the bundle that has been visited in this lap has a deficit above this.
    most_visited: i32,
    /// The random number by which shares are rounded in this lap, in 65536ths of a byte.
    dither: u32,
}

/// Flows that follow one another.
#[derive(Debug)]
struct Bundle {
    /// No member that is still to be visited in this lap has a deficit above this.
    most: i32,
    pairs_used: usize,
    pairs: [Pair; MOST_PAIRS],
    members: Vec<Member>,
}

/// A pair of hosts.
#[derive(Clone, Copy, Debug, Default)]
struct Pair {
    hosts: Hosts,
    /// What has been added to the deficit of each of its flows. In a long run this wraps, and so do the members' deficits
    /// without it; the sums don't.
    given: i32,
}

/// A flow.
#[derive(Clone, Copy, Debug)]
struct Member {
    /// Its deficit without the shares that the bundle has given to the pair.
    deficit: i32,
    flow: u16,
    /// Its index among the pairs.
    pair: u16,
}

impl Rotation {
    pub(super) fn new() -> Self {
        Self { bundles: Vec::new(), bundle: 0, member: 0, is_taken: false, most_visited: i32::MIN, dither: 0 }
    }

    /// The flow whose turn it is, if it has been [taken](Self::turn).
    #[inline]
    pub(super) fn taken(&self) -> Option<u16> {
        self.is_taken.then(|| self.bundles[self.bundle].members[self.member].flow)
    }

    /// The flow that was taken has used up its deficit. It gets its share of this lap, and goes to the end.
    #[inline]
    pub(super) fn put_back(&mut self, deficit: i32, scaled_share: impl FnOnce(Hosts) -> u32) {
        let bundle = &mut self.bundles[self.bundle];
        let member = &mut bundle.members[self.member];
        let pair = &bundle.pairs[usize::from(member.pair)];
        let deficit = deficit + rounded(scaled_share(pair.hosts), self.dither);
        member.deficit = deficit.wrapping_sub(pair.given);
        self.most_visited = self.most_visited.max(deficit);
        self.member += 1;
        self.is_taken = false;
    }

    /// The flow that was taken leaves.
    pub(super) fn remove_taken(&mut self) {
        self.is_taken = false;
        let members = &mut self.bundles[self.bundle].members;
        members.remove(self.member);
        if members.is_empty() {
            self.bundles.remove(self.bundle);
        } else {
            self.merge(self.bundle);
        }
        if let Some(previous) = self.bundle.checked_sub(1) {
            self.merge(previous);
        }
    }

    /// Takes the next flow that may send, with its deficit; `None` if there is no flow. The others get shares of the quantum
    /// of their hosts: the argument is what that is in 65536ths of a byte. None may be taken.
    #[inline]
    pub(super) fn turn(
        &mut self,
        mut scaled_share: impl FnMut(Hosts) -> u32,
        mut dither: impl FnMut() -> u32,
    ) -> Option<(u16, i32)> {
        debug_assert!(!self.is_taken);
        if self.bundles.is_empty() {
            return None;
        }
        loop {
            let Some(bundle) = self.bundles.get_mut(self.bundle) else {
                (self.bundle, self.member, self.dither) = (0, 0, dither());
                continue;
            };
            let share = |hosts| rounded(scaled_share(hosts), self.dither);
            if self.member == 0 && bundle.most <= 0 {
                bundle.give(share);
            } else {
                let most_visited = if self.member == 0 { i32::MIN } else { self.most_visited };
                (self.member, self.most_visited) = bundle.visit(self.member, most_visited, share);
                if let Some(member) = bundle.members.get(self.member) {
                    self.is_taken = true;
                    return Some((member.flow, bundle.deficit(member)));
                }
                bundle.most = self.most_visited;
            }
            (self.bundle, self.member) = (self.bundle + 1, 0);
        }
    }

    /// Puts a flow at the end.
    pub(super) fn append(&mut self, flow: u16, hosts: Hosts, deficit: i32) {
        loop {
            // Behind the flow that was visited last.
            let (bundle, member) = match self.bundle.checked_sub(1) {
                Some(previous) if self.member == 0 => (previous, self.bundles[previous].members.len()),
                _ => (self.bundle, self.member),
            };
            let Some(found) = self.bundles.get_mut(bundle) else {
                return self.append_alone(bundle, flow, hosts, deficit);
            };
            if found.members.len() == MOST_MEMBERS {
                self.split(bundle, MOST_MEMBERS / 2);
            } else if found.insert(member, flow, hosts, deficit) {
                if bundle == self.bundle {
                    self.most_visited = if member == 0 { deficit } else { self.most_visited.max(deficit) };
                    self.member += 1;
                }
                return;
            } else if member == 0 {
                return self.append_alone(bundle, flow, hosts, deficit);
            } else if member == found.members.len() {
                return self.append_alone(bundle + 1, flow, hosts, deficit);
            } else {
                self.split(bundle, member);
            }
        }
    }

    /// Puts a flow into a bundle of its own, which is visited in the next lap.
    fn append_alone(&mut self, bundle: usize, flow: u16, hosts: Hosts, deficit: i32) {
        let mut alone =
            Bundle { most: i32::MIN, pairs_used: 0, pairs: [Pair::default(); MOST_PAIRS], members: Vec::new() };
        alone.insert(0, flow, hosts, deficit);
        if self.member > 0 {
            self.bundles[self.bundle].most = self.most_visited;
        }
        self.bundles.insert(bundle, alone);
        (self.bundle, self.member) = (bundle + 1, 0);
    }

    /// The hosts of a flow have changed, because another flow uses its queue now.
    pub(super) fn change_hosts(&mut self, flow: u16, hosts: Hosts) {
        let index =
            |(index, bundle): (usize, &Bundle)| Some((index, bundle.members.iter().position(|m| m.flow == flow)?));
        let Some((bundle, member)) = self.bundles.iter().enumerate().find_map(index) else { return };
        if self.bundles[bundle].change_hosts(member, hosts) {
            return;
        }
        // It gets a bundle of its own.
        if member + 1 < self.bundles[bundle].members.len() {
            self.split(bundle, member + 1);
        }
        if member > 0 {
            self.split(bundle, member);
        }
        self.bundles[bundle + usize::from(member > 0)].change_hosts(0, hosts);
    }

    /// Makes two bundles of one, the second from this member on.
    fn split(&mut self, bundle: usize, member: usize) {
        let first = &mut self.bundles[bundle];
        let second = Bundle { members: first.members.split_off(member), ..*first };
        if self.bundle == bundle && self.member >= member {
            first.most = self.most_visited;
            (self.bundle, self.member) = (bundle + 1, self.member - member);
        } else if self.bundle > bundle {
            self.bundle += 1;
        }
        self.bundles.insert(bundle + 1, second);
    }

    /// Makes one bundle of this one and the next, if they are small.
    fn merge(&mut self, bundle: usize) {
        let Some([first, second]) = self.bundles.get_mut(bundle..).and_then(|rest| rest.first_chunk_mut()) else {
            return;
        };
        let (before, most) = (first.members.len(), first.most);
        if before + second.members.len() > MERGED_MEMBERS || !first.take_in(second) {
            return;
        }
        if self.bundle == bundle + 1 {
            // The members of the first have been visited.
            self.most_visited = if self.member == 0 { most } else { self.most_visited.max(most) };
            (self.bundle, self.member) = (bundle, before + self.member);
        } else if self.bundle > bundle {
            self.bundle -= 1;
        }
        self.bundles.remove(bundle + 1);
    }
}

impl Bundle {
    /// None of the flows may send: all get their shares.
    #[inline]
    fn give(&mut self, mut share: impl FnMut(Hosts) -> i32) {
        let mut largest = 0;
        for pair in &mut self.pairs[..self.pairs_used] {
            let share = share(pair.hosts);
            pair.given = pair.given.wrapping_add(share);
            largest = largest.max(share);
        }
        self.most += largest;
    }

    /// Gives shares to the flows from this one on, until one may send, or to all of them. Returns the index of that
    /// one, and what no flow in front of it exceeds.
    #[inline]
    fn visit(&mut self, from: usize, mut most_visited: i32, mut share: impl FnMut(Hosts) -> i32) -> (usize, i32) {
        let mut at = from;
        let mut pass = |member: &mut Member, given: i32, share: i32| {
            let deficit = member.deficit.wrapping_add(given);
            let may_send = deficit > 0;
            if !may_send {
                member.deficit = member.deficit.wrapping_add(share);
                most_visited = most_visited.max(deficit + share);
                at += 1;
            }
            may_send
        };
        if let [Pair { hosts, given }] = self.pairs[..self.pairs_used] {
            let share = share(hosts);
            self.members[from..].iter_mut().any(|member| pass(member, given, share));
        } else {
            let mut shares = [0; MOST_PAIRS];
            for (share_of, pair) in shares.iter_mut().zip(&self.pairs[..self.pairs_used]) {
                *share_of = share(pair.hosts);
            }
            let due = &mut self.members[from..];
            due.iter_mut().any(|member| {
                let pair = usize::from(member.pair);
                pass(member, self.pairs[pair].given, shares[pair])
            });
        }
        (at, most_visited)
    }

    /// The deficit of a member.
    #[inline]
    fn deficit(&self, member: &Member) -> i32 {
        member.deficit.wrapping_add(self.pairs[usize::from(member.pair)].given)
    }

    /// Puts a flow at this index. Returns false if there would be too many pairs of hosts.
    #[inline]
    fn insert(&mut self, at: usize, flow: u16, hosts: Hosts, deficit: i32) -> bool {
        let Some(member) = self.member(flow, hosts, deficit) else { return false };
        self.members.insert(at, member);
        true
    }

    /// A flow as a member. `None` if there would be too many pairs of hosts.
    #[inline]
    fn member(&mut self, flow: u16, hosts: Hosts, deficit: i32) -> Option<Member> {
        let pair = self.pair(hosts)?;
        self.most = self.most.max(deficit);
        Some(Member { deficit: deficit.wrapping_sub(self.pairs[pair].given), flow, pair: pair as u16 })
    }

    /// The index of a pair of hosts, perhaps that of one without flows. `None` if there would be too many.
    #[inline]
    fn pair(&mut self, hosts: Hosts) -> Option<usize> {
        if let Some(known) = self.pairs[..self.pairs_used].iter().position(|pair| pair.hosts == hosts) {
            return Some(known);
        }
        let has_flows = |pair: usize| self.members.iter().any(|member| usize::from(member.pair) == pair);
        let index = (0..MOST_PAIRS).find(|pair| *pair >= self.pairs_used || !has_flows(*pair))?;
        self.pairs_used = self.pairs_used.max(index + 1);
        self.pairs[index] = Pair { hosts, given: 0 };
        Some(index)
    }

    /// Returns false if there would be too many pairs of hosts.
    fn change_hosts(&mut self, member: usize, hosts: Hosts) -> bool {
        let old = self.members[member];
        let Some(changed) = self.member(old.flow, hosts, self.deficit(&old)) else { return false };
        self.members[member] = changed;
        true
    }

    /// Takes the flows of the next bundle, or none if there would be too many pairs of hosts.
    fn take_in(&mut self, next: &Self) -> bool {
        let before = self.members.len();
        let fits = next.members.iter().all(|member| {
            let hosts = next.pairs[usize::from(member.pair)].hosts;
            self.insert(self.members.len(), member.flow, hosts, next.deficit(member))
        });
        if !fits {
            self.members.truncate(before);
        }
        fits
    }
}

/// A share in whole bytes.
#[inline]
pub(super) fn rounded(scaled_share: u32, dither: u32) -> i32 {
    ((scaled_share + dither) >> 16) as i32
}

#[cfg(test)]
mod tests;
