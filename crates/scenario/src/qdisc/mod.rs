//! Queueing disciplines, and the list of them. Each has one file with everything that is known about it outside the
//! simulator.
//!
//! The loader, the plan, the agent, the simulator, the property tests and Python all use the list, and add
//! nothing for a new discipline. What a discipline does with packets in the simulator is in its file there.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::{Problem, Problems};
use crate::model::Port;
use crate::quantity::{Packets, Quantity, Sizes};
use crate::sizes::FRAME_BYTES;
use crate::units::GB;

mod ds_filter;
mod kind;
pub(crate) mod packet_match;
mod setting;
#[cfg(test)]
mod testing;

pub(crate) use cake::FramingWords;
pub use cake::{AckFilter, Cells, Diffserv, FlowMode, Framing, LinkLayer, Preset};
pub use ds_filter::DsFilter;
pub use dualpi2::{Pi2, StepThreshold};
pub use htb::{ClassFilter, HtbClass};
pub(crate) use kind::Counts;
pub use kind::{Aqm, Kind, Queues, Reason};
use kind::{counted, words};
pub(crate) use netem::GemodelKeys;
pub use netem::{Distribution, Loss, NetemRate, NetemSlot, Reorder, SlotDelay};
pub use packet_match::Match;
pub use prio::BandFilter;
pub use red::{Averaging, AveragingError, Curve, IdleTable};
pub use setting::{Part, Setting};
pub use sfq::FlowRed;
pub use tbf::Peak;

/// Default `txqueuelen` of a device (`DEFAULT_TX_QUEUE_LEN`), in packets.
pub(crate) const TXQUEUELEN: u32 = 1000;

/// Limit of a queue in packets.
pub(crate) type PacketLimit = Quantity<Packets, 1, 10_000_000>;
/// Limit or threshold of a queue in bytes.
pub(crate) type ByteLimit = Quantity<Sizes, 1, { 10 * GB }>;

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
    /// How it arranges the packets of different flows.
    const QUEUES: Queues = Queues::Shared;
    /// What it measures to drop or mark before the queue is full, with its default parameters; `None` if it does not.
    const AQM: Option<Aqm> = None;
    /// Whether there can be other disciplines inside it, which then have the queue.
    const CONTAINS_OTHERS: bool = false;
    /// Whether the kernel sets every parameter that `tc` leaves out to the default of experiment files. If not, a default
    /// depends on the device, or `tc` computes it.
    const KERNEL_DEFAULTS: bool = false;
    /// Why it drops or marks packets.
    const REASONS: &'static [Reason] = &[Reason::OVERLIMIT];
    /// The reasons that its counters in the kernel distinguish, at most [`Kind::MOST_COUNTED`].
    const COUNTED: &'static [Reason] = &[Reason::OVERLIMIT];
    /// Whether it may hold packets back although the layer below is ready.
    const HOLDS_BACK: bool = false;
    /// Number of 32-bit words of its own statistics (`TCA_STATS_APP`) that every kernel has and that it reads.
    const OWN_WORDS: usize = 0;

    /// Fills in the defaults that depend on other keys, or on the device's `txqueuelen`; `None` if the keys of the table
    /// at `path` contradict each other.
    fn resolve(keys: &Self::Keys, txqueuelen: u32, path: &str, problems: &mut Problems) -> Option<Self>;

    /// The most that its queue holds.
    fn limit(&self) -> Limit;

    /// The rate and burst to which it shapes, if it is a shaper.
    fn shaper(&self) -> Option<Shaper> {
        None
    }

    /// Its parameters as `tc` takes them, in order.
    fn settings(&self) -> Vec<(&'static str, Setting)>;

    /// The classes, disciplines and filters inside it as `tc` takes them, in order.
    fn parts(&self) -> Vec<Part<'_>> {
        Vec::new()
    }

    /// A key that is set although only the outermost discipline of a port may have it.
    fn outermost_key(&self) -> Option<&'static str> {
        None
    }

    /// What a user should know about it at this port, although its keys are valid.
    fn caution(&self, _port: &Port) -> Option<String> {
        None
    }

    /// Calls `visit` with the match of each filter, including those of inner disciplines.
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

/// The rate and the burst of a shaper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shaper {
    /// In bits per second.
    pub rate_bps: u64,
    /// Bytes that it may send in excess of the rate after an idle time.
    pub burst_bytes: u64,
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
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
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

            /// The rate and burst to which it shapes, if it is a shaper.
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

            /// A key that is set although only the outermost discipline of a port may have it.
            fn outermost_key(&self) -> Option<&'static str> {
                match self {
                    $(Self::$name(discipline) => discipline.outermost_key(),)+
                }
            }

            /// What a user should know about it at this port.
            pub(crate) fn caution(&self, port: &Port) -> Option<String> {
                match self {
                    $(Self::$name(discipline) => discipline.caution(port),)+
                }
            }

            /// Calls `visit` with the match of each filter, including those of inner disciplines.
            fn each_match(&mut self, visit: &mut dyn FnMut(&mut Match)) {
                match self {
                    $(Self::$name(discipline) => discipline.each_match(visit),)+
                }
            }

            /// The discipline in the table at `path`; `None` if its parameters contradict each other.
            fn resolve(queue: &Queue, txqueuelen: u32, path: &str, problems: &mut Problems) -> Option<Self> {
                match queue {
                    $(Queue::$name(keys) => $name::resolve(keys, txqueuelen, path, problems).map(Self::$name),)+
                }
            }

            /// Any discipline with any valid parameters.
            #[cfg(feature = "testing")]
            pub fn any() -> impl proptest::strategy::Strategy<Value = Self> {
                use proptest::strategy::Strategy;
                proptest::strategy::Union::new([$($name::any().prop_map(Self::$name).boxed()),+])
            }

            /// A discipline of this name with any valid parameters.
            ///
            /// # Panics
            ///
            /// If no discipline has this name.
            #[cfg(feature = "testing")]
            pub fn any_named(name: &str) -> proptest::strategy::BoxedStrategy<Self> {
                use proptest::strategy::Strategy;
                match name {
                    $(stringify!($file) => $name::any().prop_map(Self::$name).boxed(),)+
                    _ => panic!("there is no discipline `{name}`"),
                }
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
    /// This discipline and all inner ones, each before those inside it.
    pub fn all(&self) -> Vec<&Self> {
        let mut all = vec![self];
        for part in self.parts() {
            if let Part::Inner { qdisc, .. } = part {
                all.extend(qdisc.all());
            }
        }
        all
    }

    /// The discipline of a port whose device has this `txqueuelen`, from the table at `path`; `None` if its parameters
    /// contradict each other, or if disciplines are nested too deeply.
    pub(crate) fn of_port(queue: &Queue, txqueuelen: u32, path: &str, problems: &mut Problems) -> Option<Self> {
        let qdisc = Self::resolve(queue, txqueuelen, path, problems)?;
        let depth = qdisc.depth();
        if depth > MOST_DEPTH {
            let found = format!("{depth} disciplines inside each other");
            problems.add(|| Problem::new(path, found, format!("at most {MOST_DEPTH}")));
            return None;
        }
        let inside = |inner: &&Self| Some((inner.kind().name, inner.outermost_key()?));
        if let Some((name, key)) = qdisc.all().iter().skip(1).find_map(inside) {
            let found = format!("{key} of {name} inside another discipline");
            problems.add(|| Problem::new(path, found, format!("{key} only in the outermost discipline of the port")));
            return None;
        }
        Some(qdisc)
    }

    /// Whether packets leave at the rate of its [shaper](Self::shaper), or of the link, while there is a backlog.
    pub fn has_steady_rate(&self) -> bool {
        let is_shaped = self.shaper().is_some() || !self.kind().holds_back;
        is_shaped && self.all().iter().skip(1).all(|inner| !inner.kind().holds_back)
    }

    /// Whether it, or a discipline inside it, gives each flow a queue.
    pub fn separates_flows(&self) -> bool {
        self.all().into_iter().any(|qdisc| qdisc.kind().queues == Queues::PerFlow)
    }

    /// Whether it paces the TCP connections of the host whose packets it sends.
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

    /// One of some disciplines without inner ones, to be the inner one of another.
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
