//! Reads packet captures and analyses the connections in them.
//!
//! [`file`] reads the packets of pcap and pcapng files, [`decode`] finds the transport's headers in them and makes a
//! [`Segment`] of each TCP header. [`analysis`] follows connections, and [`inspect`] puts all of this together, from
//! files to records. Nothing is allocated per packet: a packet borrows the reader's buffer. Every byte is untrusted:
//! nothing panics, and every length is checked against a limit before it is used.
//!
//! The two readers are our own although there are crates for it. Measured beside `pcap-parser` 0.17 and `etherparse`
//! 0.21 (its lax slices) with a million TCP segments cut to 96 bytes, on one processor: the file takes 80 and 78 ns a
//! packet, the headers 148 and 95 ns, ours first; ours include the digest by which copies are recognised.
//! `pcap-parser` reads a file of two sections with different byte orders as ours does, but leaves interfaces, clocks and
//! sections to its caller, and does not say at which byte a file is cut. `etherparse` needs a TCP header with all of
//! its options, 66 bytes of a frame where ours needs 54; it reports the length 0 of an offloaded IPv4 packet unchanged;
//! and it passes VLAN tags, but stops at the outer packet with MPLS, PPPoE, IP in IP, GRE, VXLAN, GTP-U and Geneve. It
//! would replace only the decoding of IP and TCP itself.

pub mod analysis;
pub mod decode;
pub mod file;
mod inspect;
#[allow(missing_docs, reason = "the fields are those of the headers, and named like them")]
mod segment;
pub mod session;

pub use inspect::{InspectError, Inspected, inspect};
pub use segment::{Endpoint, Flags, Options, Segment};
