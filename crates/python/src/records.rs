//! Destinations of a simulation's records: separate files, the files of a partition, or memory.

use std::path::Path;

use arrow_array::RecordBatch;
use bufferscope_records::{
    Batch, MemorySink, ParquetSink, Partition, Recorder, RecordsError, RowCounts, RunOfPartition, Sink, Table,
};

/// One type for all destinations, so that the extension contains a single copy of the simulator, which the compiler
/// inlines better. (With a copy for each, a run with one flow took 8 % longer.)
pub(crate) enum Records<'a> {
    Files(Box<ParquetSink>),
    Partition(RunOfPartition<'a>),
    Memory(Box<MemorySink>),
    /// None: they are stored already.
    Nowhere,
}

/// The records of a finished simulation.
pub(crate) enum Recorded {
    Files(RowCounts),
    Memory(Box<MemorySink>),
    Nowhere,
}

impl<'a> Records<'a> {
    pub(crate) fn in_files(directory: &Path) -> Result<Recorder<Self>, RecordsError> {
        ParquetSink::create(directory).map(|sink| Recorder::new(Self::Files(Box::new(sink))))
    }

    pub(crate) fn in_partition(partition: &'a mut Partition) -> Recorder<Self> {
        Recorder::new(Self::Partition(partition.next_run()))
    }

    pub(crate) fn in_memory() -> Recorder<Self> {
        Recorder::new(Self::Memory(Box::default()))
    }

    pub(crate) fn discarded() -> Recorder<Self> {
        Recorder::new(Self::Nowhere)
    }

    /// The batches of a table that are in memory.
    pub(crate) fn batches(&self, table: Table) -> &[RecordBatch] {
        match self {
            Self::Files(_) | Self::Partition(_) | Self::Nowhere => &[],
            Self::Memory(sink) => sink.batches(table),
        }
    }
}

impl Sink for Records<'_> {
    type Output = Recorded;

    fn write(&mut self, table: Table, batch: &Batch<'_>) -> Result<(), RecordsError> {
        match self {
            Self::Files(sink) => sink.write(table, batch),
            Self::Partition(sink) => sink.write(table, batch),
            Self::Memory(sink) => sink.write(table, batch),
            Self::Nowhere => Ok(()),
        }
    }

    fn finish(self) -> Result<Recorded, RecordsError> {
        match self {
            Self::Files(sink) => sink.finish().map(Recorded::Files),
            Self::Partition(sink) => sink.finish().map(Recorded::Files),
            Self::Memory(sink) => sink.finish().map(|records| Recorded::Memory(Box::new(records))),
            Self::Nowhere => Ok(Recorded::Nowhere),
        }
    }
}

impl Recorded {
    /// The number of rows of a table.
    pub(crate) fn rows(&self, table: Table) -> u64 {
        match self {
            Self::Files(rows) => rows.of(table),
            Self::Memory(sink) => sink.rows(table) as u64,
            Self::Nowhere => 0,
        }
    }

    /// The batches of a table that are in memory.
    pub(crate) fn batches(&self, table: Table) -> &[RecordBatch] {
        match self {
            Self::Files(_) | Self::Nowhere => &[],
            Self::Memory(sink) => sink.batches(table),
        }
    }
}
