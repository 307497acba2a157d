//! What travels on the links.

/// The ECN codepoint of an IP packet (RFC 3168, section 5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ecn {
    /// The transport does not understand ECN: congestion is signalled by dropping.
    NotEct,
    /// ECN-capable transport, codepoint ECT(0).
    Ect0,
    /// ECN-capable transport, codepoint ECT(1).
    Ect1,
    /// Congestion experienced: set by a queue on the way.
    Ce,
}
