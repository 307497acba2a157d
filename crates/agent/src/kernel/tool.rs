//! `ip` and `tc` of iproute2: runs many commands in one process, or single commands at chosen times.

use std::ffi::OsString;
use std::io::{self, Write};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use super::child_process::{self, Ended};
use super::namespace::Namespace;

/// A command that takes this long is stuck: even a network of hundreds of devices is built in seconds.
const LIMIT: Duration = Duration::from_secs(60);

/// Where distributions keep the tools. The PATH of an ordinary user often lacks these directories.
const ROOTS_PATHS: &str = "/usr/sbin:/sbin";
/// Where to look for programs if there is no PATH, as in a guest.
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
    #[error("`{command}` in {namespace}: {stderr}")]
    Refused {
        /// The command.
        command: String,
        /// Where it ran.
        namespace: String,
        /// What the tool said.
        stderr: String,
    },
    /// The tool did not end in time.
    #[error("`{command}` in {namespace}: not done within {} s", LIMIT.as_secs())]
    Stuck {
        /// The command, or the first and the last of the batch.
        command: String,
        /// Where it ran.
        namespace: String,
    },
    /// Communication with the tool failed.
    #[error("`{tool}`: {source}")]
    Io {
        /// `ip` or `tc`.
        tool: &'static str,
        /// What happened.
        source: io::Error,
    },
}

/// Runs commands one after the other; stops at the first that fails. `name` says where, for errors.
pub(crate) fn run(tool: &'static str, namespace: &Namespace, name: &str, lines: &[String]) -> Result<(), ToolError> {
    if lines.is_empty() {
        return Ok(());
    }
    let failed = |source| ToolError::Io { tool, source };
    let child = start(tool, namespace, &[])?;
    let ended = child_process::run_with_input(child, (lines.join("\n") + "\n").as_bytes(), LIMIT).map_err(failed)?;
    let Ended { status, stderr } = ended.ok_or_else(|| stuck(tool, lines, name))?;
    if status.success() {
        return Ok(());
    }
    let line = failed_lines(&stderr).first().and_then(|line| lines.get(line - 1)).unwrap_or(&lines[0]);
    Err(ToolError::Refused { command: format!("{tool} {line}"), namespace: name.to_owned(), stderr: message(&stderr) })
}

/// Tries commands independently of each other; returns for each whether it succeeded.
pub(crate) fn attempt(tool: &'static str, namespace: &Namespace, lines: &[String]) -> Result<Vec<bool>, ToolError> {
    let failed = |source| ToolError::Io { tool, source };
    let child = start(tool, namespace, &["-force"])?;
    let ended = child_process::run_with_input(child, (lines.join("\n") + "\n").as_bytes(), LIMIT).map_err(failed)?;
    let Ended { stderr, .. } = ended.ok_or_else(|| stuck(tool, lines, "a scratch namespace"))?;
    let failures = failed_lines(&stderr);
    Ok((1..=lines.len()).map(|line| !failures.contains(&line)).collect())
}

/// A `tc` that waits in a namespace, so that a command takes effect at once when its time comes.
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

    /// Carries out a command. If it fails, [`finish`](Self::finish) reports that.
    pub(crate) fn run(&mut self, line: &str) {
        self.last = line.to_owned();
        if let Some(stdin) = &mut self.child.stdin {
            let _ = stdin.write_all(format!("{line}\n").as_bytes());
        }
    }

    /// Ends the `tc`. Returns an error if any of its commands failed.
    pub(crate) fn finish(self) -> Result<(), ToolError> {
        let failed = |source| ToolError::Io { tool: "tc", source };
        let ended = child_process::run_with_input(self.child, &[], LIMIT).map_err(failed)?;
        let Ended { status, stderr } =
            ended.ok_or_else(|| stuck("tc", std::slice::from_ref(&self.last), &self.name))?;
        if status.success() {
            return Ok(());
        }
        Err(ToolError::Refused { command: format!("tc {}", self.last), namespace: self.name, stderr: message(&stderr) })
    }
}

fn stuck(tool: &str, lines: &[String], namespace: &str) -> ToolError {
    let command = match lines {
        [first, .., last] => format!("{tool} {first}` to `{tool} {last}"),
        [only] => format!("{tool} {only}"),
        [] => tool.to_owned(),
    };
    ToolError::Stuck { command, namespace: namespace.to_owned() }
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

/// The PATH, followed by the other directories in which the tools may be.
pub(crate) fn search_path() -> OsString {
    path_after(std::env::var_os("PATH").unwrap_or_default())
}

fn path_after(mut own: OsString) -> OsString {
    if own.is_empty() {
        return USUAL_PATHS.into();
    }
    own.push(":");
    own.push(ROOTS_PATHS);
    own
}

/// The numbers, from 1, of the lines of a batch that failed: `Command failed -:3`.
fn failed_lines(stderr: &str) -> Vec<usize> {
    let number = |line: &str| line.strip_prefix("Command failed -:")?.trim().parse().ok().filter(|&line| line > 0);
    stderr.lines().filter_map(number).collect()
}

/// The tool's message about the failure, on one line.
fn message(stderr: &str) -> String {
    let lines: Vec<&str> =
        stderr.lines().map(str::trim).filter(|l| !l.is_empty() && !l.starts_with("Command failed")).collect();
    if lines.is_empty() { "failed without a message".to_owned() } else { lines.join("; ") }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn failures_are_reported_by_line() {
        let stderr = "Error: Specified qdisc kind is unknown.\nCommand failed -:2\nRED: set bandwidth to 10Mbit\n\
                      Error: Specified qdisc kind is unknown.\nCommand failed -:5\n";
        assert_eq!(failed_lines(stderr), [2, 5]);
        assert_eq!(message("Error: No such device.\nCommand failed -:1\n"), "Error: No such device.");
    }

    #[test]
    fn a_command_that_does_not_end_is_named() {
        let lines = ["link set lo up", "link set eth0 up"].map(str::to_owned);
        let text = |lines: &[String]| stuck("ip", lines, "h1").to_string();
        assert_eq!(text(&lines), "`ip link set lo up` to `ip link set eth0 up` in h1: not done within 60 s");
        assert_eq!(text(&lines[..1]), "`ip link set lo up` in h1: not done within 60 s");
    }

    #[test]
    fn programs_are_those_of_the_users_path_and_roots() {
        assert_eq!(path_after("/home/me/bin:/usr/bin".into()), "/home/me/bin:/usr/bin:/usr/sbin:/sbin");
        assert_eq!(path_after(OsString::new()), USUAL_PATHS);
    }

    proptest! {
        #[test]
        fn any_stderr_is_parsed(stderr in "(Command failed -:[0-9x]{0,30}\n?|.{0,20}\n){0,4}") {
            let _ = (failed_lines(&stderr), message(&stderr));
        }
    }
}
