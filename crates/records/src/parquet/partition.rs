//! The tables of many runs in one Parquet file per table.

use std::path::Path;
use std::sync::Arc;

use arrow_schema::{DataType, Field, Schema, SchemaRef};

use super::sink::ParquetSink;
use crate::{Batch, RecordsError, RowCounts, Sink, Table};

/// The column that says which run a row belongs to.
pub(super) const RUN: &str = "run";

/// Streams the tables of several runs, one run after the other, into `<directory>/<table>.parquet`.
///
/// The first column of each table is `run`, the number of the run within the partition, from 0. The other columns are
/// those of the table's [schema](crate::schema). Memory does not grow with the number of runs: a row group is written
/// when it is full.
pub struct Partition {
    sink: ParquetSink,
    runs: i32,
}

impl Partition {
    /// Creates the files in an existing directory; files of the same names are replaced.
    pub fn create(directory: &Path) -> Result<Self, RecordsError> {
        Ok(Self { sink: ParquetSink::with_schemas(directory, Table::ALL.map(with_run))?, runs: 0 })
    }

    /// A sink for the tables of the next run. Its output is the number of rows of that run.
    pub fn next_run(&mut self) -> RunOfPartition<'_> {
        let run = self.runs;
        self.runs += 1;
        RunOfPartition { partition: self, run, rows: RowCounts::default() }
    }

    /// Completes the files.
    pub fn finish(self) -> Result<(), RecordsError> {
        self.sink.finish().map(|_| ())
    }
}

/// Takes the batches of one run of a [`Partition`].
pub struct RunOfPartition<'a> {
    partition: &'a mut Partition,
    run: i32,
    rows: RowCounts,
}

impl Sink for RunOfPartition<'_> {
    type Output = RowCounts;

    fn write(&mut self, table: Table, batch: &Batch<'_>) -> Result<(), RecordsError> {
        let run = self.run.into();
        self.rows.add(table, batch.num_rows());
        self.partition.sink.append(table, batch, |part, columns| {
            let (first, others) = columns.split_first_mut().expect("a partition's tables have one column more");
            first.integers(&vec![run; part.num_rows()]);
            part.encode(others);
        })
    }

    fn finish(self) -> Result<RowCounts, RecordsError> {
        Ok(self.rows)
    }
}

fn with_run(table: Table) -> SchemaRef {
    let run = Arc::new(Field::new(RUN, DataType::Int32, false));
    let own = crate::schema(table);
    Arc::new(Schema::new(std::iter::once(run).chain(own.fields().iter().cloned()).collect::<Vec<_>>()))
}
