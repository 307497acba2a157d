//! The columns of the tables.

use std::sync::Arc;

use arrow_schema::{Schema, SchemaRef};
use bufferscope_scenario::Table;

use crate::rows::{
    CapacityRow, DropRow, EstimateRow, FlowQueueRow, FlowRow, HopRow, OneWayRow, ProbeRow, QueueRow, RetransmissionRow,
    RoundTripRow, Row, SojournRow, StageRow, TransferRow,
};

/// Calls a function of a table's type of row.
macro_rules! of_table {
    ($table:ident, $function:ident) => {
        match $table {
            Table::Probes => ProbeRow::$function(),
            Table::Flows => FlowRow::$function(),
            Table::Queues => QueueRow::$function(),
            Table::FlowQueues => FlowQueueRow::$function(),
            Table::Drops => DropRow::$function(),
            Table::Transfers => TransferRow::$function(),
            Table::Sojourns => SojournRow::$function(),
            Table::Capacity => CapacityRow::$function(),
            Table::Estimates => EstimateRow::$function(),
            Table::RoundTrips => RoundTripRow::$function(),
            Table::Retransmissions => RetransmissionRow::$function(),
            Table::OneWay => OneWayRow::$function(),
            Table::Hops => HopRow::$function(),
            Table::Stages => StageRow::$function(),
        }
    };
}

/// The columns of a table. Integers are `Int64`, texts are `Utf8`. A column is nullable exactly if the field of the row
/// is an `Option`.
pub fn schema(table: Table) -> SchemaRef {
    Arc::new(Schema::new(of_table!(table, fields)))
}

/// The columns of a table that hold only certain words, each with these words.
pub fn words(table: Table) -> Vec<(&'static str, &'static [&'static str])> {
    of_table!(table, words)
}
