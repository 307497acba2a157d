//! `bufferscope-agent`: see the library. As the first process of a guest it does more, see `init`.

mod init;

use std::ffi::{OsStr, OsString};
use std::io::{self, Write, stdin, stdout};
use std::os::fd::RawFd;
use std::process::ExitCode;

use bufferscope_agent::{Error, shell};
use serde::Serialize;

const USAGE: &str = "usage: bufferscope-agent [--capabilities | --check | --shell DESCRIPTOR [PROGRAM [ARGUMENTS...]]]
Without arguments: reads a request from standard input and writes frames to standard output.
--capabilities: prints as JSON what this kernel supports.
--check: reads a JSON list of scenarios; prints a JSON list with the reason why this kernel can't run each, or null if it can.
--shell: reads a request from that descriptor and runs a program in a host of its network.";

fn main() -> ExitCode {
    if init::is_guest() {
        return init::run();
    }
    let mut arguments = std::env::args_os().skip(1);
    let first = arguments.next();
    match first.as_deref().map(|first| first.to_str()) {
        None => answer(bufferscope_agent::serve(stdin().lock(), || Ok(Box::new(stdout())))),
        Some(Some("--capabilities")) => {
            print(bufferscope_agent::capabilities().map(|capabilities| json(&capabilities)))
        }
        Some(Some("--check")) => print(bufferscope_agent::check(stdin().lock()).map(|refusals| json(&refusals))),
        Some(Some("--shell")) => match arguments.next().as_deref().and_then(descriptor) {
            Some(request) => run_shell(request, arguments.collect()),
            None => misused(),
        },
        Some(_) => misused(),
    }
}

fn descriptor(text: &OsStr) -> Option<RawFd> {
    text.to_str()?.parse().ok().filter(|&descriptor| descriptor > 2)
}

fn run_shell(request: RawFd, program: Vec<OsString>) -> ExitCode {
    match shell::shell(request, program) {
        Ok(ending) => ending.pass_on(),
        Err(error) => {
            eprintln!("bufferscope: {error}");
            ExitCode::from(error.exit_status())
        }
    }
}

fn misused() -> ExitCode {
    eprintln!("{USAGE}");
    ExitCode::from(2)
}

fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("names, truths and lists are JSON") + "\n"
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
