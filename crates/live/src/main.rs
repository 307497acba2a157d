//! `bufferscope-live`: see the library.

use std::io::{self, Write};
use std::process::ExitCode;

use bufferscope_live::command::{Arguments, Command, measure, serve};
use clap::Parser;

const EVENT_INTERVAL: u32 = 8;
const MOST_THREADS: usize = 4;
const STACK_BYTES: usize = 1024 * 1024;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let runtime = match runtime(&arguments.command) {
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

/// Load over HTTP runs on several threads, so that it does not delay probes: a server's to browsers, and a client's to servers
/// that are not bufferscope's own. All else is a test's own.
fn runtime(command: &Command) -> io::Result<tokio::runtime::Runtime> {
    let has_http_load = match command {
        Command::Serve(_) => true,
        Command::Measure(arguments) => arguments.is_url(),
    };
    let mut builder = match has_http_load {
        true => tokio::runtime::Builder::new_multi_thread(),
        false => tokio::runtime::Builder::new_current_thread(),
    };
    // Sockets are looked at after so many tasks: loads keep all threads busy.
    builder.enable_all().event_interval(EVENT_INTERVAL);
    if has_http_load {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        builder.worker_threads(processors.clamp(2, MOST_THREADS)).thread_stack_size(STACK_BYTES);
    }
    builder.build()
}
