//! What the programs over UDP send.

/// A datagram. Of its contents, only the number matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Datagram {
    /// Its number among those of its flow, counted from 0. An answer has the number of its question.
    pub number: u64,
    /// UDP payload.
    pub payload_bytes: u32,
}
