//! `htb`: a hierarchical token bucket (`sch_htb`). Bursts have the defaults of iproute2's `tc/q_htb.c`.

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Discipline, Limit, Match, PacketLimit, Part, Pfifo, Qdisc, Setting, TXQUEUELEN};
use crate::dscp::Dscp;
use crate::error::{Problem, Problems, quote};
use crate::path::join;
use crate::suggest::any_of;
use crate::text::Name;

mod class;

use class::ClassKeys;
pub use class::HtbClass;

/// Largest number of classes in the simulator's and the plan's tables.
const MOST_CLASSES: usize = 256;

/// A hierarchical token bucket, as Linux' sch_htb: a tree of classes, each with a guaranteed rate, and a ceiling up to
/// which it may borrow unused rate from its parent.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct Keys {
    /// The classes by name. A parent comes before its children.
    #[serde(default)]
    class: IndexMap<String, ClassKeys>,
    /// Filters that classify packets. The first match wins.
    #[serde(default)]
    filter: Vec<FilterKeys>,
    /// The class of packets that match no filter. Default: none; they are sent unshaped, before all classes.
    #[schemars(with = "Option<crate::text::Name>")]
    default: Option<String>,
    /// The quantum of a class is its rate in bytes per second divided by this.
    #[serde(default = "r2q")]
    #[schemars(range(min = 1, max = 1_000_000))]
    r2q: u32,
    /// Limit of the queue of unclassified packets. Default: the link's txqueuelen.
    #[schemars(example = &"100p")]
    direct_qlen: Option<PacketLimit>,
}

/// Classifies packets by their code point, or by the port of their server, into a class.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields, rename = "ClassFilter")]
struct FilterKeys {
    /// The code point, by name or number. Exactly one of dscp, port and traffic must be given.
    dscp: Option<Dscp>,
    /// The port of a server: TCP and UDP packets to and from it.
    #[schemars(range(min = 1, max = 19_999), example = 443)]
    port: Option<u16>,
    /// The name of a `[[traffic]]` entry: packets to and from the ports of its servers. For ping, which has no port,
    /// all ICMP packets.
    traffic: Option<Name>,
    /// The class, which has no children.
    #[schemars(with = "crate::text::Name")]
    class: String,
}

/// iproute2's `tc/q_htb.c`.
fn r2q() -> u32 {
    10
}

/// Parameters of `htb`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Htb {
    /// The classes, parents before their children.
    pub classes: Vec<HtbClass>,
    /// The filters, in order.
    pub filters: Vec<ClassFilter>,
    /// The class of packets that match no filter.
    pub default: Option<u16>,
    /// The quantum of a class is its rate divided by this.
    pub r2q: u32,
    /// Limit of the queue of unclassified packets.
    pub direct_qlen_packets: u32,
}

/// Packets that go to a class.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ClassFilter {
    /// Which packets.
    pub chosen: Match,
    /// The class.
    pub class: u16,
}

impl Htb {
    /// Number of priorities (`TC_HTB_NUMPRIO`).
    pub const PRIOS: usize = 8;
    /// Maximum depth of the class hierarchy (`TC_HTB_MAXDEPTH`).
    pub const MOST_DEPTH: usize = 8;
    /// Limit of the default discipline of a class: `txqueuelen` of an Ethernet device.
    pub const LEAF_PACKETS: u32 = TXQUEUELEN;

    /// Whether a class is a leaf.
    pub fn is_leaf(&self, class: u16) -> bool {
        usize::from(class) < self.classes.len() && self.classes.iter().all(|each| each.parent != Some(class))
    }

    /// Gives each leaf without a discipline the one that the kernel creates on a device with that `txqueuelen`.
    fn fill_leaves(&mut self, txqueuelen: u32) {
        for class in 0..self.classes.len() {
            if self.is_leaf(class as u16) {
                let pfifo = || Box::new(Qdisc::Pfifo(Pfifo { limit_packets: txqueuelen }));
                self.classes[class].inner.get_or_insert_with(pfifo);
            }
        }
    }

    /// The depth of a class in the hierarchy.
    fn depth(&self, class: u16) -> usize {
        let parent = |class: &u16| self.classes.get(usize::from(*class))?.parent;
        std::iter::successors(Some(class), parent).take(self.classes.len()).count()
    }
}

impl Discipline for Htb {
    type Keys = Keys;

    const PURPOSE: &'static str =
        "Divides a rate among classes, which lend what they do not use; any discipline in each class.";
    const SOURCE: &'static str = "net/sched/sch_htb.c";
    const MODULE: &'static str = "sch_htb";
    const SAMPLE: &'static str = "htb";
    const CONTAINS_OTHERS: bool = true;
    const HOLDS_BACK: bool = true;

    fn resolve(keys: &Keys, txqueuelen: u32, path: &str, problems: &mut Problems) -> Option<Self> {
        let classes = keys.class.iter().map(|(name, class)| {
            class.resolve((name, &keys.class), txqueuelen, &join(&join(path, "class"), name), problems)
        });
        let classes: Vec<Option<HtbClass>> = classes.collect();
        let (path_of, names) = (join(path, "class"), || any_of(keys.class.keys().map(String::as_str)));
        let mut is_sound = true;
        if classes.len() > MOST_CLASSES {
            let found = format!("{} classes", classes.len());
            problems.add(|| Problem::new(&path_of, found, format!("at most {MOST_CLASSES}")));
            return None;
        }
        let mut index = |name: &String, path: String, problems: &mut Problems| {
            let index = keys.class.get_index_of(name);
            if index.is_none() {
                is_sound = false;
                problems.add(|| Problem::new(path, format!("{}, which names no class", quote(name)), names()));
            }
            index.map(|index| index as u16)
        };
        let default = keys.default.as_ref().map(|name| index(name, join(path, "default"), problems));
        let mut filters = Vec::new();
        for (filter, number) in keys.filter.iter().zip(1..) {
            let here = format!("{}[{number}]", join(path, "filter"));
            let class = index(&filter.class, join(&here, "class"), problems);
            let chosen = Match::resolve(filter.dscp, filter.port, filter.traffic.as_ref(), &here, problems);
            filters.push(class.zip(chosen).map(|(class, chosen)| ClassFilter { chosen, class }));
        }
        if !is_sound {
            return None;
        }
        let classes = classes.into_iter().collect::<Option<Vec<_>>>()?;
        let filters = filters.into_iter().collect::<Option<Vec<_>>>()?;
        let direct_qlen_packets = keys.direct_qlen.map_or(txqueuelen, PacketLimit::get_u32);
        let mut htb = Self { classes, filters, default: default.flatten(), r2q: keys.r2q, direct_qlen_packets };
        if !htb.check(keys, path, problems) {
            return None;
        }
        if txqueuelen != TXQUEUELEN {
            htb.fill_leaves(txqueuelen);
        }
        Some(htb)
    }

    fn limit(&self) -> Limit {
        let leaves = (0..).zip(&self.classes).filter(|(index, _)| self.is_leaf(*index));
        let limit = |(_, class): (u16, &HtbClass)| {
            class.inner.as_ref().map_or(Limit::Packets(Self::LEAF_PACKETS.into()), |inner| inner.limit())
        };
        Limit::sum(leaves.map(limit).chain([Limit::Packets(self.direct_qlen_packets.into())]))
    }

    fn settings(&self) -> Vec<(&'static str, Setting)> {
        let default = self.default.map(|class| ("default", Setting::Words(format!("{:x}", class + 1))));
        let others = [
            ("r2q", Setting::Number(self.r2q.into())),
            ("direct_qlen", Setting::Number(self.direct_qlen_packets.into())),
        ];
        default.into_iter().chain(others).collect()
    }

    fn each_match(&mut self, visit: &mut dyn FnMut(&mut Match)) {
        self.filters.iter_mut().for_each(|filter| visit(&mut filter.chosen));
        self.classes.iter_mut().filter_map(|class| class.inner.as_mut()).for_each(|inner| inner.each_match(visit));
    }

    fn parts(&self) -> Vec<Part<'_>> {
        let mut parts = Vec::new();
        for (class, number) in self.classes.iter().zip(1..) {
            let mut settings = vec![
                ("rate", Setting::Rate(class.rate_bps)),
                ("ceil", Setting::Rate(class.ceil_bps)),
                ("burst", Setting::Number(class.burst_bytes.into())),
                ("cburst", Setting::Number(class.cburst_bytes.into())),
                ("prio", Setting::Number(class.prio.into())),
            ];
            settings.extend(class.quantum_bytes.map(|quantum| ("quantum", Setting::Number(quantum.into()))));
            parts.push(Part::Class { class: number, parent: class.parent.map_or(0, |parent| parent + 1), settings });
        }
        let inner = self.classes.iter().zip(1..).filter_map(|(class, number)| Some((class.inner.as_ref()?, number)));
        parts.extend(inner.map(|(qdisc, class)| Part::Inner { class, qdisc }));
        let filters = self.filters.iter();
        parts.extend(filters.map(|filter| Part::Filter { chosen: &filter.chosen, class: filter.class + 1 }));
        parts
    }

    /// Trees of two or three levels.
    #[cfg(feature = "testing")]
    fn any() -> proptest::strategy::BoxedStrategy<Self> {
        use proptest::prelude::*;
        let class = || {
            let rates = (300_000..=20_000_000_u64, 0..=20_000_000_u64);
            let bursts = (1600..=50_000_u32, 1600..=50_000_u32);
            let inner = prop::option::weighted(0.5, super::Qdisc::any_inner().prop_map(Box::new));
            (rates, bursts, prop::option::of(1000..=60_000_u32), 0..8_u8, inner).prop_map(
                |((rate_bps, more_bps), (burst_bytes, cburst_bytes), quantum_bytes, prio, inner)| {
                    let ceil_bps = rate_bps + more_bps;
                    let parent = None;
                    HtbClass { parent, rate_bps, ceil_bps, burst_bytes, cburst_bytes, quantum_bytes, prio, inner }
                },
            )
        };
        let classes = prop::collection::vec((class(), any::<u16>()), 1..=5);
        let filters = prop::collection::vec((Match::any(), any::<u16>()), 0..4);
        (classes, filters, prop::option::of(any::<u16>()), 1..=50_u32, 1..=500_u32)
            .prop_map(|(classes, filters, default, r2q, direct_qlen_packets)| {
                let mut tree: Vec<HtbClass> = Vec::new();
                for (class, parent) in classes {
                    let parent =
                        parent.checked_rem(tree.len() as u16 + 1).filter(|parent| usize::from(*parent) < tree.len());
                    if let Some(parent) = parent {
                        tree[usize::from(parent)].inner = None;
                    }
                    tree.push(HtbClass { parent, ..class });
                }
                let mut htb = Self { classes: tree, filters: Vec::new(), default: None, r2q, direct_qlen_packets };
                let leaves: Vec<u16> = (0..htb.classes.len() as u16).filter(|class| htb.is_leaf(*class)).collect();
                let leaf = |any: u16| leaves[usize::from(any) % leaves.len()];
                htb.default = default.map(leaf);
                htb.filters =
                    filters.into_iter().map(|(chosen, any)| ClassFilter { chosen, class: leaf(any) }).collect();
                htb
            })
            .boxed()
    }

    #[cfg(feature = "testing")]
    fn written(&self) -> Vec<(&'static str, toml::Value)> {
        use toml::{Table, Value};

        use crate::testing::text::{packets, rate, size, table};
        let name = |class: u16| format!("c{class}");
        let class = |class: &HtbClass| {
            let mut keys = vec![
                ("rate", rate(class.rate_bps)),
                ("ceil", rate(class.ceil_bps)),
                ("burst", size(class.burst_bytes)),
                ("cburst", size(class.cburst_bytes)),
                ("prio", i64::from(class.prio).into()),
            ];
            keys.extend(class.parent.map(|parent| ("parent", name(parent).into())));
            keys.extend(class.quantum_bytes.map(|quantum| ("quantum", size(quantum))));
            keys.extend(class.inner.iter().map(|inner| ("inner", inner.written().into())));
            table(keys)
        };
        let filter = |filter: &ClassFilter| table([filter.chosen.written(), ("class", name(filter.class).into())]);
        let classes: Table = (0..).zip(&self.classes).map(|(index, each)| (name(index), class(each))).collect();
        let mut keys = vec![
            ("class", Value::Table(classes)),
            ("filter", Value::Array(self.filters.iter().map(filter).collect())),
            ("r2q", i64::from(self.r2q).into()),
            ("direct_qlen", packets(self.direct_qlen_packets)),
        ];
        keys.extend(self.default.map(|class| ("default", name(class).into())));
        keys
    }
}

impl Htb {
    /// Refuses trees that Linux refuses, and settings of classes that would have no effect.
    fn check(&self, keys: &Keys, path: &str, problems: &mut Problems) -> bool {
        let class_path = |class: u16| {
            let name = keys.class.get_index(class.into()).map_or("", |(name, _)| name.as_str());
            join(&join(path, "class"), name)
        };
        let mut is_sound = true;
        let mut refuse = |problem: Problem| {
            is_sound = false;
            problems.add(|| problem);
        };
        for (index, class) in (0..).zip(&self.classes) {
            if self.depth(index) > Self::MOST_DEPTH {
                let found = format!("a class inside {} others", self.depth(index) - 1);
                refuse(Problem::new(
                    class_path(index),
                    found,
                    format!("a tree of at most {} levels", Self::MOST_DEPTH),
                ));
            }
            if class.inner.is_some() && !self.is_leaf(index) {
                let key = join(&class_path(index), "inner");
                refuse(Problem::new(
                    key,
                    "a discipline of a class that contains others",
                    "a discipline of a class without children",
                ));
            }
            for (key, ns) in [("burst", class.buffer_ns()), ("cburst", class.cbuffer_ns())] {
                if ns >> 6 > u64::from(u32::MAX) {
                    let found = format!("a bucket that lasts {} s at its rate", ns / 1_000_000_000);
                    refuse(Problem::new(join(&class_path(index), key), found, "less than 274 s"));
                }
            }
        }
        let named = (self.filters.iter().zip(1..))
            .map(|(filter, number)| (filter.class, join(&format!("{}[{number}]", join(path, "filter")), "class")))
            .chain(self.default.map(|class| (class, join(path, "default"))));
        for (class, key) in named {
            if !self.is_leaf(class) {
                refuse(Problem::new(key, "a class that contains others", "a class without children"));
            }
        }
        is_sound
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::read;
    use super::*;

    #[test]
    fn the_defaults_of_a_class_are_those_of_tc() {
        let htb = read::<Htb>(
            "class = { a = { rate = \"8mbit\" }, b = { parent = \"a\", rate = \"1mbit\", ceil = \"16gbit\" } }",
        )
        .unwrap();
        let [a, b] = &htb.classes[..] else { panic!() };
        assert_eq!((a.parent, a.ceil_bps, a.burst_bytes, a.cburst_bytes), (None, 8_000_000, 1600, 1600));
        assert_eq!((a.quantum_bytes, a.prio), (None, 0));
        // 2 * 10^9 bytes a second are 2 in a nanosecond.
        assert_eq!((b.parent, b.cburst_bytes), (Some(0), 1602));
        // 1600 bytes at 10^6 bytes a second last 1.6 ms, which are 25,000 ticks; at 125,000 bytes a second, 12.8 ms.
        assert_eq!((a.buffer_ns(), b.buffer_ns()), (1_600_000, 12_800_000));
        // 1602 bytes at 2 * 10^9 a second last 801 ns, which are 12.5 ticks.
        assert_eq!(b.cbuffer_ns(), 12 * 64);
    }

    #[test]
    fn a_tree_that_makes_no_sense_is_refused() {
        for (keys, expected) in [
            ("class = { a = { parent = \"b\", rate = \"1mbit\" }, b = { rate = \"1mbit\" } }", "queue.class.a.parent"),
            ("class = { a = { parent = \"a\", rate = \"1mbit\" } }", "queue.class.a.parent"),
            ("default = \"x\"", "which names no class"),
            ("class = { a = { rate = \"1mbit\" } }\nfilter = [{ dscp = 1, class = \"b\" }]", "which names no class"),
            (
                "default = \"a\"\nclass = { a = { rate = \"1mbit\" }, b = { parent = \"a\", rate = \"1mbit\" } }",
                "a class that contains others",
            ),
            (
                "class = { a = { rate = \"1mbit\", inner = { qdisc = \"codel\" } }, b = { parent = \"a\", rate = \"1mbit\" } }",
                "queue.class.a.inner",
            ),
            ("class = { a = { rate = \"1kbit\", burst = \"1mb\" } }", "a bucket that lasts 8388 s"),
        ] {
            let refusal = read::<Htb>(keys).unwrap_err();
            assert!(refusal.contains(expected), "{refusal}");
        }
        let deep = |levels: usize| {
            let class = |level: usize| {
                let parent = if level > 0 { format!("parent = \"c{}\", ", level - 1) } else { String::new() };
                format!("c{level} = {{ {parent}rate = \"1mbit\" }}")
            };
            format!("class = {{ {} }}", (0..levels).map(class).collect::<Vec<_>>().join(", "))
        };
        assert!(read::<Htb>(&deep(8)).is_ok());
        assert!(read::<Htb>(&deep(9)).unwrap_err().contains("at most 8 levels"));
    }
}
