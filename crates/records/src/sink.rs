//! Destinations of batches.

use std::path::PathBuf;

use arrow_array::RecordBatch;
#[cfg(feature = "ipc")]
use arrow_schema::ArrowError;
#[cfg(feature = "parquet")]
use parquet::errors::ParquetError;
use serde::ser::{Serialize, SerializeMap, Serializer};

use crate::{Batch, Table};

/// Takes the batches of a run, in order.
pub trait Sink {
    /// The result that remains when the run is over.
    type Output
    where
        Self: Sized;

    /// Takes one batch of `table`.
    fn write(&mut self, table: Table, batch: &Batch<'_>) -> Result<(), RecordsError>;

    /// Completes the output.
    fn finish(self) -> Result<Self::Output, RecordsError>
    where
        Self: Sized;
}

/// Records could not be stored.
#[derive(Debug, thiserror::Error)]
pub enum RecordsError {
    /// A table's file could not be created.
    #[error("cannot create {path}: {source}", path = path.display())]
    Create {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A table could not be written: most often a full disk.
    #[cfg(feature = "parquet")]
    #[error("cannot write the table `{table}`: {source}")]
    Write {
        /// The table.
        table: Table,
        /// What the Parquet writer said.
        source: ParquetError,
    },
    /// A batch is not valid Arrow IPC.
    #[cfg(feature = "ipc")]
    #[error("a batch of the table `{table}` is not valid Arrow IPC: {source}")]
    Transfer {
        /// The table.
        table: Table,
        /// What the Arrow library said.
        source: ArrowError,
    },
    /// A batch does not have the columns of its table, because its writer comes from a different build.
    #[cfg(feature = "ipc")]
    #[error("a batch of the table `{table}` has other columns than the table has in this build: {differing}")]
    OtherColumns {
        /// The table.
        table: Table,
        /// The columns that only one of the two has, or that differ in type.
        differing: String,
    },
    /// The receiver of the batches no longer exists.
    #[error("the receiver of the records is gone")]
    Closed,
}

/// How many rows each table has; serialises as a map from table name to count, without the
/// [optional](Table::is_optional) tables that have no rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RowCounts([u64; Table::ALL.len()]);

impl RowCounts {
    /// The rows of one table.
    pub fn of(&self, table: Table) -> u64 {
        self.0[table as usize]
    }

    #[cfg(feature = "parquet")]
    pub(crate) fn add(&mut self, table: Table, rows: usize) {
        self.0[table as usize] += rows as u64;
    }
}

impl Serialize for RowCounts {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let written = || Table::ALL.into_iter().filter(|&table| !table.is_optional() || self.of(table) > 0);
        let mut map = serializer.serialize_map(Some(written().count()))?;
        for table in written() {
            map.serialize_entry(table.name(), &self.of(table))?;
        }
        map.end()
    }
}

/// Keeps every batch in memory.
#[derive(Debug, Default)]
pub struct MemorySink {
    batches: [Vec<RecordBatch>; Table::ALL.len()],
}

impl MemorySink {
    /// The batches of one table, in order.
    pub fn batches(&self, table: Table) -> &[RecordBatch] {
        &self.batches[table as usize]
    }

    /// The rows of one table over all its batches.
    pub fn rows(&self, table: Table) -> usize {
        self.batches(table).iter().map(RecordBatch::num_rows).sum()
    }
}

impl Sink for MemorySink {
    type Output = Self;

    fn write(&mut self, table: Table, batch: &Batch<'_>) -> Result<(), RecordsError> {
        self.batches[table as usize].push(batch.to_arrow());
        Ok(())
    }

    fn finish(self) -> Result<Self, RecordsError> {
        Ok(self)
    }
}
