//! The parts of Linux that the agent talks to, one per file, in addition to those of `crates/endpoint`. Unsafe code is
//! allowed only in here and in `init::pause`.

pub(crate) mod carrier;
pub(crate) mod child_env;
pub(crate) mod child_process;
pub(crate) mod device_drops;
pub(crate) mod inherited;
pub(crate) mod local_socket;
pub(crate) mod namespace;
pub(crate) mod offload;
pub(crate) mod packet_socket;
pub(crate) mod pid_namespace;
pub(crate) mod priority;
pub(crate) mod privilege;
pub(crate) mod random;
pub(crate) mod socket_tables;
pub(crate) mod sysctl;
pub(crate) mod terminal;
pub(crate) mod tool;
