//! `prio`: several disciplines in order of priority (`sch_prio`).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Discipline, Limit, Match, Part, Pfifo, Qdisc, Queue, Setting, TXQUEUELEN};
use crate::dscp::Dscp;
use crate::error::{Problem, Problems};
use crate::path::join;
use crate::text::Name;

/// Number of priorities that a packet can have (`TC_PRIO_MAX` and 0).
const PRIORITIES: usize = 16;

/// Several disciplines, each in a band of its own. A band is served only while those before it are empty.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct Keys {
    /// Number of bands.
    #[serde(default = "bands")]
    #[schemars(range(min = 2, max = 16))]
    bands: u8,
    /// The band, counted from 0, of each of the 16 priorities that Linux derives from a packet's code point: 0 best effort,
    /// 2 bulk, 4 interactive bulk, 6 interactive; no code point leads to any other.
    #[serde(default = "priomap")]
    priomap: [Band; PRIORITIES],
    /// The disciplines of the bands, in order. A band without an entry has a pfifo of 1000 packets.
    #[serde(default)]
    inner: Vec<Queue>,
    /// Filters that select a band, whatever the priority of the packet. The first match wins.
    #[serde(default)]
    filter: Vec<FilterKeys>,
}

/// A band, counted from 0.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, JsonSchema)]
#[schemars(inline)]
struct Band(#[schemars(range(min = 0, max = 15))] u8);

/// Classifies packets by their code point, or by the port of their server, into a band.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields, rename = "BandFilter")]
struct FilterKeys {
    /// The code point, by name or number. Exactly one of dscp, port and traffic must be given.
    dscp: Option<Dscp>,
    /// The port of a server: TCP and UDP packets to and from it.
    #[schemars(range(min = 1, max = 19_999), example = 443)]
    port: Option<u16>,
    /// The name of a `[[traffic]]` entry: packets to and from the ports of its servers. For ping, which has no port,
    /// all ICMP packets.
    traffic: Option<Name>,
    /// The band, counted from 0.
    #[schemars(range(min = 0, max = 15))]
    band: u8,
}

/// iproute2's `tc/q_prio.c`.
fn bands() -> u8 {
    3
}

/// iproute2's `tc/q_prio.c`, the same as that of `pfifo_fast`.
fn priomap() -> [Band; PRIORITIES] {
    Prio::PRIOMAP.map(Band)
}

/// Parameters of `prio`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Prio {
    /// Number of bands.
    pub bands: u8,
    /// The band of each priority.
    pub priomap: [u8; PRIORITIES],
    /// The disciplines of the first bands. The others have a `pfifo` of the default `txqueuelen`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inner: Vec<Qdisc>,
    /// The filters, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub filters: Vec<BandFilter>,
}

/// Packets that go to a band.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BandFilter {
    /// Which packets.
    pub chosen: Match,
    /// The band, counted from 0.
    pub band: u8,
}

impl Prio {
    /// The band of each priority, if nothing else is given.
    pub const PRIOMAP: [u8; PRIORITIES] = [1, 2, 2, 2, 1, 2, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1];
    /// Limit of the default discipline of a band: `txqueuelen` of an Ethernet device.
    pub const BAND_PACKETS: u32 = TXQUEUELEN;
}

impl Discipline for Prio {
    type Keys = Keys;

    const PURPOSE: &'static str = "Bands that are served in strict order, each with a discipline of its own.";
    const SOURCE: &'static str = "net/sched/sch_prio.c";
    const MODULE: &'static str = "sch_prio";
    const SAMPLE: &'static str = "prio";
    const CONTAINS_OTHERS: bool = true;

    fn resolve(keys: &Keys, txqueuelen: u32, path: &str, problems: &mut Problems) -> Option<Self> {
        let bands = keys.bands;
        let (from, to) = (format!("{bands} bands"), format!("a band from 0 to {}", bands.saturating_sub(1)));
        let mut sound = true;
        let mut check = |band: u8, key: String| {
            if band >= bands {
                sound = false;
                problems.add(|| Problem::new(format!("{path}.{key}"), format!("band {band} of {from}"), to.clone()));
            }
        };
        keys.priomap.iter().zip(1..).for_each(|(band, number)| check(band.0, format!("priomap[{number}]")));
        keys.filter.iter().zip(1..).for_each(|(filter, number)| check(filter.band, format!("filter[{number}]")));
        if keys.inner.len() > usize::from(bands) {
            sound = false;
            let found = format!("{} disciplines for {from}", keys.inner.len());
            problems.add(|| Problem::new(join(path, "inner"), found, "at most one for each band"));
        }
        let resolve = |(queue, number): (&Queue, u32)| {
            Qdisc::resolve(queue, txqueuelen, &format!("{}[{number}]", join(path, "inner")), problems)
        };
        let inner: Vec<Option<Qdisc>> = keys.inner.iter().zip(1..).map(resolve).collect();
        let mut inner = inner.into_iter().collect::<Option<Vec<Qdisc>>>()?;
        if txqueuelen != TXQUEUELEN && sound {
            inner.resize(bands.into(), Qdisc::Pfifo(Pfifo { limit_packets: txqueuelen }));
        }
        let resolve = |(filter, number): (&FilterKeys, u32)| {
            let here = format!("{}[{number}]", join(path, "filter"));
            let chosen = Match::resolve(filter.dscp, filter.port, filter.traffic.as_ref(), &here, problems)?;
            Some(BandFilter { chosen, band: filter.band })
        };
        let filters: Vec<Option<BandFilter>> = keys.filter.iter().zip(1..).map(resolve).collect();
        let filters = filters.into_iter().collect::<Option<Vec<BandFilter>>>()?;
        sound.then(|| Self { bands, priomap: keys.priomap.map(|band| band.0), inner, filters })
    }

    fn limit(&self) -> Limit {
        let others = u64::from(self.bands).saturating_sub(self.inner.len() as u64) * u64::from(Self::BAND_PACKETS);
        Limit::sum(self.inner.iter().map(Qdisc::limit).chain([Limit::Packets(others)]))
    }

    fn settings(&self) -> Vec<(&'static str, Setting)> {
        let bands: Vec<String> = self.priomap.iter().map(u8::to_string).collect();
        vec![("bands", Setting::Number(self.bands.into())), ("priomap", Setting::Words(bands.join(" ")))]
    }

    fn each_match(&mut self, visit: &mut dyn FnMut(&mut Match)) {
        self.filters.iter_mut().for_each(|filter| visit(&mut filter.chosen));
        self.inner.iter_mut().for_each(|inner| inner.each_match(visit));
    }

    fn parts(&self) -> Vec<Part<'_>> {
        let inner = (1..).zip(&self.inner).map(|(class, qdisc)| Part::Inner { class, qdisc });
        let filters = self.filters.iter();
        let filters = filters.map(|filter| Part::Filter { chosen: &filter.chosen, class: u16::from(filter.band) + 1 });
        inner.chain(filters).collect()
    }

    #[cfg(feature = "testing")]
    fn any() -> proptest::strategy::BoxedStrategy<Self> {
        use proptest::prelude::*;
        (2..=16_u8)
            .prop_flat_map(|bands| {
                let filter = (Match::any(), 0..bands).prop_map(|(chosen, band)| BandFilter { chosen, band });
                let priomap = proptest::array::uniform16(0..bands);
                let inner = prop::collection::vec(Qdisc::any_inner(), 0..=usize::from(bands.min(3)));
                (Just(bands), priomap, inner, prop::collection::vec(filter, 0..3))
            })
            .prop_map(|(bands, priomap, inner, filters)| Self { bands, priomap, inner, filters })
            .boxed()
    }

    #[cfg(feature = "testing")]
    fn written(&self) -> Vec<(&'static str, toml::Value)> {
        use toml::Value;

        use crate::testing::text::table;
        let filter = |filter: &BandFilter| table([filter.chosen.written(), ("band", i64::from(filter.band).into())]);
        vec![
            ("bands", i64::from(self.bands).into()),
            ("priomap", Value::Array(self.priomap.iter().map(|band| i64::from(*band).into()).collect())),
            ("inner", Value::Array(self.inner.iter().map(|inner| inner.written().into()).collect())),
            ("filter", Value::Array(self.filters.iter().map(filter).collect())),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::read;
    use super::*;

    #[test]
    fn each_band_is_a_fifo_by_default() {
        let prio = read::<Prio>("").unwrap();
        assert_eq!((prio.inner.len(), prio.filters.len(), prio.limit()), (0, 0, Limit::Packets(3000)));
    }

    #[test]
    fn a_filter_has_a_code_point_or_a_port() {
        let prio = read::<Prio>("filter = [{ dscp = \"ef\", band = 0 }, { port = 443, band = 2 }]").unwrap();
        let chosen: Vec<&Match> = prio.filters.iter().map(|filter| &filter.chosen).collect();
        assert_eq!(chosen, [&Match::Dscp(46), &Match::Ports(vec![443])]);
    }

    /// The kernel refuses a map to a band that does not exist, such as tc's own with two bands.
    #[test]
    fn a_band_that_does_not_exist_is_refused() {
        let refusal = read::<Prio>("bands = 2").unwrap_err();
        assert!(refusal.contains("queue.priomap[2]: found band 2 of 2 bands"), "{refusal}");
        let refusal = read::<Prio>("filter = [{ dscp = \"ef\", band = 3 }]").unwrap_err();
        assert!(refusal.contains("queue.filter[1]: found band 3 of 3 bands"), "{refusal}");
        for keys in ["band = 1", "dscp = 1, port = 80, band = 1", "port = 80, traffic = \"web\", band = 1"] {
            let refusal = read::<Prio>(&format!("filter = [{{ {keys} }}]")).unwrap_err();
            assert!(refusal.contains("queue.filter[1]: found") && refusal.contains("exactly one"), "{refusal}");
        }
        let four = ["{ qdisc = \"codel\" }"; 4].join(", ");
        let refusal = read::<Prio>(&format!("inner = [{four}]")).unwrap_err();
        assert!(refusal.contains("queue.inner: found 4 disciplines for 3 bands"), "{refusal}");
    }
}
