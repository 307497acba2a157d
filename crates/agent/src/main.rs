//! `bufferscope-agent`: see the library. As the first process of a guest it does more, see `init`.

mod init;

use std::io::{self, Write, stdin, stdout};
use std::process::ExitCode;

use bufferscope_agent::{Capabilities, Error};

const USAGE: &str = "usage: bufferscope-agent [--capabilities]
Without arguments: reads a request from standard input and writes frames to standard output.
--capabilities: tells as JSON what this kernel can do.";

fn main() -> ExitCode {
    if init::is_guest() {
        return init::run();
    }
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        [] => answer(bufferscope_agent::serve(stdin().lock(), || Ok(Box::new(stdout())))),
        ["--capabilities"] => print(bufferscope_agent::capabilities().map(|capabilities| json(&capabilities))),
        _ => {
            eprintln!("{USAGE}");
            ExitCode::from(2)
        }
    }
}

fn json(capabilities: &Capabilities) -> String {
    serde_json::to_string(capabilities).expect("names and truths are JSON") + "\n"
}

fn print(text: Result<String, Error>) -> ExitCode {
    match text {
        Ok(text) => answer(stdout().write_all(text.as_bytes()).map(|()| true)),
        Err(error) => {
            eprintln!("bufferscope-agent: {error}");
            ExitCode::FAILURE
        }
    }
}

fn answer(done: io::Result<bool>) -> ExitCode {
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("bufferscope-agent: {error}");
            ExitCode::FAILURE
        }
    }
}
