//! Kinds of traffic, and the list of them. Each has one file with everything that is known about it outside of the
//! programs on the hosts: its keys, defaults and parameters, its transport, its limits.
//!
//! The loader, the plan, the agent, the simulator and the property tests use the list. What a kind of traffic sends, and
//! when, is in its file in `crates/programs`. Some kinds are load tests, which consist of entries of other kinds.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::Problems;
use crate::file::HostTcp;
use crate::model::Traffic;

mod shared;

pub use ping::PingTiming;
pub use shared::demand::Demand;
use shared::keys::Common;
pub(crate) use shared::keys::Placement;
pub use shared::on_off::{OnOff, Periods};
pub use shared::pattern::Pattern;
pub use shared::sending::Sending;
pub use shared::servers::{End, LAST_SERVER_PORT, Transport};
pub(crate) use shared::servers::{check_ports, server_ports};
pub use web::PageObjects;

/// What the file of a kind of traffic defines.
pub(crate) trait Source: Sized {
    /// The table in an experiment file.
    type Keys;

    /// The transport of its data; `None` for ICMP, which has no ports.
    const TRANSPORT: Option<Transport>;
    /// Where its server is, which waits for the other end to begin.
    const SERVER: End = End::To;
    /// Whether an agent can generate it on a Linux kernel.
    const ON_LINUX: bool = true;
    /// Whether its rows in `probes` are packets without answers, which have only one-way delays.
    const ONE_WAY: bool = false;
    /// Whether its flows carry data that counts as goodput.
    const CARRIES: bool = false;

    /// The keys that all kinds have.
    fn common(keys: &Self::Keys) -> &Common;

    /// The port of its server, if the file names one.
    fn port(keys: &Self::Keys) -> Option<u16>;

    /// Fills in the defaults that depend on other keys. Reports keys that contradict each other.
    fn resolve(keys: &Self::Keys, entry: &Entry<'_>, problems: &mut Problems) -> Self;

    /// Reports parameters with which the entry makes too many rows or connections.
    fn check_limits(&self, traffic: &Traffic, problems: &mut Problems);

    /// The number of its flows that exist from its start to its end, each with rows of its own in `flows`; `None` if it
    /// has none.
    fn flows(&self) -> Option<u32> {
        None
    }

    /// How its connections send their data; `None` if it opens none.
    fn sending(&self) -> Option<Sending> {
        None
    }

    /// The most that an entry that lasts `lasts_ns` has under way at a time.
    fn demand(&self, lasts_ns: u64) -> Demand;

    /// Whether each of its TCP connections is a flow, so that it has an account.
    fn connections_are_flows(&self) -> bool {
        false
    }

    /// Whether each of its rows in `transfers` is all that one connection has carried.
    fn transfers_are_connections(&self) -> bool {
        true
    }

    /// How often property tests choose it, relative to other kinds.
    #[cfg(feature = "testing")]
    const WEIGHT: u32 = 1;

    /// Any valid parameters of an entry that lasts `lasts_ns`, at least a millisecond; `None` if it needs more time.
    #[cfg(feature = "testing")]
    fn any(lasts_ns: u64) -> Option<proptest::strategy::BoxedStrategy<Self>>;

    /// Its own keys as they are written in an experiment file.
    #[cfg(feature = "testing")]
    fn written(&self) -> Vec<(&'static str, toml::Value)>;
}

/// What the keys of a load test, which becomes several entries, define.
pub(crate) trait LoadTest {
    /// Endpoints and times.
    fn placement(&self) -> &Placement;

    /// The entries, in the order of the test's definition.
    fn parts(&self, entry: &Entry<'_>, problems: &mut Problems) -> Vec<EntryPart>;
}

/// The entry of a file whose keys are resolved.
#[derive(Debug)]
pub(crate) struct Entry<'a> {
    /// The path of its table.
    pub(crate) path: &'a str,
    /// When it stops.
    pub(crate) stop_ns: u64,
    /// The settings of the hosts `from` and `to`.
    pub(crate) hosts: [&'a HostTcp; 2],
}

/// One part of an entry: its only one, or one of the flows and probes of a load test.
#[derive(Debug)]
pub(crate) struct EntryPart {
    /// Its name after that of the entry; `None`: it is the entry's only part.
    pub(crate) name: Option<String>,
    /// Code point of its packets.
    pub(crate) dscp: u8,
    /// Whether it goes from the entry's `to` to its `from`.
    pub(crate) reverse: bool,
    /// How much later than the entry it starts, and how much earlier it stops.
    pub(crate) late_ns: u64,
    /// Its kind and parameters.
    pub(crate) kind: TrafficKind,
}

/// Declares the modules of the listed kinds of traffic, and the enums over these.
macro_rules! kinds {
    (sources { $($file:ident::$name:ident($parameters:ident),)+ } tests { $($test_file:ident::$test:ident,)+ }) => {
        $(
            mod $file;
            pub use $file::$parameters;
        )+
        $(mod $test_file;)+

        /// One source of traffic.
        #[derive(Debug, Deserialize, JsonSchema)]
        #[serde(tag = "kind", rename_all = "snake_case")]
        #[schemars(rename = "Traffic")]
        pub(crate) enum TrafficKeys {
            $($name($file::Keys),)+
            $($test($test_file::Keys),)+
        }

        /// A kind of traffic and its parameters.
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
        #[serde(tag = "kind", rename_all = "snake_case")]
        pub enum TrafficKind {
            $(
                #[doc = concat!("`", stringify!($file), "`.")]
                $name($parameters),
            )+
        }

        impl TrafficKeys {
            /// Endpoints and times.
            pub(crate) fn placement(&self) -> &Placement {
                match self {
                    $(Self::$name(keys) => &$parameters::common(keys).placement,)+
                    $(Self::$test(keys) => keys.placement(),)+
                }
            }

            /// The port of its server, if the file names one.
            pub(crate) fn port(&self) -> Option<u16> {
                match self {
                    $(Self::$name(keys) => $parameters::port(keys),)+
                    $(Self::$test(_) => None,)+
                }
            }

            /// The parts of an entry with these keys.
            pub(crate) fn parts(&self, entry: &Entry<'_>, problems: &mut Problems) -> Vec<EntryPart> {
                match self {
                    $(Self::$name(keys) => {
                        let kind = TrafficKind::$name($parameters::resolve(keys, entry, problems));
                        let dscp = $parameters::common(keys).dscp.get();
                        vec![EntryPart { name: None, dscp, reverse: false, late_ns: 0, kind }]
                    })+
                    $(Self::$test(keys) => keys.parts(entry, problems),)+
                }
            }
        }

        impl TrafficKind {
            /// Its name in experiment files.
            pub fn name(&self) -> &'static str {
                match self {
                    $(Self::$name(_) => stringify!($file),)+
                }
            }

            /// The transport of its data; `None` for ICMP, which has no ports.
            pub fn transport(&self) -> Option<Transport> {
                match self {
                    $(Self::$name(_) => $parameters::TRANSPORT,)+
                }
            }

            /// Where its server is.
            pub fn server_end(&self) -> End {
                match self {
                    $(Self::$name(_) => $parameters::SERVER,)+
                }
            }

            /// Whether an agent can generate it on a Linux kernel.
            pub fn is_on_linux(&self) -> bool {
                match self {
                    $(Self::$name(_) => $parameters::ON_LINUX,)+
                }
            }

            /// Whether its rows in `probes` are packets without answers, which have only one-way delays.
            pub fn is_one_way(&self) -> bool {
                match self {
                    $(Self::$name(_) => $parameters::ONE_WAY,)+
                }
            }

            /// Whether its flows carry data that counts as goodput.
            pub fn carries(&self) -> bool {
                match self {
                    $(Self::$name(_) => $parameters::CARRIES,)+
                }
            }

            /// The most that an entry that lasts `lasts_ns` has under way at a time.
            pub fn demand(&self, lasts_ns: u64) -> Demand {
                match self {
                    $(Self::$name(kind) => kind.demand(lasts_ns),)+
                }
            }

            /// Whether each of its TCP connections is a flow, so that it has an account.
            pub fn connections_are_flows(&self) -> bool {
                match self {
                    $(Self::$name(kind) => kind.connections_are_flows(),)+
                }
            }

            /// Whether each of its rows in `transfers` is all that one connection has carried.
            pub fn transfers_are_connections(&self) -> bool {
                match self {
                    $(Self::$name(kind) => kind.transfers_are_connections(),)+
                }
            }

            /// The number of its flows that exist from its start to its end, each with rows of its own in `flows`;
            /// `None` if it has none.
            pub fn flows(&self) -> Option<u32> {
                match self {
                    $(Self::$name(kind) => kind.flows(),)+
                }
            }

            /// How its connections send their data; `None` for traffic that opens none.
            pub fn sending(&self) -> Option<Sending> {
                match self {
                    $(Self::$name(kind) => kind.sending(),)+
                }
            }

            /// Reports parameters with which the entry makes too many rows or connections.
            pub(crate) fn check_limits(&self, traffic: &Traffic, problems: &mut Problems) {
                match self {
                    $(Self::$name(kind) => kind.check_limits(traffic, problems),)+
                }
            }

            /// Any kind of traffic with any valid parameters of an entry that lasts `lasts_ns`, at least a millisecond.
            #[cfg(feature = "testing")]
            pub(crate) fn any(lasts_ns: u64) -> impl proptest::strategy::Strategy<Value = Self> {
                use proptest::strategy::Strategy;
                let kinds = [$(
                    $parameters::any(lasts_ns).map(|any| ($parameters::WEIGHT, any.prop_map(Self::$name).boxed())),
                )+];
                proptest::strategy::Union::new_weighted(kinds.into_iter().flatten().collect())
            }

            /// Its name and its own keys as they are written in an experiment file.
            #[cfg(feature = "testing")]
            pub(crate) fn written(&self) -> Vec<(&'static str, toml::Value)> {
                let mut keys = match self {
                    $(Self::$name(kind) => kind.written(),)+
                };
                keys.push(("kind", self.name().into()));
                keys
            }
        }
    };
}

kinds! {
    sources {
        tcp::Tcp(TcpTraffic),
        ping::Ping(PingTraffic),
        web::Web(WebTraffic),
        udp::Udp(UdpTraffic),
        voip::Voip(VoipTraffic),
        dns::Dns(DnsTraffic),
        bittorrent::Bittorrent(BittorrentTraffic),
        irtt::Irtt(IrttTraffic),
        game::Game(GameTraffic),
        video::Video(VideoTraffic),
        netalyzr::Netalyzr(NetalyzrTraffic),
    }
    tests {
        rrul::Rrul,
        rrul_be::RrulBe,
        tcp_bidirectional::TcpBidirectional,
        tcp_ndown::TcpNdown,
        tcp_nup::TcpNup,
    }
}
