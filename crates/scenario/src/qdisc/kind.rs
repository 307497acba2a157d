//! The properties of each discipline that do not depend on its parameters, and the reasons for its drops and marks.

use super::{Discipline, Qdisc};

/// A kind of discipline, independent of its parameters.
#[derive(Debug)]
pub struct Kind {
    /// Its name in experiment files and in Linux.
    pub name: &'static str,
    /// What it is for, in a sentence.
    pub purpose: &'static str,
    /// Where its behaviour is defined: the kernel's files, then RFCs and papers.
    pub source: &'static str,
    /// The part of the kernel that contains it.
    pub module: &'static str,
    /// Whether that part can be a module of its own. If not, every kernel with a packet scheduler has it.
    pub loadable: bool,
    /// Arguments for `tc` that every kernel with this discipline accepts.
    pub sample: &'static str,
    /// How it arranges the packets of different flows.
    pub queues: Queues,
    /// What it measures to drop or mark before the queue is full, with its default parameters; `None` if it does not.
    pub aqm: Option<Aqm>,
    /// Whether there can be other disciplines inside it, which then have the queue.
    pub contains_others: bool,
    /// Whether the kernel sets every parameter that `tc` leaves out to the default of experiment files.
    pub kernel_defaults: bool,
    /// Why it drops or marks packets.
    pub reasons: &'static [Reason],
    /// The reasons that its counters in the kernel distinguish.
    pub counted: &'static [Reason],
    /// Whether it may hold packets back although the layer below is ready.
    pub holds_back: bool,
    /// Number of 32-bit words of its own statistics (`TCA_STATS_APP`) that every kernel has.
    pub own_words: usize,
    counts: fn(u64, &[u32]) -> Counts,
}

impl Kind {
    /// The largest number of reasons that the counters of any discipline distinguish.
    pub const MOST_COUNTED: usize = 6;

    pub(super) const fn of<D: Discipline>(name: &'static str) -> Self {
        assert!(D::COUNTED.len() <= Self::MOST_COUNTED);
        Self {
            name,
            purpose: D::PURPOSE,
            source: D::SOURCE,
            module: D::MODULE,
            loadable: D::LOADABLE,
            sample: D::SAMPLE,
            queues: D::QUEUES,
            aqm: D::AQM,
            contains_others: D::CONTAINS_OTHERS,
            kernel_defaults: D::KERNEL_DEFAULTS,
            reasons: D::REASONS,
            counted: D::COUNTED,
            holds_back: D::HOLDS_BACK,
            own_words: D::OWN_WORDS,
            counts: D::counts,
        }
    }

    /// The discipline of that name.
    pub fn named(name: &str) -> Option<&'static Self> {
        Qdisc::KINDS.iter().find(|kind| kind.name == name)
    }

    /// Number of packets since the start for each of the [counted](Self::counted) reasons, from the kernel's count of
    /// all drops and the discipline's own statistics, at least
    /// [`own_words`](Self::own_words) long.
    pub fn counts(&self, drops: u64, own: &[u32]) -> impl Iterator<Item = (Reason, u64)> + use<> {
        self.counted.iter().copied().zip((self.counts)(drops, own))
    }
}

/// How a discipline arranges the packets of different flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Queues {
    /// Packets of all flows wait in the same queue, or in one of a few bands.
    Shared,
    /// Each flow has a queue (RFC 8290), so that it waits for its own packets only.
    PerFlow,
    /// There are two queues, one of them for scalable flows, with coupled AQMs (RFC 9332).
    Coupled,
}

impl Queues {
    /// Its name outside of this crate.
    pub fn name(self) -> &'static str {
        match self {
            Self::Shared => "shared",
            Self::PerFlow => "per_flow",
            Self::Coupled => "coupled",
        }
    }
}

/// What an AQM (RFC 7567) measures to decide when it drops or marks packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aqm {
    /// The length of the queue, as RED does.
    Length,
    /// How long packets wait, as CoDel (RFC 8289) and PIE (RFC 8033) do.
    Delay,
}

impl Aqm {
    /// Its name outside of this crate.
    pub fn name(self) -> &'static str {
        match self {
            Self::Length => "length",
            Self::Delay => "delay",
        }
    }
}

/// Why a packet was dropped, or marked with Congestion Experienced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reason {
    /// Its name in the records.
    pub word: &'static str,
    /// Whether the packet was marked and not dropped.
    pub marks: bool,
}

impl Reason {
    /// The queue was at its limit.
    pub const OVERLIMIT: Self = Self::drop("overlimit");
    /// Its queue was emptied because the discipline was replaced, or because the change of a parameter empties it.
    pub const PURGED: Self = Self::drop("purged");

    /// A frame was not received on the air in any of its attempts.
    pub const RETRIES: Self = Self::drop("retries");

    pub(super) const fn drop(word: &'static str) -> Self {
        Self { word, marks: false }
    }

    pub(super) const fn mark(word: &'static str) -> Self {
        Self { word, marks: true }
    }
}

/// Number of packets for each reason that a discipline's counters distinguish. The rest of the array has no meaning.
pub(crate) type Counts = [u64; Kind::MOST_COUNTED];

/// These counts, padded with zeros.
pub(super) fn counted<const N: usize>(counts: [u64; N]) -> Counts {
    std::array::from_fn(|index| counts.get(index).copied().unwrap_or(0))
}

/// The words at these indices of a discipline's own statistics.
pub(super) fn words<const N: usize>(own: &[u32], indices: [usize; N]) -> [u64; N] {
    indices.map(|index| own[index].into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_discipline_says_in_one_line_what_it_is_for_and_where_it_is_defined() {
        for kind in Qdisc::KINDS {
            let Kind { name, purpose, source, .. } = kind;
            assert!(purpose.ends_with('.') && purpose.len() <= 100, "{name}: {purpose}");
            assert!(source.starts_with("net/sched/sch_") && !source.contains('\n'), "{name}: {source}");
        }
        let mut purposes: Vec<&str> = Qdisc::KINDS.iter().map(|kind| kind.purpose).collect();
        purposes.sort_unstable();
        purposes.dedup();
        assert_eq!(purposes.len(), Qdisc::KINDS.len());
    }

    #[test]
    fn an_aqm_can_mark_packets_and_has_a_queue_of_its_own() {
        for kind in Qdisc::KINDS.iter().filter(|kind| kind.aqm.is_some()) {
            assert!(kind.reasons.iter().any(|reason| reason.marks), "{}", kind.name);
            assert!(!kind.contains_others, "{}: the disciplines inside have the queue", kind.name);
        }
    }
}
