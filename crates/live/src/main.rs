//! `bufferscope-live`: see the library.

use std::io::{self, Write};
use std::process::ExitCode;

use bufferscope_live::command::{Arguments, Command, measure, serve};
use clap::Parser;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return failed(&error.to_string()),
    };
    let done = match arguments.command {
        Command::Serve(arguments) => runtime.block_on(serve::run(&arguments)),
        Command::Measure(arguments) => runtime.block_on(measure::run(&arguments)),
    };
    // A connection that never opens must not keep the program.
    runtime.shutdown_background();
    let _ = io::stdout().flush();
    match done {
        Ok(code) => code,
        Err(message) => failed(&message),
    }
}

fn failed(message: &str) -> ExitCode {
    let _ = writeln!(io::stderr(), "bufferscope-live: {message}");
    ExitCode::FAILURE
}
