//! Estimates the congestion window: the largest flight of a round trip in which nothing else limited the sender.

/// One round trip after the other.
#[derive(Debug, Default)]
pub(super) struct Rounds {
    end: i64,
    largest_bytes: u64,
    limited: bool,
    cwnd_bytes: Option<u64>,
}

impl Rounds {
    /// The window in the last complete round; `None`: the application or the receiver was the limit.
    pub(super) fn cwnd_bytes(&self) -> Option<u64> {
        self.cwnd_bytes
    }

    /// Processes sent data. `limited`: it is less than a full segment, or leaves no room for one in the receiver's
    /// window.
    pub(super) fn sent(&mut self, flight_bytes: u64, limited: bool) {
        self.largest_bytes = self.largest_bytes.max(flight_bytes);
        self.limited |= limited;
    }

    /// Processes an acknowledgement: all bytes before `ack` are acknowledged, and all before `next` were sent.
    pub(super) fn acknowledged(&mut self, ack: i64, next: i64, flight_bytes: u64) {
        self.limited |= flight_bytes == 0;
        if ack < self.end {
            return;
        }
        self.cwnd_bytes = (!self.limited && self.largest_bytes > 0).then_some(self.largest_bytes);
        self.end = next;
        self.largest_bytes = flight_bytes;
        self.limited = flight_bytes == 0;
    }
}
