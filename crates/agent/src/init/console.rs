//! A user's program in a guest. Its standard streams are the machine's terminal, or ports that are connected to files.

use std::fs::File;
use std::io::{self, Write};

use bufferscope_agent::Error;
use bufferscope_agent::shell::{self, Console, Ending, ExitReport};
use nix::sys::termios::tcdrain;
use nix::unistd::{dup2_stderr, dup2_stdin, dup2_stdout};

use super::{InitError, ports};

/// Runs the program, and writes to `report` how it ended.
pub(super) fn run(console: Result<Console, Error>, mut report: File) -> Result<(), InitError> {
    let exit_report = match console.map(attach) {
        Ok(Ok(console)) => ExitReport::from(shell::in_guest(console)),
        Ok(Err(error)) => return Err(error),
        Err(error) => ExitReport::from(Err::<Ending, _>(error)),
    };
    // The program's output must precede the report of its end. On a port, this call does not wait, and there is nothing
    // to wait for.
    let _ = tcdrain(io::stdout());
    let text = serde_json::to_vec(&exit_report).expect("words and numbers are JSON");
    report.write_all(&text).map_err(InitError::step("reporting how the program ended"))
}

/// Gives this process its standard streams, which the program inherits.
fn attach(console: Console) -> Result<Console, InitError> {
    let duplicated = InitError::step("setting up the standard streams");
    let [input, output, errors] = match console.terminal {
        Some(size) => {
            let terminal = ports::terminal()?;
            shell::adopt_terminal(&terminal, size).map_err(InitError::step("taking the terminal"))?;
            let copy = || terminal.try_clone().map_err(InitError::step("taking the terminal"));
            [copy()?, copy()?, terminal]
        }
        None => {
            let nothing = File::open("/dev/null").map_err(InitError::step("opening /dev/null"))?;
            [nothing, ports::open(ports::OUTPUT)?, ports::open(ports::ERRORS)?]
        }
    };
    dup2_stdin(input).and_then(|()| dup2_stdout(output)).and_then(|()| dup2_stderr(errors)).map_err(duplicated)?;
    Ok(console)
}
