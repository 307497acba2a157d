//! The tree of HTB's classes: which are active, whose turn it is, and which wait for tokens.
//!
//! A class is *active* in a prio while packets wait in it, or in a class of that prio that borrows from it. An active
//! class that may send is in the *row* of its level and prio; one that may only borrow is among the *borrowers* of its
//! parent. Leaves have level 0. Above them, levels count down from the root, which has 7. Classes with the same level
//! and prio are in order of their numbers.

use bufferscope_scenario as scenario;

use super::{LEVELS, PRIOS};

#[derive(Debug)]
pub(super) struct Tree {
    members: Vec<Member>,
    rows: Box<[[Ring; PRIOS]; LEVELS]>,
    /// The prios, as bits, whose rows have classes.
    prios: [u8; LEVELS],
    /// The waiting classes of each level with their times, in order.
    waiting: [Vec<(u64, u16)>; LEVELS],
}

/// The list from which an active class is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Node {
    Row,
    Parent,
    Nowhere,
}

#[derive(Debug)]
struct Member {
    parent: Option<u16>,
    level: usize,
    prio: u8,
    /// The prios, as bits, in which it is active.
    active: u8,
    /// Its borrowers by prio; `None` for a leaf.
    borrowers: Option<Box<[Ring; PRIOS]>>,
}

/// Classes that take turns.
#[derive(Debug, Default)]
struct Ring {
    classes: Vec<u16>,
    /// The class whose turn it is; `None` at the end of the round.
    at: Option<u16>,
    /// The class whose turn it was when it left.
    left: Option<u16>,
}

impl Tree {
    /// The error says why Linux would reject the tree.
    pub(super) fn new(parameters: &scenario::Htb) -> Result<Self, String> {
        let mut members: Vec<Member> = Vec::with_capacity(parameters.classes.len());
        for (index, class) in (0..).zip(&parameters.classes) {
            let above = match class.parent {
                None => LEVELS,
                Some(parent) => {
                    let parent = members.get(usize::from(parent)).ok_or("htb: a class comes before its parent")?;
                    parent.level
                }
            };
            let is_leaf = parameters.is_leaf(index);
            if above == 0 || !is_leaf && above == 1 {
                return Err("htb: tree is too deep".to_owned());
            }
            if usize::from(class.prio) >= PRIOS {
                return Err(format!("htb: a prio of {} is more than {}", class.prio, PRIOS - 1));
            }
            members.push(Member {
                parent: class.parent,
                level: if is_leaf { 0 } else { above - 1 },
                prio: class.prio,
                active: 0,
                borrowers: (!is_leaf).then(Box::default),
            });
        }
        Ok(Self { members, rows: Box::default(), prios: [0; LEVELS], waiting: std::array::from_fn(|_| Vec::new()) })
    }

    pub(super) fn parent(&self, class: u16) -> Option<u16> {
        self.member(class).parent
    }

    pub(super) fn level(&self, class: u16) -> usize {
        self.member(class).level
    }

    /// The prios, as bits, whose rows have classes at this level.
    pub(super) fn prios(&self, level: usize) -> u8 {
        self.prios[level]
    }

    pub(super) fn is_active(&self, class: u16) -> bool {
        self.member(class).active != 0
    }

    /// Packets wait in a leaf.
    pub(super) fn set_active(&mut self, class: u16) {
        let member = &mut self.members[usize::from(class)];
        member.active = 1 << member.prio;
    }

    pub(super) fn set_inactive(&mut self, class: u16) {
        self.members[usize::from(class)].active = 0;
    }

    /// Adds an active class to the list from which it is served (`htb_activate_prios`), and its ancestors too, as long
    /// as they are lenders without another borrower. `node` returns the list of each.
    pub(super) fn link(&mut self, mut class: u16, node: impl Fn(u16) -> Node) {
        let mut prios = self.member(class).active;
        while prios != 0 {
            match (node(class), self.parent(class)) {
                (Node::Row, _) => {
                    let level = self.level(class);
                    self.prios[level] |= prios;
                    bits(prios).for_each(|prio| self.rows[level][prio].insert(class));
                    return;
                }
                (Node::Parent, Some(parent)) => {
                    for prio in bits(prios) {
                        let ring = self.borrowers(parent, prio);
                        if !ring.classes.is_empty() {
                            prios &= !(1 << prio);
                        }
                        ring.insert(class);
                    }
                    self.members[usize::from(parent)].active |= prios;
                    class = parent;
                }
                (Node::Parent, None) | (Node::Nowhere, _) => return,
            }
        }
    }

    /// Removes an active class from its list (`htb_deactivate_prios`), and its ancestors too, as long as they lose
    /// their last borrower.
    pub(super) fn unlink(&mut self, mut class: u16, node: impl Fn(u16) -> Node) {
        let mut prios = self.member(class).active;
        while prios != 0 {
            match (node(class), self.parent(class)) {
                (Node::Row, _) => {
                    let level = self.level(class);
                    for prio in bits(prios) {
                        let ring = &mut self.rows[level][prio];
                        if ring.at == Some(class) {
                            ring.advance();
                        }
                        ring.remove(class);
                        if ring.classes.is_empty() {
                            self.prios[level] &= !(1 << prio);
                        }
                    }
                    return;
                }
                (Node::Parent, Some(parent)) => {
                    for prio in bits(std::mem::take(&mut prios)) {
                        let ring = self.borrowers(parent, prio);
                        if ring.at == Some(class) {
                            (ring.at, ring.left) = (None, Some(class));
                        }
                        ring.remove(class);
                        if ring.classes.is_empty() {
                            prios |= 1 << prio;
                        }
                    }
                    self.members[usize::from(parent)].active &= !prios;
                    class = parent;
                }
                (Node::Parent, None) | (Node::Nowhere, _) => return,
            }
        }
    }

    /// The leaf whose turn it is in a row (`htb_lookup_leaf`): of each class in turn, the borrowers take turns.
    pub(super) fn turn(&mut self, level: usize, prio: usize) -> Option<u16> {
        // The path from the row down; `None` is the row itself.
        let mut way = [None; LEVELS + 1];
        let mut depth = 0;
        // Each class is visited at most twice: down, and at the end of its round.
        for _ in 0..=4 * (self.members.len() + 1) {
            let ring = self.ring(way[depth], level, prio);
            if let (None, Some(left)) = (ring.at, ring.left) {
                ring.at = ring.classes.iter().copied().find(|class| *class >= left);
            }
            ring.left = None;
            let (at, first) = (ring.at, ring.classes.first().copied());
            match at {
                Some(class) if self.member(class).borrowers.is_none() => return Some(class),
                Some(class) => {
                    depth += 1;
                    way[depth] = Some(class);
                }
                None => {
                    self.ring(way[depth], level, prio).at = Some(first?);
                    if depth > 0 {
                        depth -= 1;
                        self.ring(way[depth], level, prio).advance();
                    }
                }
            }
        }
        None
    }

    /// Ends the turn of a leaf, in which it was served with tokens of this level.
    pub(super) fn advance(&mut self, class: u16, level: usize, prio: usize) {
        match self.parent(class) {
            Some(parent) if level > 0 => self.borrowers(parent, prio).advance(),
            _ => self.rows[0][prio].advance(),
        }
    }

    /// The class of a level whose time comes first.
    pub(super) fn first_waiting(&self, level: usize) -> Option<(u64, u16)> {
        self.waiting[level].first().copied()
    }

    pub(super) fn wait(&mut self, class: u16, until_ns: u64) {
        let waiting = &mut self.waiting[self.members[usize::from(class)].level];
        let index = waiting.partition_point(|other| other.0 <= until_ns);
        waiting.insert(index, (until_ns, class));
    }

    pub(super) fn stop_waiting(&mut self, class: u16, until_ns: u64) {
        let waiting = &mut self.waiting[self.members[usize::from(class)].level];
        if let Some(index) = waiting.iter().position(|other| *other == (until_ns, class)) {
            waiting.remove(index);
        }
    }

    /// Whether the other tree has the same classes.
    pub(super) fn has_form_of(&self, other: &Self) -> bool {
        self.members.iter().map(|member| member.parent).eq(other.members.iter().map(|member| member.parent))
    }

    /// Takes over the prios. A class that is active takes its new prio when it becomes active the next time.
    pub(super) fn take_prios(&mut self, from: &Self) {
        self.members.iter_mut().zip(&from.members).for_each(|(member, new)| member.prio = new.prio);
    }

    fn member(&self, class: u16) -> &Member {
        &self.members[usize::from(class)]
    }

    fn borrowers(&mut self, parent: u16, prio: usize) -> &mut Ring {
        let borrowers = self.members[usize::from(parent)].borrowers.as_mut();
        &mut borrowers.expect("a class that has children is no leaf")[prio]
    }

    fn ring(&mut self, of: Option<u16>, level: usize, prio: usize) -> &mut Ring {
        match of {
            None => &mut self.rows[level][prio],
            Some(class) => self.borrowers(class, prio),
        }
    }
}

impl Ring {
    fn insert(&mut self, class: u16) {
        if let Err(index) = self.classes.binary_search(&class) {
            self.classes.insert(index, class);
        }
    }

    fn remove(&mut self, class: u16) {
        if let Ok(index) = self.classes.binary_search(&class) {
            self.classes.remove(index);
        }
    }

    /// The next class has its turn, or the round is over.
    fn advance(&mut self) {
        let later = |at: u16| self.classes.get(self.classes.partition_point(|class| *class <= at)).copied();
        self.at = self.at.and_then(later);
    }
}

/// The numbers of the bits that are set.
fn bits(mut mask: u8) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let bit = (mask != 0).then(|| mask.trailing_zeros() as usize)?;
        mask &= mask - 1;
        Some(bit)
    })
}
