//! The sums of the columns of a run's records: equal sums show that two builds of the simulator have the same records.

use std::collections::BTreeMap;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, RecordBatch};
use bufferscope_records::Table;
use serde::Serialize;

/// Of one table: rows, and the sum of each column of numbers.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Totals {
    rows: u64,
    /// Modulo 2^64, in decimal digits, because numbers of JavaScript do not have as many.
    #[serde(serialize_with = "digits")]
    sums: BTreeMap<String, u64>,
}

/// The totals of every table that has rows.
pub(crate) type AllTotals = BTreeMap<&'static str, Totals>;

/// Adds a batch of a table.
pub(crate) fn add(all: &mut AllTotals, table: Table, batch: &RecordBatch) {
    let totals = all.entry(table.name()).or_default();
    totals.rows += batch.num_rows() as u64;
    for (field, column) in batch.schema_ref().fields().iter().zip(batch.columns()) {
        let Some(numbers) = column.as_primitive_opt::<Int64Type>() else { continue };
        let sum = match numbers.null_count() {
            0 => numbers.values().iter().fold(0, |sum: u64, value| sum.wrapping_add(*value as u64)),
            _ => numbers.iter().flatten().fold(0, |sum: u64, value| sum.wrapping_add(value as u64)),
        };
        let before = totals.sums.entry(field.name().clone()).or_default();
        *before = before.wrapping_add(sum);
    }
}

fn digits<S: serde::Serializer>(sums: &BTreeMap<String, u64>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(sums.iter().map(|(name, sum)| (name, sum.to_string())))
}
