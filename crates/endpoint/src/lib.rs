//! What an endpoint of a measured path needs from Linux, whether the path is emulated on this machine or leads to
//! another: sockets, the kernel's receive timestamps, `TCP_INFO`, the clock of a run, and the state of this machine's
//! interfaces and processors.

pub mod byte_limits;
pub mod bytes;
pub mod class_stats;
pub mod clock;
pub mod cpu;
pub mod datagram;
pub mod dualpi2;
pub mod error_queue;
pub mod ethtool;
pub mod netlink;
pub mod options;
pub mod qdisc_stats;
pub mod receive;
pub mod ring;
pub mod socket;
pub mod sysfs;
pub mod tcp_info;
pub mod timestamping;
