//! Reads captures of packets, and what they show of the connections in them.
//!
//! [`file`] reads the packets of pcap and pcapng files, [`decode`] finds the transport's headers in them, and what it
//! finds of TCP is a [`Segment`]. [`analysis`] follows connections, and [`inspect`] puts all of this together, from files to
//! records. Nothing is allocated per packet: a packet borrows the reader's buffer. Every byte is
//! untrusted: nothing panics, and no length is believed before it has been checked against a limit.

pub mod analysis;
pub mod decode;
pub mod file;
mod inspect;
#[allow(missing_docs, reason = "the fields are those of the headers, and named like them")]
mod segment;
pub mod session;

pub use inspect::{InspectError, Inspected, inspect};
pub use segment::{Endpoint, Flags, Options, Segment};
