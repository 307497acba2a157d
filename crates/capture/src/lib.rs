//! Reads packet captures and analyses the connections in them.
//!
//! [`file`] reads the packets of pcap and pcapng files, [`decode`] finds the transport's headers in them and makes a
//! [`Segment`] of each TCP header. [`analysis`] follows connections, and [`inspect`] puts all of this together, from
//! files to records. Nothing is allocated per packet: a packet borrows the reader's buffer. Every byte is untrusted:
//! nothing panics, and every length is checked against a limit before it is used.

pub mod analysis;
pub mod decode;
pub mod file;
mod inspect;
#[allow(missing_docs, reason = "the fields are those of the headers, and named like them")]
mod segment;
pub mod session;

pub use inspect::{InspectError, Inspected, inspect};
pub use segment::{Endpoint, Flags, Options, Segment};
