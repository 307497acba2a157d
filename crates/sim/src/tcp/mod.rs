//! TCP as a pure state machine: segments and times are inputs, segments and a deadline are outputs.
//!
//! An [`Endpoint`] performs no I/O, reads no clock and draws no random numbers. The caller supplies the time, the
//! segments that arrive and the application's actions, and takes the segments that the endpoint sends ([`Egress`]). The
//! behaviour is that of a Linux 6.x host; each file names the RFC or kernel file that it models and its known
//! departures.
//!
//! An endpoint has two halves. `sender` tracks which segments are in flight and which are lost, retransmits, runs
//! the timeouts, and asks the congestion control how much may be in flight. `receiver` tracks what has arrived, how much more may
//! arrive, and when to acknowledge.
//!
//! One departure applies everywhere: a connection never gives up (the kernel gives up after `tcp_syn_retries` and
//! `tcp_retries2` attempts).

mod config;
mod ecn;
mod egress;
mod endpoint;
mod handshake;
mod journal;
mod receiver;
mod sample;
mod sender;
mod thresholds;
mod timestamps;

pub use crate::network::segment::{Flags, SackBlock, SackBlocks, Segment};
pub use crate::timers::Timers;
pub use crate::transport::congestion::State;
pub use config::{Config, Role};
pub use egress::{Egress, Outgoing};
pub use endpoint::Endpoint;
pub use journal::{
    ConnectionState, Epoch, Expiry, Limit, Metrics, Sign, SlowStartEnd, Transition, Trigger, WindowChange, Windows,
};
pub use receiver::window_scale;
pub use sample::Sample;
pub(crate) use sender::SENT_BYTES;
pub(crate) use thresholds::{AddressPair, Ending, Thresholds};
