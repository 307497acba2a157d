//! What an entry of traffic can ask of the network and of the machine, for estimates of a run's size.

/// The most that an entry has under way at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Demand {
    /// A few small packets.
    Little,
    /// Datagrams at a rate.
    Datagrams {
        /// Streams of them.
        streams: u64,
        /// Bits of payload a second, of all streams.
        rate_bps: u64,
        /// UDP payload of each.
        payload_bytes: u32,
        /// How long they are sent.
        lasts_ns: u64,
    },
    /// TCP connections.
    Connections {
        /// Connections at a time, those that are closing included.
        at_a_time: u64,
        /// Connections of these that send.
        senders: u64,
        /// All connections.
        begun: u64,
        /// The window of each, if it is fixed.
        window_packets: Option<u32>,
        /// What each sends; `None`: as much as fits.
        bytes: Option<u64>,
    },
    /// Pages, fetched one after the other.
    Pages {
        /// Time between the starts of two pages.
        interval_ns: u64,
        /// Payload of a page.
        bytes: u64,
        /// The most that a connection of it carries.
        connection_bytes: u64,
        /// Connections of a page.
        connections: u64,
    },
}
