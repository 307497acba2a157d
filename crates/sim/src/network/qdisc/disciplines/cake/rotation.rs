//! The list of old flows, which get a share of a quantum in turn until one of them may send (DRR++ in `cake_dequeue` of
//! `net/sched/sch_cake.c`).
//!
//! A host's quantum is divided among its flows, so in Linux all of them get their turns for about every packet. Here,
//! up to [`MOST_MEMBERS`] flows that follow one another form a bundle. While none of them may send, a bundle between the
//! same two hosts only counts for each flow how often its share was rounded up, for eight flows with one instruction.
//! The result is the same as with individual visits.
//!
//! A lap is one pass through the list, from a mark that does not move. New members go behind the flow that was visited last.
//!
//! Departs: the kernel draws a random number for each share that it rounds. Here, one random number chooses a window of a
//! table of such numbers, which has one for each flow of a bundle.

/// Most flows in a bundle.
const MOST_MEMBERS: usize = 32;
/// Neighbouring bundles with at most this many members in total are merged.
const MERGED_MEMBERS: usize = MOST_MEMBERS * 3 / 4;

/// Rows of a flow in the tables of sending and receiving hosts.
pub(super) type Hosts = [u16; 2];

/// Random numbers by which the shares of a bundle's flows are rounded, in 65536ths of a byte, less 32768: with a sign,
/// because processors compare those.
pub(super) type Window = [i16; MOST_MEMBERS];

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
}

/// Flows that follow one another.
#[derive(Debug)]
struct Bundle {
    /// No member that is still to be visited in this lap has a deficit above this.
    most: i32,
    /// The hosts of all members; `None` if they differ.
    same_hosts: Option<Hosts>,
    /// The members' deficits, without what was given in `laps`.
    deficits: Vec<i32>,
    members: Vec<Member>,
    /// Number of laps in which all members got shares that are not in their deficits yet.
    laps: u16,
    /// The sum of these shares, each rounded down.
    given: i32,
    /// How often the share of each member was rounded up in these laps.
    rounded_up: [u16; MOST_MEMBERS],
}

/// A flow.
#[derive(Clone, Copy, Debug)]
struct Member {
    flow: u16,
    hosts: Hosts,
}

impl Rotation {
    pub(super) fn new() -> Self {
        Self { bundles: Vec::new(), bundle: 0, member: 0, is_taken: false, most_visited: i32::MIN }
    }

    /// The flow whose turn it is, if it has been [taken](Self::turn).
    #[inline]
    pub(super) fn taken(&self) -> Option<u16> {
        self.is_taken.then(|| self.bundles[self.bundle].members[self.member].flow)
    }

    /// The flow that was taken has used up its deficit. It gets its share of this lap, and goes to the end.
    #[inline]
    pub(super) fn put_back(&mut self, deficit: i32, share: impl FnOnce(Hosts) -> i32) {
        let bundle = &mut self.bundles[self.bundle];
        let deficit = deficit + share(bundle.members[self.member].hosts);
        bundle.deficits[self.member] = deficit;
        self.most_visited = self.most_visited.max(deficit);
        self.member += 1;
        self.is_taken = false;
    }

    /// The flow that was taken leaves.
    pub(super) fn remove_taken(&mut self) {
        self.is_taken = false;
        let bundle = &mut self.bundles[self.bundle];
        bundle.remove(self.member);
        if bundle.members.is_empty() {
            self.bundles.remove(self.bundle);
        } else {
            self.merge(self.bundle);
        }
        if let Some(previous) = self.bundle.checked_sub(1) {
            self.merge(previous);
        }
    }

    /// Takes the next flow that may send, with its deficit; `None` if there is no flow. The others get shares of the quantum
    /// of their hosts: `scaled_share` is what that is in 65536ths of a byte. `dithers` draws the numbers that round it. No flow
    /// may be taken already.
    #[inline]
    pub(super) fn turn(
        &mut self,
        mut scaled_share: impl FnMut(Hosts) -> u32,
        mut dithers: impl FnMut() -> &'static Window,
    ) -> Option<(u16, i32)> {
        debug_assert!(!self.is_taken);
        if self.bundles.is_empty() {
            return None;
        }
        loop {
            let Some(bundle) = self.bundles.get_mut(self.bundle) else {
                (self.bundle, self.member) = (0, 0);
                continue;
            };
            let dithers = dithers();
            if self.member == 0 && bundle.most <= 0 {
                bundle.give_all(dithers, &mut scaled_share);
            } else {
                bundle.settle();
                let most_visited = if self.member == 0 { i32::MIN } else { self.most_visited };
                let next = bundle.next_to_send(self.member);
                let given = bundle.give(self.member..next, dithers, &mut scaled_share);
                (self.member, self.most_visited) = (next, most_visited.max(given));
                if let Some(member) = bundle.members.get(next) {
                    self.is_taken = true;
                    return Some((member.flow, bundle.deficits[next]));
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
            match self.bundles.get_mut(bundle) {
                None => self.bundles.push(Bundle::new()),
                Some(found) if found.members.len() == MOST_MEMBERS => self.split(bundle, MOST_MEMBERS / 2),
                Some(found) => {
                    found.insert(member, Member { flow, hosts }, deficit);
                    if bundle == self.bundle {
                        self.most_visited = if member == 0 { deficit } else { self.most_visited.max(deficit) };
                        self.member += 1;
                    }
                    return;
                }
            }
        }
    }

    /// The hosts of a flow have changed, because another flow uses its queue now.
    pub(super) fn change_hosts(&mut self, flow: u16, hosts: Hosts) {
        for bundle in &mut self.bundles {
            if let Some(member) = bundle.members.iter_mut().find(|member| member.flow == flow) {
                member.hosts = hosts;
                bundle.settle();
                bundle.compare_hosts();
                return;
            }
        }
    }

    /// Makes two bundles of one, the second from this member on.
    fn split(&mut self, bundle: usize, member: usize) {
        let first = &mut self.bundles[bundle];
        let second = first.split_off(member);
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
        if before + second.members.len() > MERGED_MEMBERS {
            return;
        }
        first.take_in(second);
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
    fn new() -> Self {
        Self {
            most: i32::MIN,
            same_hosts: None,
            deficits: Vec::with_capacity(MOST_MEMBERS),
            members: Vec::with_capacity(MOST_MEMBERS),
            laps: 0,
            given: 0,
            rounded_up: [0; MOST_MEMBERS],
        }
    }

    /// Gives all members their shares. None of them may send.
    #[inline]
    fn give_all(&mut self, dithers: &Window, scaled_share: &mut impl FnMut(Hosts) -> u32) {
        let Some(hosts) = self.same_hosts else {
            self.most = self.give(0..self.members.len(), dithers, scaled_share);
            return;
        };
        let scaled = scaled_share(hosts);
        // Compared as in `rounded`: the fraction and the dither make a whole byte.
        let highest = (0x7fff - i32::from(scaled as u16)) as i16;
        for (count, dither) in self.rounded_up.iter_mut().zip(dithers) {
            *count += u16::from(*dither > highest);
        }
        let whole = (scaled >> 16) as i32;
        self.laps += 1;
        self.given += whole;
        self.most += whole + 1;
        if self.most > 0 || self.laps == u16::MAX {
            self.settle();
            self.most = self.deficits.iter().copied().max().unwrap_or(i32::MIN);
        }
    }

    /// Adds to the deficits what the members were given in all laps.
    #[inline]
    fn settle(&mut self) {
        if self.laps == 0 {
            return;
        }
        for (deficit, count) in self.deficits.iter_mut().zip(&self.rounded_up) {
            *deficit += self.given + i32::from(*count);
        }
        (self.laps, self.given, self.rounded_up) = (0, 0, [0; MOST_MEMBERS]);
    }

    /// Gives these members their shares. Returns the largest of their deficits.
    #[inline]
    fn give(
        &mut self,
        members: std::ops::Range<usize>,
        dithers: &Window,
        scaled_share: &mut impl FnMut(Hosts) -> u32,
    ) -> i32 {
        let mut most = i32::MIN;
        let deficits = &mut self.deficits[members.clone()];
        if let Some(hosts) = self.same_hosts {
            let scaled = scaled_share(hosts);
            for (deficit, dither) in deficits.iter_mut().zip(dithers) {
                *deficit += rounded(scaled, *dither);
                most = most.max(*deficit);
            }
        } else {
            for ((deficit, dither), member) in deficits.iter_mut().zip(dithers).zip(&self.members[members]) {
                *deficit += rounded(scaled_share(member.hosts), *dither);
                most = most.max(*deficit);
            }
        }
        most
    }

    /// The first member from this one on that may send, or else the number of members.
    #[inline]
    fn next_to_send(&self, from: usize) -> usize {
        self.deficits[from..].iter().position(|deficit| *deficit > 0).map_or(self.members.len(), |more| from + more)
    }

    fn insert(&mut self, at: usize, member: Member, deficit: i32) {
        self.settle();
        self.same_hosts = match self.same_hosts {
            _ if self.members.is_empty() => Some(member.hosts),
            same => same.filter(|hosts| *hosts == member.hosts),
        };
        self.most = self.most.max(deficit);
        self.members.insert(at, member);
        self.deficits.insert(at, deficit);
    }

    fn remove(&mut self, at: usize) {
        self.settle();
        self.members.remove(at);
        self.deficits.remove(at);
        if self.same_hosts.is_none() {
            self.compare_hosts();
        }
    }

    fn split_off(&mut self, at: usize) -> Self {
        self.settle();
        let mut second = Self::new();
        second.most = self.most;
        second.members.extend(self.members.drain(at..));
        second.deficits.extend(self.deficits.drain(at..));
        self.compare_hosts();
        second.compare_hosts();
        second
    }

    /// Takes the flows of the next bundle.
    fn take_in(&mut self, next: &mut Self) {
        self.settle();
        next.settle();
        self.most = self.most.max(next.most);
        self.members.append(&mut next.members);
        self.deficits.append(&mut next.deficits);
        self.compare_hosts();
    }

    fn compare_hosts(&mut self) {
        let first = self.members.first().map(|member| member.hosts);
        self.same_hosts = first.filter(|first| self.members.iter().all(|member| member.hosts == *first));
    }
}

/// A share in whole bytes.
#[inline]
pub(super) fn rounded(scaled_share: u32, dither: i16) -> i32 {
    ((scaled_share + (i32::from(dither) + 0x8000) as u32) >> 16) as i32
}

/// The part of the table of random numbers that a number of 16 bits draws.
#[inline]
pub(super) fn window(random: i16) -> &'static Window {
    let start = usize::from(random as u16) % NUMBERS;
    TABLE[start..].first_chunk().expect("the table continues for as many numbers as a window has")
}

/// How many numbers there are before the table repeats.
const NUMBERS: usize = 4096;

/// Every sixteenth number of 16 bits in random order, so that their mean is exact. The first are repeated at the end.
static TABLE: [i16; NUMBERS + MOST_MEMBERS] = {
    let mut table = [0; NUMBERS + MOST_MEMBERS];
    let mut at = 0;
    while at < NUMBERS {
        table[at] = (at as i32 * 16 + 8 - 0x8000) as i16;
        at += 1;
    }
    // Fisher and Yates, with a linear congruential generator (Knuth, "The Art of Computer Programming", volume 2).
    let mut state: u64 = 1;
    while at > 1 {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let other = (((state >> 32) * at as u64) >> 32) as usize;
        at -= 1;
        (table[at], table[other]) = (table[other], table[at]);
    }
    let mut at = 0;
    while at < MOST_MEMBERS {
        table[NUMBERS + at] = table[at];
        at += 1;
    }
    table
};

#[cfg(test)]
mod tests;
