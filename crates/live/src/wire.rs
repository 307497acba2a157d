//! What the two ends send each other. Everything that arrives is untrusted: it is parsed into these types, or refused.

pub mod control;
pub mod load;
pub mod probe;
pub mod token;

/// A session's number, chosen at random by the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
pub struct SessionId(pub u64);

/// TCP and UDP port unless the user chooses another.
pub const DEFAULT_PORT: u16 = 47300;
