//! The command line.

use clap::{Parser, Subcommand};

pub mod measure;
pub mod serve;

/// Measures how much delay a connection adds under load, and in which queue.
#[derive(Debug, Parser)]
#[command(name = "bufferscope-live", version)]
pub struct Arguments {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Answer the tests of other machines.
    Serve(serve::ServeArguments),
    /// Test the connection to a machine on which `serve` runs.
    Measure(measure::MeasureArguments),
}
