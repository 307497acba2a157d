//! `ip` and `tc` of iproute2: many commands in one process, and commands at chosen moments.

use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::process::{Child, Command, Stdio};

use super::namespace::Namespace;

/// Where distributions keep the tools; an ordinary user's PATH often leaves out the latter.
const USUAL_PATHS: &str = "/usr/sbin:/sbin:/usr/bin:/bin";

/// A tool failed.
#[derive(Debug, thiserror::Error)]
pub enum ToolError {
    /// It could not be started.
    #[error("cannot run `{tool}` ({source}); install iproute2")]
    Missing {
        /// `ip` or `tc`.
        tool: &'static str,
        /// Why.
        source: io::Error,
    },
    /// The kernel, or the tool, refused a command.
    #[error("`{command}` in {namespace}: {answer}")]
    Refused {
        /// The command.
        command: String,
        /// Where it ran.
        namespace: String,
        /// What the tool said.
        answer: String,
    },
    /// The tool can't be spoken to.
    #[error("`{tool}`: {source}")]
    Io {
        /// `ip` or `tc`.
        tool: &'static str,
        /// What happened.
        source: io::Error,
    },
}

/// Runs commands one after the other; stops at the first that fails. `name` tells errors where that was.
pub(crate) fn run(tool: &'static str, namespace: &Namespace, name: &str, lines: &[String]) -> Result<(), ToolError> {
    if lines.is_empty() {
        return Ok(());
    }
    let failed = |source| ToolError::Io { tool, source };
    let mut child = start(tool, namespace, &[])?;
    // A tool that stops early closes its end: what it then says is worth more than the error of writing to it.
    let _ = child.stdin.take().expect("it was made a pipe").write_all((lines.join("\n") + "\n").as_bytes());
    let output = child.wait_with_output().map_err(failed)?;
    if output.status.success() {
        return Ok(());
    }
    let answer = String::from_utf8_lossy(&output.stderr);
    let line = failed_lines(&answer).first().and_then(|line| lines.get(line - 1)).unwrap_or(&lines[0]);
    Err(ToolError::Refused { command: format!("{tool} {line}"), namespace: name.to_owned(), answer: said(&answer) })
}

/// Tries commands independently of each other; tells for each whether it was carried out.
pub(crate) fn attempt(tool: &'static str, namespace: &Namespace, lines: &[String]) -> Result<Vec<bool>, ToolError> {
    let failed = |source| ToolError::Io { tool, source };
    let mut child = start(tool, namespace, &["-force"])?;
    let mut stdin = child.stdin.take().expect("it was made a pipe");
    stdin.write_all((lines.join("\n") + "\n").as_bytes()).map_err(failed)?;
    drop(stdin);
    let output = child.wait_with_output().map_err(failed)?;
    let failures = failed_lines(&String::from_utf8_lossy(&output.stderr));
    Ok((1..=lines.len()).map(|line| !failures.contains(&line)).collect())
}

/// A `tc` that waits in a namespace, so that a command takes effect at once when its time has come.
#[derive(Debug)]
pub(crate) struct StandbyTc {
    child: Child,
    name: String,
    last: String,
}

impl StandbyTc {
    pub(crate) fn start(namespace: &Namespace, name: &str) -> Result<Self, ToolError> {
        Ok(Self { child: start("tc", namespace, &[])?, name: name.to_owned(), last: String::new() })
    }

    /// Carries out a command; that it failed is told by [`finish`](Self::finish).
    pub(crate) fn run(&mut self, line: &str) {
        self.last = line.to_owned();
        if let Some(stdin) = &mut self.child.stdin {
            let _ = stdin.write_all(format!("{line}\n").as_bytes());
        }
    }

    /// Ends it; an error if any of its commands failed.
    pub(crate) fn finish(mut self) -> Result<(), ToolError> {
        drop(self.child.stdin.take());
        let failed = |source| ToolError::Io { tool: "tc", source };
        let mut answer = String::new();
        self.child.stderr.take().expect("it was made a pipe").read_to_string(&mut answer).map_err(failed)?;
        if self.child.wait().map_err(failed)?.success() {
            return Ok(());
        }
        Err(ToolError::Refused { command: format!("tc {}", self.last), namespace: self.name, answer: said(&answer) })
    }
}

fn start(tool: &'static str, namespace: &Namespace, options: &[&str]) -> Result<Child, ToolError> {
    let missing = |source| ToolError::Missing { tool, source };
    namespace.enter().map_err(missing)?;
    Command::new(tool)
        .args(options)
        .args(["-batch", "-"])
        .env("PATH", search_path())
        .env("LC_ALL", "C")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(missing)
}

/// The PATH, and where else the tools may be.
pub(crate) fn search_path() -> OsString {
    let mut path = std::env::var_os("PATH").unwrap_or_default();
    if !path.is_empty() {
        path.push(":");
    }
    path.push(USUAL_PATHS);
    path
}

/// The numbers, from 1, of the lines that a batch failed at: `Command failed -:3`.
fn failed_lines(answer: &str) -> Vec<usize> {
    let number = |line: &str| line.strip_prefix("Command failed -:")?.trim().parse().ok().filter(|&line| line > 0);
    answer.lines().filter_map(number).collect()
}

/// What the tool said about it, on one line.
fn said(answer: &str) -> String {
    let lines: Vec<&str> =
        answer.lines().map(str::trim).filter(|l| !l.is_empty() && !l.starts_with("Command failed")).collect();
    if lines.is_empty() { "failed without a word".to_owned() } else { lines.join("; ") }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn failures_are_told_by_line() {
        let answer = "Error: Specified qdisc kind is unknown.\nCommand failed -:2\nRED: set bandwidth to 10Mbit\n\
                      Error: Specified qdisc kind is unknown.\nCommand failed -:5\n";
        assert_eq!(failed_lines(answer), [2, 5]);
        assert_eq!(said("Error: No such device.\nCommand failed -:1\n"), "Error: No such device.");
    }

    proptest! {
        #[test]
        fn any_answer_is_read(answer in "(Command failed -:[0-9x]{0,30}\n?|.{0,20}\n){0,4}") {
            let _ = (failed_lines(&answer), said(&answer));
        }
    }
}
