//! Queueing disciplines, and the list of them. Each has one file with everything that is known about it outside the
//! simulator.
//!
//! The loader, the plan, the agent, the simulator, the property tests and Python all use the list, and none of them
//! names a discipline. What a discipline does with packets in the simulator is in its file there.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::{Problem, Problems};
use crate::quantity::{Packets, Quantity, Sizes};
use crate::sizes::FRAME_BYTES;
use crate::units::GB;

mod ds_filter;
pub(crate) mod packet_match;
#[cfg(test)]
mod testing;

pub use cake::{AckFilter, Cells, Diffserv, FlowMode, Framing, LinkLayer, Preset};
pub use ds_filter::DsFilter;
pub use dualpi2::{Pi2, StepThreshold};
pub use htb::{ClassFilter, HtbClass};
pub use netem::{Distribution, Loss, NetemRate, NetemSlot, Reorder, SlotDelay};
pub use packet_match::Match;
pub use prio::BandFilter;
pub use red::{Averaging, AveragingError, Curve, IdleTable};
pub use sfq::FlowRed;
pub use tbf::Peak;

/// Limit of a queue in packets.
pub(crate) type PacketLimit = Quantity<Packets, 1, 10_000_000>;
/// Limit or threshold of a queue in bytes.
pub(crate) type ByteLimit = Quantity<Sizes, 1, { 10 * GB }>;

/// Number of packets for each reason that a discipline's counters distinguish. The rest of the array has no meaning.
pub(crate) type Counts = [u64; Kind::MOST_COUNTED];

/// These counts, and nothing for what is left of the array.
fn counted<const N: usize>(counts: [u64; N]) -> Counts {
    std::array::from_fn(|index| counts.get(index).copied().unwrap_or(0))
}

/// The numbers at these places of a discipline's own statistics.
fn words<const N: usize>(own: &[u32], places: [usize; N]) -> [u64; N] {
    places.map(|place| own[place].into())
}

/// What the file of a discipline defines.
pub(crate) trait Discipline: Sized {
    /// The table in an experiment file.
    type Keys;

    /// What it is for, in a sentence of at most a hundred characters.
    const PURPOSE: &'static str;
    /// Where its behaviour is defined: the kernel's files, then RFCs and papers.
    const SOURCE: &'static str;
    /// The part of the kernel that contains it.
    const MODULE: &'static str;
    /// Whether that part can be a module of its own. If not, every kernel with a packet scheduler has it.
    const LOADABLE: bool = true;
    /// Arguments for `tc` that every kernel with this discipline accepts.
    const SAMPLE: &'static str;
    /// Why it drops or marks packets of its own accord.
    const REASONS: &'static [Reason] = &[Reason::OVERLIMIT];
    /// The reasons that its counters in the kernel distinguish, at most [`Kind::MOST_COUNTED`].
    const COUNTED: &'static [Reason] = &[Reason::OVERLIMIT];
    /// Whether it may hold packets back although the layer below is ready.
    const HOLDS_BACK: bool = false;
    /// Number of 32-bit words of its own statistics (`TCA_STATS_APP`) that every kernel has and that it reads.
    const OWN_WORDS: usize = 0;

    /// Fills in the defaults that depend on other keys; `None` if the keys of the table at `path` contradict each
    /// other.
    fn resolve(keys: &Self::Keys, path: &str, problems: &mut Problems) -> Option<Self>;

    /// The most that its queue holds.
    fn limit(&self) -> Limit;

    /// How fast it passes packets on at most, if that is not left to the link.
    fn shaper(&self) -> Option<Shaper> {
        None
    }

    /// Its parameters as `tc` takes them, in order.
    fn settings(&self) -> Vec<(&'static str, Setting)>;

    /// The classes, disciplines and filters inside it as `tc` takes them, in order.
    fn parts(&self) -> Vec<Part<'_>> {
        Vec::new()
    }

    /// The key that is given, but may not be if the discipline is inside another one.
    fn outermost_key(&self) -> Option<&'static str> {
        None
    }

    /// Passes what each filter chooses to `visit`, those of inner disciplines too.
    fn each_match(&mut self, _visit: &mut dyn FnMut(&mut Match)) {}

    /// Number of packets since the start for each reason of [`COUNTED`](Self::COUNTED), from the kernel's count of all
    /// drops and the discipline's own statistics, which have at least [`OWN_WORDS`](Self::OWN_WORDS) words.
    fn counts(drops: u64, _own: &[u32]) -> Counts {
        counted([drops])
    }

    /// Any valid parameters.
    #[cfg(feature = "testing")]
    fn any() -> proptest::strategy::BoxedStrategy<Self>;

    /// Every key as it is written in an experiment file.
    #[cfg(feature = "testing")]
    fn written(&self) -> Vec<(&'static str, toml::Value)>;
}

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

    const fn of<D: Discipline>(name: &'static str) -> Self {
        assert!(D::COUNTED.len() <= Self::MOST_COUNTED);
        Self {
            name,
            purpose: D::PURPOSE,
            source: D::SOURCE,
            module: D::MODULE,
            loadable: D::LOADABLE,
            sample: D::SAMPLE,
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

/// Why a packet was dropped, or marked with Congestion Experienced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reason {
    /// The word that stands for it in the records.
    pub word: &'static str,
    /// Whether the packet was marked and not dropped.
    pub marks: bool,
}

impl Reason {
    /// The queue was at its limit.
    pub const OVERLIMIT: Self = Self::drop("overlimit");
    /// Its queue was emptied because the discipline was replaced, or because the change of a parameter empties it.
    pub const PURGED: Self = Self::drop("purged");

    const fn drop(word: &'static str) -> Self {
        Self { word, marks: false }
    }

    const fn mark(word: &'static str) -> Self {
        Self { word, marks: true }
    }
}

/// The most that a queue holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// This many packets.
    Packets(u64),
    /// This many bytes.
    Bytes(u64),
}

impl Limit {
    /// What several queues hold together. Where one of them counts bytes and another packets, a packet counts as a full
    /// frame.
    fn sum(limits: impl Iterator<Item = Self>) -> Self {
        let add = |sum: Self, limit: Self| match (sum, limit) {
            (Self::Packets(sum), Self::Packets(more)) => Self::Packets(sum.saturating_add(more)),
            (sum, limit) => Self::Bytes(sum.bytes().saturating_add(limit.bytes())),
        };
        limits.fold(Self::Packets(0), add)
    }

    fn bytes(self) -> u64 {
        match self {
            Self::Packets(packets) => packets.saturating_mul(FRAME_BYTES.into()),
            Self::Bytes(bytes) => bytes,
        }
    }
}

/// How fast a discipline passes packets on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shaper {
    /// In bits per second.
    pub rate_bps: u64,
    /// How far it may be ahead of the rate after an idle time.
    pub burst_bytes: u64,
}

/// The value of a parameter of `tc`.
#[derive(Clone, Debug, PartialEq)]
pub enum Setting {
    /// A number that the kernel holds in 32 bits.
    Number(u64),
    /// A small number that may be negative.
    Integer(i64),
    /// A time in nanoseconds that the kernel counts in microseconds.
    Time(u64),
    /// A time that the kernel counts in nanoseconds.
    ExactTime(u64),
    /// A rate in bits per second.
    Rate(u64),
    /// A number in (0, 1].
    Probability(f64),
    /// A choice of packets.
    DsFilter(DsFilter),
    /// A number with a fraction.
    Decimal(f64),
    /// A number of packets where `tc` would read a bare number as a time.
    Packets(u32),
    /// No value: the parameter consists of its name alone.
    Flag,
    /// Words as they are.
    Words(String),
}

/// A part of a discipline that holds others. Classes are known by the minor numbers of their identifiers; 0 is the
/// discipline itself.
#[derive(Clone, Debug, PartialEq)]
pub enum Part<'a> {
    /// A class, with its parameters.
    Class {
        /// Its number.
        class: u16,
        /// The number of the class that contains it.
        parent: u16,
        /// Its parameters, in order.
        settings: Vec<(&'static str, Setting)>,
    },
    /// The discipline of a class.
    Inner {
        /// The class.
        class: u16,
        /// Its discipline.
        qdisc: &'a Qdisc,
    },
    /// Packets go to a class.
    Filter {
        /// Which packets.
        chosen: &'a Match,
        /// The class.
        class: u16,
    },
}

/// How deep disciplines may be nested.
const MOST_DEPTH: usize = 4;

/// Declares the modules of the listed disciplines, and the enums over these.
macro_rules! disciplines {
    ($($file:ident::$name:ident,)+) => {
        $(
            mod $file;
            pub use $file::$name;
        )+

        /// A queueing discipline.
        #[derive(Debug, Deserialize, JsonSchema)]
        #[serde(tag = "qdisc", rename_all = "snake_case")]
        pub(crate) enum Queue {
            $($name($file::Keys),)+
        }

        /// A queueing discipline and its parameters. Defaults are those of Linux' `tc`.
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
        #[serde(tag = "qdisc", rename_all = "snake_case")]
        pub enum Qdisc {
            $(
                #[doc = concat!("`", stringify!($file), "`.")]
                $name($name),
            )+
        }

        impl Qdisc {
            /// Every discipline.
            pub const KINDS: &'static [Kind] = &[$(Kind::of::<$name>(stringify!($file))),+];

            /// The kind of this discipline.
            pub fn kind(&self) -> &'static Kind {
                match self {
                    $(Self::$name(_) => const { &Kind::of::<$name>(stringify!($file)) },)+
                }
            }

            /// The most that its queue holds.
            pub fn limit(&self) -> Limit {
                match self {
                    $(Self::$name(discipline) => discipline.limit(),)+
                }
            }

            /// How fast it passes packets on at most, if that is not left to the link.
            pub fn shaper(&self) -> Option<Shaper> {
                match self {
                    $(Self::$name(discipline) => discipline.shaper(),)+
                }
            }

            /// Its parameters as `tc` takes them, in order.
            pub fn settings(&self) -> Vec<(&'static str, Setting)> {
                match self {
                    $(Self::$name(discipline) => discipline.settings(),)+
                }
            }

            /// The classes, disciplines and filters inside it as `tc` takes them, in order.
            pub fn parts(&self) -> Vec<Part<'_>> {
                match self {
                    $(Self::$name(discipline) => discipline.parts(),)+
                }
            }

            /// The key that is given, but may not be if the discipline is inside another one.
            fn outermost_key(&self) -> Option<&'static str> {
                match self {
                    $(Self::$name(discipline) => discipline.outermost_key(),)+
                }
            }

            /// Passes what each filter chooses to `visit`, those of inner disciplines too.
            fn each_match(&mut self, visit: &mut dyn FnMut(&mut Match)) {
                match self {
                    $(Self::$name(discipline) => discipline.each_match(visit),)+
                }
            }

            /// The discipline in the table at `path`; `None` if its parameters contradict each other.
            fn resolve(queue: &Queue, path: &str, problems: &mut Problems) -> Option<Self> {
                match queue {
                    $(Queue::$name(keys) => $name::resolve(keys, path, problems).map(Self::$name),)+
                }
            }

            /// Any discipline with any valid parameters.
            #[cfg(feature = "testing")]
            pub fn any() -> impl proptest::strategy::Strategy<Value = Self> {
                use proptest::strategy::Strategy;
                proptest::strategy::Union::new([$($name::any().prop_map(Self::$name).boxed()),+])
            }

            /// Its keys and its name as they are written in an experiment file.
            #[cfg(feature = "testing")]
            pub(crate) fn written(&self) -> toml::Table {
                let keys = match self {
                    $(Self::$name(discipline) => discipline.written(),)+
                };
                let name = ("qdisc", toml::Value::from(self.kind().name));
                crate::testing::text::keys(std::iter::once(name).chain(keys))
            }
        }
    };
}

disciplines! {
    pfifo::Pfifo,
    bfifo::Bfifo,
    pfifo_head_drop::PfifoHeadDrop,
    pfifo_fast::PfifoFast,
    red::Red,
    choke::Choke,
    sfq::Sfq,
    codel::Codel,
    fq_codel::FqCodel,
    pie::Pie,
    fq_pie::FqPie,
    dualpi2::Dualpi2,
    cake::Cake,
    fq::Fq,
    tbf::Tbf,
    htb::Htb,
    prio::Prio,
    netem::Netem,
}

impl Qdisc {
    /// This discipline and all that it holds, each before those inside it.
    pub fn all(&self) -> Vec<&Self> {
        let mut all = vec![self];
        for part in self.parts() {
            if let Part::Inner { qdisc, .. } = part {
                all.extend(qdisc.all());
            }
        }
        all
    }

    /// The discipline of a port, from the table at `path`; `None` if its parameters contradict each other, or if
    /// disciplines are nested too deeply.
    pub(crate) fn of_port(queue: &Queue, path: &str, problems: &mut Problems) -> Option<Self> {
        let qdisc = Self::resolve(queue, path, problems)?;
        let depth = qdisc.depth();
        if depth > MOST_DEPTH {
            let found = format!("{depth} disciplines inside each other");
            problems.add(|| Problem::new(path, found, format!("at most {MOST_DEPTH}")));
            return None;
        }
        let inside = |inner: &&Self| Some((inner.kind().name, inner.outermost_key()?));
        if let Some((name, key)) = qdisc.all().iter().skip(1).find_map(inside) {
            let found = format!("{key} of {name} inside another discipline");
            problems.add(|| Problem::new(path, found, format!("{key} only of the port's own discipline")));
            return None;
        }
        Some(qdisc)
    }

    /// Whether packets leave at the rate of its [shaper](Self::shaper), or the link's, for as long as some wait.
    pub fn has_steady_rate(&self) -> bool {
        let is_shaped = self.shaper().is_some() || !self.kind().holds_back;
        is_shaped && self.all().iter().skip(1).all(|inner| !inner.kind().holds_back)
    }

    /// Whether TCP connections of the host whose packets it sends are paced because of it.
    pub fn paces(&self) -> bool {
        self.all().into_iter().any(|qdisc| matches!(qdisc, Self::Fq(fq) if fq.pacing))
    }

    fn depth(&self) -> usize {
        let inner = self.parts().into_iter().map(|part| match part {
            Part::Inner { qdisc, .. } => qdisc.depth(),
            Part::Class { .. } | Part::Filter { .. } => 0,
        });
        1 + inner.max().unwrap_or(0)
    }

    /// Any discipline that is not made of others, as the inner one of those that are.
    #[cfg(feature = "testing")]
    fn any_inner() -> proptest::strategy::BoxedStrategy<Self> {
        use proptest::prelude::*;
        prop_oneof![
            Pfifo::any().prop_map(Self::Pfifo),
            Bfifo::any().prop_map(Self::Bfifo),
            PfifoHeadDrop::any().prop_map(Self::PfifoHeadDrop),
            Codel::any().prop_map(Self::Codel),
            Red::any().prop_map(Self::Red),
            Pie::any().prop_map(Self::Pie),
        ]
        .boxed()
    }
}

/// The discipline of a port for which the experiment file names none.
impl Default for Qdisc {
    fn default() -> Self {
        Self::Pfifo(Pfifo::default())
    }
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
}
