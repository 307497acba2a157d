//! A user's program inside an emulated host: a shell, or any other program that is to use the emulated path.
//!
//! This process builds the network, holds it, and waits for the program. The program has the user's terminal, files and
//! rights. Its network, its host name and the names of its neighbours are those of the host. Programs run in a PID
//! namespace that ends with this process, so that none of them outlives the network or keeps it from ending. A shell
//! that joins a network also runs this program. Through the holder's [`door`], it asks for the descriptors of the
//! namespaces that it has to enter.

mod attend;
mod background;
mod door;
mod ending;
mod lab;
mod program;
mod request;
mod terminal;
mod told;

use std::ffi::OsString;
use std::io::{self, Read};
use std::os::fd::{AsFd, RawFd};

pub use ending::Ending;
pub use request::{Beside, Build, Console, ShellRequest, Wanted};
pub use told::Told;

use crate::error::Error;
use crate::kernel::inherited;
use attend::Attendant;
use door::Door;
use lab::Lab;
use program::Program;

/// Reads a [`ShellRequest`] from an inherited descriptor, runs a program accordingly, and reports how it ended. The
/// process must be single-threaded.
pub fn shell(request: RawFd, command: Vec<OsString>) -> Result<Ending, Error> {
    let mut text = Vec::new();
    inherited::take(request).read_to_end(&mut text).map_err(Error::step("reading the request"))?;
    let request: ShellRequest = serde_json::from_slice(&text)?;
    let program = Program::new(command);
    match &request.network {
        Wanted::Build(build) => {
            // This is done before this process leaves the machine's network, because other shells look for the door
            // there.
            let door = Door::open().map_err(Error::step("opening the door for other shells"))?;
            in_own_network(&request, build, &program, Some(door))
        }
        Wanted::Join(process) => in_others_network(&request, *process, &program),
    }
}

/// Runs a program as requested by a guest's console, with this process' standard streams, and reports how it ended. The
/// process must be single-threaded.
pub fn in_guest(console: Console) -> Result<Ending, Error> {
    let program = Program::new(console.command.into_iter().map(OsString::from).collect());
    match &console.shell.network {
        // A machine has only one console, so no other shell could join.
        Wanted::Build(build) => in_own_network(&console.shell, build, &program, None),
        Wanted::Join(process) => {
            Err(Error::Join { process: *process, why: "a guest has no network but its own".into() })
        }
    }
}

/// Makes a terminal with this many rows and columns this process' controlling terminal. The process becomes the leader
/// of a session.
pub fn adopt_terminal(terminal: &impl AsFd, size: [u16; 2]) -> io::Result<()> {
    crate::kernel::terminal::adopt(terminal.as_fd(), size)
}

fn in_own_network(
    request: &ShellRequest,
    build: &Build,
    program: &Program,
    door: Option<Door>,
) -> Result<Ending, Error> {
    let mut lab = Lab::build(build)?;
    let host = lab.host(&request.on)?;
    if !request.quiet {
        eprintln!("bufferscope: this is {} of {}", request.on, lab.addresses());
        if door.is_some() {
            eprintln!("bufferscope: another shell in this network: bufferscope shell {} --on HOST", std::process::id());
        }
    }
    let mut attendant = Attendant::new().map_err(Error::step("preparing the program"))?;
    lab.animate(build)?;
    let beside = background::start(&lab, &build.with)?;
    lab.begin();
    let child = program.start(lab.surroundings(host)?, attendant.stance())?;
    attendant.beside = beside;
    if let Some(door) = door {
        attendant.serve(door, &lab);
    }
    let ending = attendant.attend(child).map_err(Error::step("waiting for the program"))?;
    lab.processes.ask_to_end();
    attendant.await_beside();
    lab.processes.await_orphans();
    if !request.quiet {
        lab.report();
    }
    Ok(ending)
}

fn in_others_network(request: &ShellRequest, process: i32, program: &Program) -> Result<Ending, Error> {
    let entry = door::knock(process, &request.on)?;
    let mut attendant = Attendant::new().map_err(Error::step("preparing the program"))?;
    let (surroundings, holder) = entry.enter()?;
    let child = program.start(surroundings, attendant.stance())?;
    attendant.holder = Some(holder);
    attendant.attend(child).map_err(Error::step("waiting for the program"))
}
