//! How a program ended, for another process to read.

use serde::Serialize;

use super::Ending;
use crate::error::Error;

/// One JSON document, as `python/bufferscope/engines/guest/console.py` reads it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ExitReport {
    /// The program's exit status.
    Exited(i32),
    /// The number of the signal that ended it.
    Killed(i32),
    /// The program could not be run, or not be waited for. Has the reason, and the exit status for the process that
    /// asked.
    Failed {
        /// In words.
        message: String,
        /// 126 or 127 if the program could not be started, as in shells; otherwise 1.
        status: u8,
    },
}

impl From<Result<Ending, Error>> for ExitReport {
    fn from(ending: Result<Ending, Error>) -> Self {
        match ending {
            Ok(Ending::Exited(status)) => Self::Exited(status),
            Ok(Ending::Killed(signal)) => Self::Killed(signal as i32),
            Err(error) => Self::Failed { message: error.to_string(), status: error.exit_status() },
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use nix::sys::signal::Signal;

    use super::*;

    fn json(ending: Result<Ending, Error>) -> String {
        serde_json::to_string(&ExitReport::from(ending)).unwrap()
    }

    #[test]
    fn every_ending_is_a_document() {
        assert_eq!(json(Ok(Ending::Exited(3))), r#"{"exited":3}"#);
        assert_eq!(json(Ok(Ending::Killed(Signal::SIGTERM))), r#"{"killed":15}"#);
        let missing =
            Error::Program { name: "nosuch".into(), source: io::Error::new(io::ErrorKind::NotFound, "no file") };
        assert_eq!(json(Err(missing)), r#"{"failed":{"message":"nosuch: no file","status":127}}"#);
    }
}
