//! The simulator for a web page.
//!
//! A [`Session`] opens a request, which is JSON, and advances its run in steps. What each step has recorded comes as
//! columns of numbers ([`Columns`]): samples of queues and flows, of which the extreme ones are kept if there are too
//! many for a chart ([`series`](mod@series)), and what happened to the packets of the ports that the page watches
//! (`packets`). All of it has bounds, so memory does not depend on how long a run is. What the run reports of itself,
//! with the sums of all columns of its records, shows that the simulator gives the same in a browser as elsewhere.
//!
//! [`abi`] has the few functions that the WebAssembly module exports. Nothing else depends on the target.

pub mod abi;
mod columns;
mod describe;
mod numbers;
mod packets;
mod recording;
mod request;
mod series;
mod session;
mod totals;
mod whereabouts;

pub use columns::Columns;
pub use describe::{Opened, Refusal};
pub use request::Request;
pub use session::{Session, Step};
