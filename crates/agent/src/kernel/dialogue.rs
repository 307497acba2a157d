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
const PAUSE: Duration = Duration::from_millis(1);

/// How a program ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) status: ExitStatus,
    /// What it wrote to its standard error.
    pub(crate) answer: String,
}

/// Writes `input` to a program, reads its standard error and waits for its exit. Returns `None` if the program had to be
/// killed after `limit`.
///
/// Its standard input and error are pipes. It is not an error if the program stops reading; its standard error
/// then gives the reason.
pub(crate) fn hold(mut child: Child, input: &[u8], limit: Duration) -> io::Result<Option<Ended>> {
    let until = Instant::now() + limit;
    let ended = hear(&mut child, input, until).and_then(|answer| Ok(answer.zip(wait(&mut child, until)?)));
    if !matches!(ended, Ok(Some(_))) {
        let _ = child.kill();
        let _ = child.wait();
    }
    Ok(ended?.map(|(answer, status)| Ended { status, answer: String::from_utf8_lossy(&answer).into_owned() }))
}

fn hear(child: &mut Child, mut input: &[u8], until: Instant) -> io::Result<Option<Vec<u8>>> {
    let mut stdin = child.stdin.take();
    let mut stderr = child.stderr.take().ok_or(io::ErrorKind::BrokenPipe)?;
    if let Some(stdin) = &stdin {
        fcntl(stdin, FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
    }
    let mut answer = Vec::new();
    loop {
        if input.is_empty() {
            stdin = None;
        }
        let Some(left) = until.checked_duration_since(Instant::now()).filter(|left| !left.is_zero()) else {
            return Ok(None);
        };
        let [speaks, listens] = ready(&stderr, stdin.as_ref(), left)?;
        if speaks && !take(&mut stderr, &mut answer)? {
            return Ok(Some(answer));
        }
        if listens {
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

/// Reads the available output; returns whether more may follow.
fn take(stderr: &mut ChildStderr, answer: &mut Vec<u8>) -> io::Result<bool> {
    let mut buffer = [0; 4096];
    match stderr.read(&mut buffer) {
        Ok(0) => Ok(false),
        Ok(length) => {
            answer.extend(&buffer[..length.min(MOST_BYTES.saturating_sub(answer.len()))]);
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
        std::thread::sleep(PAUSE);
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
    fn what_is_said_is_heard() {
        let ended = hold(shell("cat >&2; exit 3"), b"to be or not", LONG).unwrap().unwrap();
        assert_eq!((ended.status.code(), ended.answer.as_str()), (Some(3), "to be or not"));
    }

    /// More than a pipe holds, in both directions. Neither side waits for the other for ever.
    #[test]
    fn much_is_said_and_heard_at_once() {
        let input = vec![b'x'; 1 << 20];
        let ended = hold(shell("cat >&2"), &input, LONG).unwrap().unwrap();
        assert_eq!((ended.status.code(), ended.answer.len()), (Some(0), MOST_BYTES));
    }

    #[test]
    fn a_program_that_does_not_listen_is_heard_out() {
        let ended = hold(shell("exec <&-; echo no >&2; exit 1"), &vec![b'x'; 1 << 20], LONG).unwrap().unwrap();
        assert_eq!(ended.answer, "no\n");
    }

    #[test]
    fn a_program_that_does_not_end_is_killed() {
        for script in ["exec sleep 1000", "exec sleep 1000 2>&-"] {
            assert!(hold(shell(script), &vec![b'x'; 1 << 20], SHORT).unwrap().is_none(), "{script}");
        }
    }
}
