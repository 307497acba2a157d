//! The program that is run in a host.

use std::ffi::{OsStr, OsString};
use std::process::{Child, Command};

use crate::error::Error;
use crate::kernel::child_env::{ChildEnv, TerminalMode};
use crate::kernel::tool::search_path;

/// The shell if the user has not chosen one.
const SHELL: &str = "/bin/sh";
/// The environment variable that contains the name of the host on which a program runs.
const VARIABLE: &str = "BUFFERSCOPE_HOST";

/// A program with its arguments.
#[derive(Debug)]
pub(super) struct Program(Vec<OsString>);

impl Program {
    /// Without any words, the program is the user's shell.
    pub(super) fn new(words: Vec<OsString>) -> Self {
        let shell = || std::env::var_os("SHELL").filter(|shell| !shell.is_empty()).unwrap_or_else(|| SHELL.into());
        Self(if words.is_empty() { vec![shell()] } else { words })
    }

    /// Starts the program.
    pub(super) fn start(&self, child_env: ChildEnv, terminal_mode: TerminalMode) -> Result<Child, Error> {
        let [name, arguments @ ..] = &self.0[..] else { unreachable!("a program has a name") };
        let mut command = command(name, &child_env.name);
        let started = child_env.spawn(terminal_mode, command.args(arguments));
        started.map_err(|source| Error::Program { name: name.to_string_lossy().into_owned(), source })
    }
}

/// A command with the environment that programs in a host have.
pub(super) fn command(name: impl AsRef<OsStr>, host: &str) -> Command {
    let mut command = Command::new(name);
    command.env(VARIABLE, host).env("PATH", search_path());
    command
}
