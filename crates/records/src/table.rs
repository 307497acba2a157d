//! The six tables.

use std::fmt;
use std::sync::Arc;

use arrow_schema::{Schema, SchemaRef};

use crate::rows::{DropRow, FlowRow, ProbeRow, QueueRow, Row, SojournRow, TransferRow};

/// A table of a run's records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Table {
    /// One row per probe sent: [`ProbeRow`].
    Probes,
    /// One row per sample of a flow: [`FlowRow`].
    Flows,
    /// One row per sample of a port's layer: [`QueueRow`].
    Queues,
    /// One row per packet dropped or marked: [`DropRow`].
    Drops,
    /// One row per object fetched or sent: [`TransferRow`].
    Transfers,
    /// How long packets stayed in a port's layer: [`SojournRow`].
    Sojourns,
}

impl Table {
    /// Every table, in the order in which documentation and run directories list them.
    pub const ALL: [Table; 6] =
        [Table::Probes, Table::Flows, Table::Queues, Table::Drops, Table::Transfers, Table::Sojourns];

    /// Its name in lower case; its file is `<name>.parquet`.
    pub fn name(self) -> &'static str {
        match self {
            Table::Probes => "probes",
            Table::Flows => "flows",
            Table::Queues => "queues",
            Table::Drops => "drops",
            Table::Transfers => "transfers",
            Table::Sojourns => "sojourns",
        }
    }

    /// Its columns. Integers are `Int64`, texts are `Utf8`. A column is nullable exactly if the field of the row is an
    /// `Option`.
    pub fn schema(self) -> SchemaRef {
        let fields = match self {
            Table::Probes => ProbeRow::fields(),
            Table::Flows => FlowRow::fields(),
            Table::Queues => QueueRow::fields(),
            Table::Drops => DropRow::fields(),
            Table::Transfers => TransferRow::fields(),
            Table::Sojourns => SojournRow::fields(),
        };
        Arc::new(Schema::new(fields))
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
