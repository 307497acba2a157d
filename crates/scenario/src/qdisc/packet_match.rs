//! The packets that a filter of a discipline with classes or bands chooses.
//!
//! In the kernel, these are filters of `cls_u32` (tc-u32(8)), which compare the code point, or the protocol and a port.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Qdisc;
use crate::dscp::Dscp;
use crate::error::{Problem, Problems, quote};
use crate::model::{Link, Traffic};
use crate::path::join;
use crate::suggest::{any_of, closest};
use crate::text::Name;
use crate::traffic::server_ports;

/// Which packets a filter chooses.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Match {
    /// Packets with this code point.
    Dscp(u8),
    /// Packets of TCP and UDP from and to servers at these ports. Port 0 means ICMP.
    Ports(Vec<u16>),
    /// Packets of an entry of traffic, until [`bind`] knows its ports. The loader leaves none of these in a scenario.
    #[serde(skip)]
    Traffic {
        /// The entry's name.
        name: String,
        /// The path of the key with the name.
        path: String,
    },
}

impl Match {
    /// The packets that the keys of the filter at `path` choose; `None` unless there is exactly one key.
    pub(super) fn resolve(
        dscp: Option<Dscp>,
        port: Option<u16>,
        traffic: Option<&Name>,
        path: &str,
        problems: &mut Problems,
    ) -> Option<Self> {
        let dscp = dscp.map(|dscp| Self::Dscp(dscp.get()));
        let port = port.map(|port| Self::Ports(vec![port]));
        let traffic = traffic.map(|name| Self::Traffic { name: name.to_string(), path: join(path, "traffic") });
        let given: Vec<Self> = dscp.into_iter().chain(port).chain(traffic).collect();
        let count = given.len();
        <[Self; 1]>::try_from(given).map_or_else(
            |_| {
                let found = format!("{count} of the keys dscp, port and traffic");
                problems.add(|| Problem::new(path, found, "exactly one of them"));
                None
            },
            |[only]| Some(only),
        )
    }

    /// Any match that an experiment file can express, except one by an entry of traffic.
    #[cfg(feature = "testing")]
    pub(super) fn any() -> impl proptest::strategy::Strategy<Value = Self> {
        use proptest::prelude::*;
        prop_oneof![
            (0..64_u8).prop_map(Self::Dscp),
            (1..=crate::LAST_SERVER_PORT).prop_map(|port| Self::Ports(vec![port])),
        ]
    }

    /// Its key as it is written in an experiment file.
    #[cfg(feature = "testing")]
    pub(super) fn written(&self) -> (&'static str, toml::Value) {
        match self {
            Self::Dscp(dscp) => ("dscp", i64::from(*dscp).into()),
            Self::Ports(ports) => ("port", ports.first().map_or(0, |port| i64::from(*port)).into()),
            Self::Traffic { name, .. } => ("traffic", name.as_str().into()),
        }
    }
}

/// Resolves filters by traffic to the ports of its servers. An entry with several parts has the ports of all parts.
pub(crate) fn bind(links: &mut [Link], traffic: &[Traffic], problems: &mut Problems) {
    let mut ports = None;
    let queues = links.iter_mut().flat_map(|link| [&mut link.forward.queue, &mut link.reverse.queue]);
    let mut bind = |filter: &mut Match| {
        let Match::Traffic { name, path } = filter else { return };
        let ports = ports.get_or_insert_with(|| server_ports(traffic));
        let is_of = |traffic: &Traffic| traffic.entry() == name;
        let own = traffic.iter().zip(&*ports).filter(|(traffic, _)| is_of(traffic)).map(|(_, port)| *port);
        let mut own: Vec<u16> = own.collect();
        own.sort_unstable();
        own.dedup();
        if own.is_empty() {
            let mut names: Vec<&str> = traffic.iter().map(|traffic| traffic.entry()).collect();
            names.dedup();
            let nearest = closest(name, names.iter().copied());
            let allowed = if names.is_empty() { "the name of a [[traffic]] entry".to_owned() } else { any_of(names) };
            let problem =
                || Problem::new(&*path, format!("{}, which names no [[traffic]] entry", quote(name)), allowed);
            problems.add(|| problem().did_you_mean(nearest));
        }
        *filter = Match::Ports(own);
    };
    queues.for_each(|queue: &mut Qdisc| queue.each_match(&mut bind));
}
