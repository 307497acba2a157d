//! A log of TCP's state: sees what changes at the end of each connection that sends the data, as the table `flows` samples
//! it.
//!
//! A simulation without a log pays one test of a pointer for each segment, timer and action of an application. A log cannot
//! affect the run.

use std::fmt::Debug;

use bufferscope_scenario::NodeIndex;

use crate::tcp::{Config, Transition};

/// Receives what changes, in order of time.
pub trait StateLog: Debug + Send {
    /// A connection is opened. Returns whether to log it.
    fn open(&mut self, t_ns: u64, flow: &LoggedFlow<'_>) -> bool;

    /// Something changes.
    fn log(&mut self, t_ns: u64, flow: FlowId, transition: &Transition);
}

/// How a log identifies a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FlowId {
    /// Index of its entry of traffic.
    pub traffic: u32,
    /// Its number among those of the entry, from 1.
    pub number: u32,
}

/// A connection that is opened.
#[derive(Clone, Copy, Debug)]
pub struct LoggedFlow<'a> {
    /// Which it is.
    pub id: FlowId,
    /// Whether the client sends the data, so that the log is of the client.
    pub of_client: bool,
    /// The host that sends the data.
    pub host: NodeIndex,
    /// The settings of that end.
    pub config: &'a Config,
}
