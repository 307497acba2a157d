//! Explicit congestion notification, as far as a congestion control chooses it.

/// The kind of ECN that a congestion control needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EcnUse {
    /// None in particular: classic ECN if the connection is configured for it.
    AsConfigured,
    /// The exact echo of DCTCP, on packets with ECT(0).
    Exact,
    /// Accurate ECN, on packets with ECT(0).
    Accurate,
    /// Accurate ECN, on packets with ECT(1) (RFC 9331, section 4).
    L4s,
}
