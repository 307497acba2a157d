//! Writes what changes in the state of TCP as qlog files (draft-ietf-quic-qlog-main-schema-05, which is `qlog_version`
//! 0.3), one for each connection.
//!
//! [`file`] is the file format, and [`events`] gives each change its name and its fields: those of
//! draft-ietf-quic-qlog-quic-events-04 where they fit, and otherwise our own, in the category `tcp`. [`Log`] is the
//! [log](bufferscope_sim::StateLog) of a simulation. [`samples`] derives what it can from samples of a kernel's sockets.
//!
//! Times are those of the records: milliseconds since the run began.

pub mod events;
pub mod file;
mod log;
pub mod samples;

pub use log::{Log, Outcome};
