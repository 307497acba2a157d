//! The actions of a program, which an engine carries out.

/// One end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Connects.
    Client,
    /// Is connected to.
    Server,
}

/// A connection to be opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opening {
    /// Its number within the entry of traffic, counted from 1 without a gap.
    pub number: u32,
    /// The end that sends the data under test.
    pub data_from: Role,
    /// Payload that the other end waits for, in addition to what is [requested](Ask).
    pub expects: Option<u64>,
}

/// A request of the client, and the server's answer to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ask {
    /// Size of the request.
    pub request_bytes: u64,
    /// Size of the answer, which the server begins when it has the whole request.
    pub response_bytes: u64,
    /// The server closes after it.
    pub last: bool,
}

/// An object that is transferred over a connection, or over several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// Number of the connection; the first, if there are several.
    pub connection: u32,
    /// When it began.
    pub started_ns: u64,
    /// When its last byte arrived; `None` if that has not happened.
    pub finished_ns: Option<u64>,
    /// Payload.
    pub bytes: u64,
}

/// The connections of one entry of traffic, by number. Actions on closed connections are silently ignored.
pub trait Sockets {
    /// Why something could not be done.
    type Error;

    /// The client connects. What it writes and requests from now on is sent once the handshake is done.
    fn open(&mut self, opening: &Opening) -> Result<(), Self::Error>;

    /// The client writes `bytes` more; `u64::MAX` never runs out.
    fn write(&mut self, connection: u32, bytes: u64) -> Result<(), Self::Error>;

    /// The client discards the data that it has written but that the connection has not accepted yet.
    fn hold(&mut self, connection: u32) -> Result<(), Self::Error>;

    /// The client closes its side once everything that it has written is sent.
    fn close(&mut self, connection: u32) -> Result<(), Self::Error>;

    /// The client makes a request to the server.
    fn ask(&mut self, connection: u32, ask: Ask) -> Result<(), Self::Error>;

    /// Acknowledged payload so far, sent by the end that sends the data under test.
    fn delivered(&mut self, connection: u32) -> Result<u64, Self::Error>;

    /// A transfer is complete.
    fn record(&mut self, transfer: Transfer) -> Result<(), Self::Error>;
}
