//! The rows of every table; their fields, in order, are the table's columns.

use arrow_array::ArrayRef;
use arrow_schema::Field;

use crate::Table;
use crate::names::{Name, Names};
use crate::value::{DropReason, FlowState, Layer, Observed, Value};

/// A row type: one table's columns.
pub(crate) trait Row: Copy {
    const TABLE: Table;

    fn fields() -> Vec<Field>;
    fn columns(rows: &[Self], names: &Names) -> Vec<ArrayRef>;
}

/// Declares a row and, from the same list of fields, its table's schema and columns.
macro_rules! row {
    (
        $(#[$doc:meta])*
        $name:ident in $table:ident { $($(#[$field_doc:meta])* $field:ident: $kind:ty,)* }
    ) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct $name {
            $($(#[$field_doc])* pub $field: $kind,)*
        }

        impl Row for $name {
            const TABLE: Table = Table::$table;

            fn fields() -> Vec<Field> {
                vec![$(Field::new(stringify!($field), <$kind>::DATA_TYPE, <$kind>::NULLABLE)),*]
            }

            fn columns(rows: &[Self], names: &Names) -> Vec<ArrayRef> {
                vec![$(<$kind>::array(rows.iter().map(|row| row.$field), names)),*]
            }
        }
    };
}

row! {
    /// One probe sent, or one packet of a call. A lost one has a row like any other.
    ProbeRow in Probes {
        /// The traffic that sent it; of a call, the stream: `<traffic>/1` from its `from`, `<traffic>/2` from its `to`.
        probe: Name,
        /// Counts the probes of this traffic, or the packets of this stream.
        seq: u64,
        /// When it was sent.
        sent_ns: u64,
        /// From sending to the answer's arrival; `None`: lost, or not answered in time, or a packet that nobody answers.
        rtt_ns: Option<u64>,
        /// The way out alone, where the engine knows it; of a call's packet always, `None`: lost.
        owd_up_ns: Option<u64>,
        /// The way back alone, where the engine knows it.
        owd_down_ns: Option<u64>,
    }
}

row! {
    /// One sample of the sending side of a flow, named after Linux' `tcp_info` where it has the quantity.
    ///
    /// A flow over UDP has no window and no acknowledgements: what is `delivered_bytes` has arrived, what is `lost` the receiver
    /// has found missing, and what it has no equivalent of is `None`.
    FlowRow in Flows {
        /// When the sample was taken.
        t_ns: u64,
        /// `<traffic>/<number>`, numbers from 1.
        flow: Name,
        /// Congestion window; `None`: not TCP.
        cwnd_bytes: Option<u64>,
        /// Slow-start threshold; `None`: still unlimited.
        ssthresh_bytes: Option<u64>,
        /// Payload sent and neither acknowledged (over UDP, arrived) nor concluded lost.
        inflight_bytes: u64,
        /// Smoothed round-trip time; `None`: not measured yet.
        srtt_ns: Option<u64>,
        /// Smallest round-trip time of the last five minutes (`tcpi_min_rtt`); `None`: not measured yet.
        min_rtt_ns: Option<u64>,
        /// The window the receiver advertised last; `None`: not TCP.
        rwnd_bytes: Option<u64>,
        /// Pacing rate in bits per second; `None`: not paced.
        pacing_bps: Option<u64>,
        /// Rate of delivery measured last, in bits of payload per second (`tcpi_delivery_rate`); `None`: not measured yet.
        delivery_rate_bps: Option<u64>,
        /// While that was measured the application was the limit (`tcpi_delivery_rate_app_limited`); `None`: not TCP.
        app_limited: Option<bool>,
        /// Payload acknowledged cumulatively since the start (`tcpi_bytes_acked`); over UDP, arrived since the start.
        delivered_bytes: u64,
        /// Segments delivered since the start, the handshake's included, in order or not (`tcpi_delivered`); over UDP, datagrams
        /// that have arrived.
        delivered_packets: u64,
        /// Segments of them that met congestion, as the receiver told (`tcpi_delivered_ce`); `None`: not TCP.
        delivered_ce_packets: Option<u64>,
        /// Segments sent again since the start (`tcpi_total_retrans`); `None`: not TCP.
        retransmits: Option<u64>,
        /// Segments concluded lost and not repaired yet (`tcpi_lost`); over UDP, datagrams whose successors arrived before them,
        /// since the start.
        lost: u64,
        /// Segments by which the path is believed to reorder (`tcpi_reordering`); `None`: not TCP.
        reordering: Option<u64>,
        /// Payload written and not sent yet (`tcpi_notsent_bytes`); `None`: UDP.
        notsent_bytes: Option<u64>,
        /// Time since the start in which there was something to send or to be acknowledged (`tcpi_busy_time`); `None`: not TCP.
        busy_ns: Option<u64>,
        /// Time of it in which the receiver's window was the limit (`tcpi_rwnd_limited`); `None`: not TCP.
        rwnd_limited_ns: Option<u64>,
        /// Time of it in which the send buffer was the limit (`tcpi_sndbuf_limited`); `None`: UDP.
        sndbuf_limited_ns: Option<u64>,
        /// State of the congestion control; `None`: not TCP.
        state: Option<FlowState>,
    }
}

/// What is known of a flow of datagrams of one size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Datagrams {
    /// Payload of each.
    pub payload_bytes: u64,
    /// Sent so far.
    pub sent: u64,
    /// One more than the highest number that has arrived, numbers from 0.
    pub expected: u64,
    /// Arrived so far.
    pub received: u64,
}

impl FlowRow {
    /// A sample of a flow that is not TCP: what only TCP has is not there.
    pub fn of_datagrams(t_ns: u64, flow: Name, datagrams: Datagrams) -> Self {
        let Datagrams { payload_bytes, sent, expected, received } = datagrams;
        Self {
            t_ns,
            flow,
            cwnd_bytes: None,
            ssthresh_bytes: None,
            inflight_bytes: (sent - expected) * payload_bytes,
            srtt_ns: None,
            min_rtt_ns: None,
            rwnd_bytes: None,
            pacing_bps: None,
            delivery_rate_bps: None,
            app_limited: None,
            delivered_bytes: received * payload_bytes,
            delivered_packets: received,
            delivered_ce_packets: None,
            retransmits: None,
            lost: expected.saturating_sub(received),
            reordering: None,
            notsent_bytes: None,
            busy_ns: None,
            rwnd_limited_ns: None,
            sndbuf_limited_ns: None,
            state: None,
        }
    }
}

row! {
    /// One sample of what stands in one layer of one port.
    QueueRow in Queues {
        /// When the sample was taken.
        t_ns: u64,
        /// `<from>><to>`, as in `r1>h2`.
        port: Name,
        /// The layer of the port.
        layer: Layer,
        /// Packets waiting.
        packets: u64,
        /// Bytes waiting, link-layer overhead included.
        bytes: u64,
        /// Packets dropped since the start.
        dropped: u64,
        /// Packets marked since the start.
        marked: u64,
        /// Packets passed on since the start.
        sent_packets: u64,
        /// Bytes passed on since the start, link-layer overhead included.
        sent_bytes: u64,
    }
}

row! {
    /// One packet dropped or marked.
    DropRow in Drops {
        /// When; of a drop derived from a counter, when the sample was taken that found it.
        t_ns: u64,
        /// The port where it happened.
        port: Name,
        /// The layer of the port.
        layer: Layer,
        /// The flow the packet belonged to; `None` where an engine has counters only.
        flow: Option<Name>,
        /// Its size, link-layer overhead included; `None` where an engine has counters only.
        bytes: Option<u64>,
        /// Why.
        reason: DropReason,
        /// Whether the engine saw the packet or a counter of such packets.
        observed: Observed,
    }
}

row! {
    /// One object fetched or sent.
    TransferRow in Transfers {
        /// The traffic it belongs to.
        traffic: Name,
        /// The connection that carried it; all look-ups of a traffic share one.
        flow: Name,
        /// When its first packet, the SYN or the question, was sent.
        started_ns: u64,
        /// When its last byte had arrived in order; `None`: not within the run, or the look-up has failed.
        finished_ns: Option<u64>,
        /// Its size.
        bytes: u64,
    }
}

row! {
    /// Packets that spent about the same time in one layer of one port.
    ///
    /// With histograms, all packets of one bucket of a [`SojournHistogram`](crate::SojournHistogram) that left within one
    /// second; packet by packet, a single one.
    SojournRow in Sojourns {
        /// Start of the second in which they left; packet by packet, the time at which it left.
        t_ns: u64,
        /// The port.
        port: Name,
        /// The layer of the port.
        layer: Layer,
        /// How long they stood there.
        sojourn_ns: u64,
        /// How many they were.
        packets: u64,
    }
}
