//! TCP as a pure state machine: segments and times are inputs, segments and a deadline are outputs.
//!
//! An [`Endpoint`] performs no I/O, reads no clock and draws no random numbers: the caller supplies the time, the
//! segments that arrived and what the application wants, and takes what it sends ([`Egress`]). The behaviour is that of
//! a Linux 6.x host; each file names the RFC or kernel file it models and where it knowingly departs.
//!
//! An endpoint joins two halves. `sender` tracks what is in flight, what is lost, how a loss is repaired and when to
//! time out, and asks `congestion` how much may be in flight. `receiver` tracks what has arrived, how much more may
//! arrive, and when to acknowledge.
//!
//! One departure holds for all of it: a connection never gives up (the kernel does after `tcp_syn_retries` and `tcp_retries2`
//! attempts).

mod config;
mod congestion;
mod ecn;
mod egress;
mod endpoint;
mod extremes;
mod handshake;
mod receiver;
mod sample;
mod segment;
mod sender;
mod thresholds;
mod timers;
mod timestamps;

pub use config::{Config, Role};
pub use egress::{Egress, Xmit};
pub use endpoint::Endpoint;
pub use sample::{Sample, State};
pub use segment::{Flags, Outgoing, SackBlock, SackBlocks, Segment};
pub(crate) use sender::SENT_BYTES;
pub(crate) use thresholds::{Ending, Thresholds, Way};
pub use timers::Timers;
