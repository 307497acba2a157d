//! A user's program inside an emulated host: a shell, or any other program that is to use the emulated path.
//!
//! This process builds the network, holds it, and waits for the program. The program has the user's terminal, files and
//! rights. Its network, its host name and the names of its neighbours are those of the host. Programs run in a PID
//! namespace that ends with this process, so that none of them outlives the network or keeps it from ending. A shell
//! that joins a network also runs this program. Through the holder's [`join_socket`], it asks for the descriptors of
//! the namespaces that it has to enter.

mod background;
mod ending;
mod exit_report;
mod join_socket;
mod program;
mod request;
mod supervise;
mod terminal;
mod testbed;

use std::ffi::OsString;
use std::io::{self, Read};
use std::os::fd::{AsFd, RawFd};

pub use ending::Ending;
pub use exit_report::ExitReport;
pub use request::{BackgroundCommand, Build, Console, NetworkRequest, ShellRequest};

use crate::error::Error;
use crate::kernel::inherited;
use join_socket::JoinSocket;
use program::Program;
use supervise::Supervisor;
use testbed::Testbed;

/// Reads a [`ShellRequest`] from an inherited descriptor, runs a program accordingly, and reports how it ended. The
/// process must be single-threaded.
pub fn shell(request: RawFd, command: Vec<OsString>) -> Result<Ending, Error> {
    let mut text = Vec::new();
    inherited::take(request).read_to_end(&mut text).map_err(Error::step("reading the request"))?;
    let request: ShellRequest = serde_json::from_slice(&text)?;
    let program = Program::new(command);
    match &request.network {
        NetworkRequest::Build(build) => {
            // This is done before this process leaves the machine's network, because other shells look for the socket
            // there.
            let join_socket = JoinSocket::open().map_err(Error::step("opening the socket for shells that join"))?;
            in_own_network(&request, build, &program, Some(join_socket))
        }
        NetworkRequest::Join(process) => in_others_network(&request, *process, &program),
    }
}

/// Runs a program as requested by a guest's console, with this process' standard streams, and reports how it ended. The
/// process must be single-threaded.
pub fn in_guest(console: Console) -> Result<Ending, Error> {
    let program = Program::new(console.command.into_iter().map(OsString::from).collect());
    match &console.shell.network {
        // A machine has only one console, so no other shell could join.
        NetworkRequest::Build(build) => in_own_network(&console.shell, build, &program, None),
        NetworkRequest::Join(process) => {
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
    join_socket: Option<JoinSocket>,
) -> Result<Ending, Error> {
    let mut testbed = Testbed::build(build)?;
    let host = testbed.host(&request.on)?;
    if !request.quiet {
        eprintln!("bufferscope: this is {} of {}", request.on, testbed.addresses());
        if join_socket.is_some() {
            eprintln!("bufferscope: another shell in this network: bufferscope shell {} --on HOST", std::process::id());
        }
    }
    let mut supervisor = Supervisor::new().map_err(Error::step("preparing the program"))?;
    testbed.run_traffic(build)?;
    let beside = background::start(&testbed, &build.with)?;
    testbed.begin();
    let child = program.start(testbed.child_env(host)?, supervisor.terminal_mode())?;
    supervisor.beside = beside;
    if let Some(join_socket) = join_socket {
        supervisor.serve(join_socket, &testbed);
    }
    let ending = supervisor.supervise(child).map_err(Error::step("waiting for the program"))?;
    testbed.processes.ask_to_end();
    supervisor.await_background();
    testbed.processes.await_orphans();
    testbed.report(!request.quiet);
    Ok(ending)
}

fn in_others_network(request: &ShellRequest, process: i32, program: &Program) -> Result<Ending, Error> {
    let entry = join_socket::request_host(process, &request.on)?;
    let mut supervisor = Supervisor::new().map_err(Error::step("preparing the program"))?;
    let (child_env, holder) = entry.enter()?;
    let child = program.start(child_env, supervisor.terminal_mode())?;
    supervisor.holder = Some(holder);
    supervisor.supervise(child).map_err(Error::step("waiting for the program"))
}
