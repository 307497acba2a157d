//! The tables of a run's records, by name: a scenario says which of them are recorded.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A table of a run's records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Table {
    /// One row per probe sent.
    Probes,
    /// One row per sample of a flow.
    Flows,
    /// One row per sample of a port's queue.
    Queues,
    /// One row per sample of a flow queue that holds packets, in a discipline with flow queueing.
    FlowQueues,
    /// One row per packet dropped or marked.
    Drops,
    /// One row per object fetched or sent.
    Transfers,
    /// How long packets stayed in a port's queue.
    Sojourns,
    /// One row per rate of a port's link: the first, and each change.
    Capacity,
    /// One row per estimate of a path's buffer.
    Estimates,
    /// One row per round-trip time in a capture of packets.
    #[schemars(skip)]
    RoundTrips,
    /// One row per retransmitted segment in a capture of packets.
    #[schemars(skip)]
    Retransmissions,
    /// One row per packet that was captured at both ends.
    #[schemars(skip)]
    OneWay,
    /// One row per probe of a live measurement that was to reach only a hop of the path.
    #[schemars(skip)]
    Hops,
    /// One row per stay of a probe in one of its sender's own queues, in a live measurement.
    #[schemars(skip)]
    Stages,
}

impl Table {
    /// Every table, in the order in which documentation and run directories list them.
    pub const ALL: [Self; 14] = [
        Self::Probes,
        Self::Flows,
        Self::Queues,
        Self::FlowQueues,
        Self::Drops,
        Self::Transfers,
        Self::Sojourns,
        Self::Capacity,
        Self::Estimates,
        Self::RoundTrips,
        Self::Retransmissions,
        Self::OneWay,
        Self::Hops,
        Self::Stages,
    ];

    /// The tables that a run of an experiment records, in the same order. The others are of captures and of live
    /// measurements.
    pub const RECORDED: [Self; 9] = [
        Self::Probes,
        Self::Flows,
        Self::Queues,
        Self::FlowQueues,
        Self::Drops,
        Self::Transfers,
        Self::Sojourns,
        Self::Capacity,
        Self::Estimates,
    ];

    /// Whether a run without a row of this table has no file of it either. Every run has a file of each other table.
    pub fn is_optional(self) -> bool {
        matches!(self, Self::FlowQueues | Self::Hops | Self::Stages)
    }

    /// Its name; its file is `<name>.parquet`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Probes => "probes",
            Self::Flows => "flows",
            Self::Queues => "queues",
            Self::FlowQueues => "flow_queues",
            Self::Drops => "drops",
            Self::Transfers => "transfers",
            Self::Sojourns => "sojourns",
            Self::Capacity => "capacity",
            Self::Estimates => "estimates",
            Self::RoundTrips => "round_trips",
            Self::Retransmissions => "retransmissions",
            Self::OneWay => "one_way",
            Self::Hops => "hops",
            Self::Stages => "stages",
        }
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A set of tables. It serialises as the list of its tables, in the order of [`Table::ALL`].
///
/// ```
/// use bufferscope_scenario::{Table, Tables};
///
/// let tables = Tables::from_iter([Table::Queues, Table::Probes]);
/// assert!(tables.contains(Table::Queues) && !tables.contains(Table::Flows));
/// assert_eq!(tables.iter().map(Table::name).collect::<Vec<_>>(), ["probes", "queues"]);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(from = "Vec<Table>", into = "Vec<Table>")]
#[schemars(inline)]
pub struct Tables([bool; Table::ALL.len()]);

impl Tables {
    /// Every table.
    pub const ALL: Self = Self([true; Table::ALL.len()]);

    /// Whether the table is in the set.
    #[inline]
    pub fn contains(self, table: Table) -> bool {
        self.0[table as usize]
    }

    /// Whether these are the tables that a run records by default, [`Table::RECORDED`].
    pub fn are_default(&self) -> bool {
        *self == Self::default()
    }

    /// The tables of the set, in the order of [`Table::ALL`].
    pub fn iter(self) -> impl Iterator<Item = Table> {
        Table::ALL.into_iter().filter(move |table| self.contains(*table))
    }
}

impl Default for Tables {
    fn default() -> Self {
        Self::from_iter(Table::RECORDED)
    }
}

impl FromIterator<Table> for Tables {
    fn from_iter<I: IntoIterator<Item = Table>>(tables: I) -> Self {
        let mut set = Self([false; Table::ALL.len()]);
        tables.into_iter().for_each(|table| set.0[table as usize] = true);
        set
    }
}

impl From<Vec<Table>> for Tables {
    fn from(tables: Vec<Table>) -> Self {
        Self::from_iter(tables)
    }
}

impl From<Tables> for Vec<Table> {
    fn from(tables: Tables) -> Self {
        tables.iter().collect()
    }
}
