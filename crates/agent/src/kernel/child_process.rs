//! Runs a program with input on its standard input, and reads its standard error, with a time limit.

use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::process::{Child, ChildStderr, ChildStdin, ExitStatus};
use std::time::{Duration, Instant};

use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

/// Standard error beyond this is discarded.
const MOST_BYTES: usize = 64 * 1024;
/// Time between two checks whether a program has exited. One that has closed its output is about to exit.
const POLL_INTERVAL: Duration = Duration::from_millis(1);

/// How a program ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) status: ExitStatus,
    /// What it wrote to its standard error.
    pub(crate) stderr: String,
}

/// Writes `input` to a program, reads its standard error and waits for its exit. Returns `None` if the program had to
/// be killed after `limit`.
///
/// Its standard input and error are pipes. It is not an error if the program stops reading; its standard error
/// then gives the reason.
pub(crate) fn run_with_input(mut child: Child, input: &[u8], limit: Duration) -> io::Result<Option<Ended>> {
    let until = Instant::now() + limit;
    let ended = read_stderr(&mut child, input, until).and_then(|stderr| Ok(stderr.zip(wait(&mut child, until)?)));
    if !matches!(ended, Ok(Some(_))) {
        let _ = child.kill();
        let _ = child.wait();
    }
    Ok(ended?.map(|(stderr, status)| Ended { status, stderr: String::from_utf8_lossy(&stderr).into_owned() }))
}

fn read_stderr(child: &mut Child, mut input: &[u8], until: Instant) -> io::Result<Option<Vec<u8>>> {
    let mut stdin = child.stdin.take();
    let mut pipe = child.stderr.take().ok_or(io::ErrorKind::BrokenPipe)?;
    if let Some(stdin) = &stdin {
        fcntl(stdin, FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
    }
    let mut stderr = Vec::new();
    loop {
        if input.is_empty() {
            stdin = None;
        }
        let Some(left) = until.checked_duration_since(Instant::now()).filter(|left| !left.is_zero()) else {
            return Ok(None);
        };
        let [readable, writable] = ready(&pipe, stdin.as_ref(), left)?;
        if readable && !take(&mut pipe, &mut stderr)? {
            return Ok(Some(stderr));
        }
        if writable {
            input = stdin.as_mut().and_then(|stdin| give(stdin, input)).unwrap_or_default();
        }
    }
}

/// Whether the program has written something, and whether it accepts more.
fn ready(stderr: &ChildStderr, stdin: Option<&ChildStdin>, left: Duration) -> io::Result<[bool; 2]> {
    let mut waited = vec![PollFd::new(stderr.as_fd(), PollFlags::POLLIN)];
    waited.extend(stdin.map(|stdin| PollFd::new(stdin.as_fd(), PollFlags::POLLOUT)));
    let timeout = PollTimeout::try_from(left.as_millis() + 1).unwrap_or(PollTimeout::MAX);
    match poll(&mut waited, timeout) {
        Ok(_) | Err(nix::errno::Errno::EINTR) => {}
        Err(error) => return Err(error.into()),
    }
    let is_ready = |index: usize| waited.get(index).is_some_and(|fd| fd.any().unwrap_or(false));
    Ok([is_ready(0), is_ready(1)])
}

/// Reads what is available; returns whether more may follow.
fn take(pipe: &mut ChildStderr, stderr: &mut Vec<u8>) -> io::Result<bool> {
    let mut buffer = [0; 4096];
    match pipe.read(&mut buffer) {
        Ok(0) => Ok(false),
        Ok(length) => {
            stderr.extend(&buffer[..length.min(MOST_BYTES.saturating_sub(stderr.len()))]);
            Ok(true)
        }
        Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(true),
        Err(error) => Err(error),
    }
}

/// Writes as much as the program accepts now; returns what is left to write, or `None` if it no longer reads.
fn give<'a>(stdin: &mut ChildStdin, input: &'a [u8]) -> Option<&'a [u8]> {
    match stdin.write(input) {
        Ok(length) => input.get(length..),
        Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => Some(input),
        Err(_) => None,
    }
}

fn wait(child: &mut Child, until: Instant) -> io::Result<Option<ExitStatus>> {
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if Instant::now() >= until {
            return Ok(None);
        }
        std::thread::sleep(POLL_INTERVAL);
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    fn shell(script: &str) -> Child {
        let mut command = Command::new("sh");
        command.args(["-c", script]).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
        command.spawn().unwrap()
    }

    const LONG: Duration = Duration::from_secs(60);
    const SHORT: Duration = Duration::from_millis(50);

    #[test]
    fn what_it_writes_to_stderr_is_returned() {
        let ended = run_with_input(shell("cat >&2; exit 3"), b"to be or not", LONG).unwrap().unwrap();
        assert_eq!((ended.status.code(), ended.stderr.as_str()), (Some(3), "to be or not"));
    }

    /// More than a pipe holds, in both directions. There is no deadlock.
    #[test]
    fn much_is_written_and_read_at_once() {
        let input = vec![b'x'; 1 << 20];
        let ended = run_with_input(shell("cat >&2"), &input, LONG).unwrap().unwrap();
        assert_eq!((ended.status.code(), ended.stderr.len()), (Some(0), MOST_BYTES));
    }

    #[test]
    fn the_stderr_of_a_program_that_does_not_read_is_returned() {
        let ended =
            run_with_input(shell("exec <&-; echo no >&2; exit 1"), &vec![b'x'; 1 << 20], LONG).unwrap().unwrap();
        assert_eq!(ended.stderr, "no\n");
    }

    #[test]
    fn a_program_that_does_not_end_is_killed() {
        for script in ["exec sleep 1000", "exec sleep 1000 2>&-"] {
            assert!(run_with_input(shell(script), &vec![b'x'; 1 << 20], SHORT).unwrap().is_none(), "{script}");
        }
    }
}
