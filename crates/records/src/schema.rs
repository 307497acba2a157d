//! The columns of the tables.

use std::sync::Arc;

use arrow_schema::{Schema, SchemaRef};
use bufferscope_scenario::Table;

use crate::rows::{
    CapacityRow, DropRow, EstimateRow, FlowRow, OneWayRow, ProbeRow, QueueRow, RetransmissionRow, RoundTripRow, Row,
    SojournRow, TransferRow,
};

/// The columns of a table. Integers are `Int64`, texts are `Utf8`. A column is nullable exactly if the field of the row
/// is an `Option`.
pub fn schema(table: Table) -> SchemaRef {
    let fields = match table {
        Table::Probes => ProbeRow::fields(),
        Table::Flows => FlowRow::fields(),
        Table::Queues => QueueRow::fields(),
        Table::Drops => DropRow::fields(),
        Table::Transfers => TransferRow::fields(),
        Table::Sojourns => SojournRow::fields(),
        Table::Capacity => CapacityRow::fields(),
        Table::Estimates => EstimateRow::fields(),
        Table::RoundTrips => RoundTripRow::fields(),
        Table::Retransmissions => RetransmissionRow::fields(),
        Table::OneWay => OneWayRow::fields(),
    };
    Arc::new(Schema::new(fields))
}
