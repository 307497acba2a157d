//! Captures of packets: what they show of TCP.
//!
//! A capture becomes [`Segment`]s, one for each TCP segment at each place where packets were captured, in the order of
//! capture.

pub mod analysis;
#[allow(missing_docs, reason = "the fields are those of the headers, and named like them")]
mod segment;

pub use segment::{Endpoint, Flags, Options, Segment};
