//! What an endpoint of a measured path needs from Linux, whether the path is emulated on this machine or leads to
//! another: sockets, the kernel's receive timestamps, `TCP_INFO`, and the clock of a run.

pub mod bytes;
pub mod clock;
pub mod datagram;
pub mod error_queue;
pub mod options;
pub mod receive;
pub mod socket;
pub mod tcp_info;
pub mod timestamping;
