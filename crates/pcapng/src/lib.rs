//! Writes the packets of a run as a pcapng file (draft-ietf-opsawg-pcapng), which Wireshark and tcpdump read.
//!
//! [`blocks`] is the file format, [`headers`] makes the bytes of a packet, and [`Capture`] is the
//! [tap](bufferscope_sim::Tap) that joins them: the simulator knows what headers mean, not their bits. A [`Recording`]
//! writes what a kernel has captured. Packets go to the writer one after the other, so memory does not grow with the run.
//!
//! Times are those of the records: nanoseconds since the run began. To a reader, a run begins on 1 January 1970.

pub mod blocks;
mod capture;
mod checksum;
pub mod headers;
mod recording;

pub use capture::{Capture, Interface, Outcome};
pub use recording::Recording;
