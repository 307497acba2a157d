//! Parquet files: one per table.
//!
//! The `parquet` crate writes the file and describes it; the values of the columns are encoded here. A sample of a flow
//! has 22 values, and a run of a minute with 1,000 flows has 6 million such samples, so this decides how long a run
//! with many flows takes. Two things save most of the time: a string is looked up by its number in the recorder instead
//! of by its characters, and differences are packed by blocks instead of one by one.

mod column;
mod delta;
mod dictionary;
mod hybrid;
mod partition;
mod sink;
mod table;

pub(crate) use column::Column;
pub use partition::{Partition, RunOfPartition};
pub use sink::ParquetSink;
