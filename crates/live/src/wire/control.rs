//! The control connection: TLS, in which each message is its length (`u32`, big-endian) and that many bytes of JSON.

use bufferscope_verdict::input::Direction;
pub use bufferscope_verdict::input::PhaseKind;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use super::SessionId;
use crate::local::EndFacts;
use crate::records::ServerRecords;

/// The version of all that the two ends send each other.
pub const PROTOCOL: u32 = 1;
/// The longest message that a server reads.
pub const LONGEST_REQUEST: usize = 4 * 1024;
/// The longest message that a client reads: the records of a whole test.
pub const LONGEST_ANSWER: usize = 64 * 1024 * 1024;

/// What a client sends.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "snake_case")]
pub enum Request {
    /// The first message.
    Hello {
        /// [`PROTOCOL`].
        protocol: u32,
        /// The client's version, for the log.
        version: String,
        /// The secret of the token.
        secret: String,
        /// Whether the client wants to watch its connection for hours, with few probes and without load.
        #[serde(default)]
        monitor: bool,
    },
    /// The next phase begins now.
    Phase {
        /// It.
        phase: PhaseKind,
    },
    /// The client is there, sent about once a second.
    Alive,
    /// The test is over: send the records.
    Finish,
    /// Both ends get ready for a flood, which the client or the server begins after [`Answer::Noted`].
    Flood {
        /// Down: the server sends it, to the address from which a [`super::probe::Kind::Flood`] with a fresh cookie comes.
        direction: Direction,
        /// Its highest rate, those of headers included.
        bps: u64,
    },
    /// A monitor goes on: send what was recorded since the last report.
    Report,
}

/// What a server sends.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "snake_case")]
pub enum Answer {
    /// Other tests come first.
    Queued {
        /// How many.
        position: usize,
    },
    /// The test may begin.
    Welcome(Box<Welcome>),
    /// There will be no test.
    Refused {
        /// Why, for people.
        reason: String,
    },
    /// The answer to [`Request::Alive`], [`Request::Phase`] and [`Request::Flood`].
    Noted,
    /// The answer to [`Request::Finish`] and [`Request::Report`].
    Records(Box<ServerRecords>),
}

/// What a client must know for its test.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Welcome {
    /// The server's version.
    pub version: String,
    /// The session.
    pub session: SessionId,
    /// The secret that load connections show ([`super::load::Key`]), in hexadecimal.
    pub key: String,
    /// The client's address, as the server sees it.
    pub seen_as: String,
    /// What the server allows.
    pub limits: SessionLimits,
    /// The server's end of the path.
    pub end: EndFacts,
    /// Whether other tests ran at the same time when this one began.
    pub shares: bool,
    /// Whether this is the session of a monitor.
    #[serde(default)]
    pub monitor: bool,
}

/// What a server allows a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionLimits {
    /// Length of a session.
    pub seconds: u64,
    /// Load connections at the same time, in each direction.
    pub flows: u16,
    /// Bytes of load, both directions together.
    pub bytes: u64,
    /// Bits per second that the server sends at most, to all its clients together.
    #[serde(default)]
    pub rate_bps: Option<u64>,
}

/// A message that cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ControlError {
    /// It is too long.
    #[error("the peer sent a message of {0} bytes")]
    TooLong(usize),
    /// It is not one of the protocol's.
    #[error("the peer sent a message that this version does not know: {0}")]
    Unknown(#[from] serde_json::Error),
    /// The connection failed.
    #[error(transparent)]
    Connection(#[from] std::io::Error),
}

/// Sends a message.
pub async fn send<M: Serialize>(to: &mut (impl AsyncWrite + Unpin), message: &M) -> Result<(), ControlError> {
    let text = serde_json::to_vec(message)?;
    let length = u32::try_from(text.len()).map_err(|_| ControlError::TooLong(text.len()))?;
    to.write_all(&length.to_be_bytes()).await?;
    to.write_all(&text).await?;
    Ok(to.flush().await?)
}

/// Receives a message of at most `longest` bytes. Memory grows only as bytes arrive.
pub async fn receive<M: DeserializeOwned>(
    from: &mut (impl AsyncRead + Unpin),
    longest: usize,
) -> Result<M, ControlError> {
    let length = from.read_u32().await? as usize;
    if length > longest {
        return Err(ControlError::TooLong(length));
    }
    let mut text = Vec::new();
    from.take(length as u64).read_to_end(&mut text).await?;
    if text.len() < length {
        return Err(std::io::Error::from(std::io::ErrorKind::UnexpectedEof).into());
    }
    Ok(serde_json::from_slice(&text)?)
}
