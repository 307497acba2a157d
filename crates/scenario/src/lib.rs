//! The set-up under test: network, queues, traffic.
//!
//! An experiment is a TOML file. [`Experiment::parse`] reads it, fills in defaults, applies overrides from the command
//! line, expands its sweep into [`Point`]s and refuses everything that is impossible. Each point holds a [`Scenario`],
//! which is all that an engine sees. [`schema`] describes the files for editors.
//!
//! A file passes through these modules: `syntax` (bytes to TOML) -> `check` (does the document fit the schema?) ->
//! `file` (the tables as written) -> `overrides` and `sweep` (which values) -> `resolve` (the scenario). The crate does
//! no I/O: files that an experiment names are read by its caller (`files`).

mod check;
mod congestion;
mod departures;
mod dscp;
mod error;
mod expect;
mod experiment;
mod file;
mod files;
mod link;
mod model;
mod notes;
mod overrides;
mod path;
mod population;
mod qdisc;
mod quantity;
mod resolve;
mod routes;
mod schema;
pub mod sizes;
mod suggest;
mod sweep;
mod syntax;
#[cfg(feature = "testing")]
pub mod testing;
mod text;
mod token_bucket;
mod trace;
mod traffic;
mod units;

pub use congestion::Congestion;
pub use departures::Departures;
pub use error::{ExperimentError, Problem};
pub use expect::{Band, Comparison, Expectation, Measured};
pub use experiment::{Document, Experiment, Member, Point};
pub use files::ReadFile;
pub use model::*;
pub use population::{Drawn, PopulationWords};
pub use qdisc::*;
pub use routes::{Exit, PortIndex, Routing, Unreachable};
pub use schema::schema;
pub use token_bucket::TokenBucket;
pub use trace::{MOST_TRACE_BYTES, OPPORTUNITY_BYTES, Opportunities, Trace};
pub use traffic::*;
