//! The records of a run: the tables that every engine writes and everything else reads.
//!
//! An engine passes typed rows to a [`Recorder`], which collects them into batches of a thousand rows and passes those
//! to a [`Sink`]: [`ParquetSink`] writes one Parquet file per table, [`Partition`] does so for many
//! runs together, and [`MemorySink`] keeps the batches in memory. The first two use bounded memory however long a run
//! is. Rows keep the order in which they were recorded, and equal rows give byte-identical files.
//!
//! Times are integer nanoseconds since the start of the run; a column's name includes its unit. The fields of a row
//! ([`ProbeRow`], [`FlowRow`], ...) *are* the columns of its table, which are defined nowhere else.

mod batch;
#[cfg(feature = "ipc")]
pub mod frame;
mod histogram;
#[cfg(feature = "ipc")]
pub mod ipc;
mod names;
#[cfg(feature = "ipc")]
pub mod packets;
#[cfg(feature = "parquet")]
mod parquet;
mod recorder;
mod rows;
mod schema;
mod sink;
mod value;

pub use batch::Batch;
pub use bufferscope_scenario::{Table, Tables};
pub use histogram::SojournHistogram;
pub use names::Name;
#[cfg(feature = "parquet")]
pub use parquet::{ParquetSink, Partition, RunOfPartition};
pub use recorder::Recorder;
pub use rows::{
    CapacityRow, Datagrams, DropRow, EstimateRow, FlowQueueRow, FlowRow, HopRow, OneWayRow, ProbeRow, QueueRow,
    RetransmissionRow, RoundTripRow, SojournRow, StageRow, TransferRow,
};
pub use schema::{schema, words};
pub use sink::{MemorySink, RecordsError, RowCounts, Sink};
pub use value::{
    Answer, Direction, DropReason, End, FlowDirection, FlowState, Half, Layer, Method, Observed, RetransmissionKind,
    Stage,
};
