//! The states of a connection, as seen from one end.

/// The states of a connection (RFC 9293, section 3.3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are the RFC's")]
pub enum ConnectionState {
    Closed,
    Listen,
    SynSent,
    SynReceived,
    Established,
    FinWait1,
    FinWait2,
    Closing,
    TimeWait,
    CloseWait,
    LastAck,
}

/// How far the close has progressed.
#[derive(Clone, Copy, Debug)]
pub(in crate::tcp) struct Ends {
    /// The application has announced that it will send no more.
    pub(in crate::tcp) finishing: bool,
    /// The FIN was acknowledged.
    pub(in crate::tcp) fin_acked: bool,
    /// Everything that the peer will ever send has arrived.
    pub(in crate::tcp) peer_finished: bool,
}

impl ConnectionState {
    /// The state that follows, one at a time, once the handshake has progressed to `handshake` and the close to `ends`.
    /// As in Linux, the state changes when the application closes, even if the FIN waits behind data.
    pub(super) fn next(self, handshake: Self, ends: Ends) -> Option<Self> {
        let Ends { finishing, fin_acked, peer_finished } = ends;
        match self {
            Self::Closed | Self::Listen if matches!(handshake, Self::SynSent | Self::SynReceived) => Some(handshake),
            Self::SynSent | Self::SynReceived if handshake == Self::Established => Some(handshake),
            // An application that has not closed yet does so after the peer.
            Self::Established if peer_finished => Some(Self::CloseWait),
            Self::Established if finishing => Some(Self::FinWait1),
            Self::FinWait1 if fin_acked => Some(Self::FinWait2),
            Self::FinWait1 if peer_finished => Some(Self::Closing),
            Self::FinWait2 if peer_finished => Some(Self::TimeWait),
            Self::Closing if fin_acked => Some(Self::TimeWait),
            Self::CloseWait if finishing => Some(Self::LastAck),
            Self::LastAck if fin_acked => Some(Self::Closed),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::ConnectionState::*;
    use super::*;

    const OPEN: Ends = Ends { finishing: false, fin_acked: false, peer_finished: false };

    /// The states from `state` on, until nothing changes.
    fn path(mut state: ConnectionState, handshake: ConnectionState, ends: Ends) -> Vec<ConnectionState> {
        std::iter::from_fn(|| {
            let next = state.next(handshake, ends);
            next.inspect(|&next| state = next)
        })
        .collect()
    }

    #[test]
    fn a_connection_opens_and_closes_as_in_rfc_9293() {
        assert_eq!(path(Closed, SynSent, OPEN), [SynSent]);
        assert_eq!(path(SynSent, Established, OPEN), [Established]);
        assert_eq!(path(Listen, SynReceived, OPEN), [SynReceived]);
        // Figure 12, normal close: the end that closes first, and the other one.
        let finishing = Ends { finishing: true, ..OPEN };
        assert_eq!(path(Established, Established, finishing), [FinWait1]);
        assert_eq!(path(FinWait1, Established, Ends { fin_acked: true, ..finishing }), [FinWait2]);
        let finished = Ends { finishing: true, fin_acked: true, peer_finished: true };
        assert_eq!(path(FinWait2, Established, finished), [TimeWait]);
        assert_eq!(path(Established, Established, Ends { peer_finished: true, ..finishing }), [CloseWait, LastAck]);
        assert_eq!(path(LastAck, Established, finished), [Closed]);
        // Figure 13, simultaneous close.
        assert_eq!(path(FinWait1, Established, Ends { peer_finished: true, ..finishing }), [Closing]);
        assert_eq!(path(Closing, Established, finished), [TimeWait]);
    }

    #[test]
    fn a_fin_that_acknowledges_ours_passes_through_fin_wait_2() {
        let finished = Ends { finishing: true, fin_acked: true, peer_finished: true };
        assert_eq!(path(FinWait1, Established, finished), [FinWait2, TimeWait]);
    }

    #[test]
    fn a_closed_connection_stays_closed() {
        let finished = Ends { finishing: true, fin_acked: true, peer_finished: true };
        assert_eq!(path(Closed, Established, finished), []);
    }
}
