//! The rows of every table; their fields, in order, are the table's columns.

use std::fmt::Debug;

use arrow_array::ArrayRef;
use arrow_schema::Field;

use crate::Table;
use crate::names::{Name, Names};
#[cfg(feature = "parquet")]
use crate::parquet::Column;
use crate::value::{
    Answer, Direction, DropReason, End, FlowDirection, FlowState, Half, Layer, Method, Observed, RetransmissionKind,
    Stage, Value,
};

/// A row type: one table's columns.
pub(crate) trait Row: Copy {
    const TABLE: Table;
    /// The rows that are not in a batch yet.
    type Columns: Columns<Row = Self>;

    fn fields() -> Vec<Field>;
    /// The columns that hold only certain words, and these.
    fn words() -> Vec<(&'static str, &'static [&'static str])>;
}

/// Rows, column by column: a row is written once, and a column is read without touching the others.
pub(crate) trait Columns: ReadColumns + Debug + Default {
    type Row: Row<Columns = Self>;

    fn push(&mut self, row: Self::Row);
    fn clear(&mut self);
}

/// What a sink reads of rows, whatever their table.
pub(crate) trait ReadColumns {
    fn table(&self) -> Table;
    /// The number of rows.
    fn rows(&self) -> usize;
    fn arrays(&self, names: &Names) -> Vec<ArrayRef>;
    /// Appends each column to one of a file, of which there are as many.
    #[cfg(feature = "parquet")]
    fn encode(&self, names: &Names, columns: &mut [Column]);
}

/// Declares a row and, from the same list of fields, the columns of its table and the schema.
macro_rules! row {
    (
        $(#[$doc:meta])*
        $name:ident as $columns:ident in $table:ident { $($(#[$field_doc:meta])* $field:ident: $kind:ty,)* }
    ) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct $name {
            $($(#[$field_doc])* pub $field: $kind,)*
        }

        impl Row for $name {
            const TABLE: Table = Table::$table;
            type Columns = $columns;

            fn fields() -> Vec<Field> {
                vec![$(Field::new(stringify!($field), <$kind>::DATA_TYPE, <$kind>::NULLABLE)),*]
            }

            fn words() -> Vec<(&'static str, &'static [&'static str])> {
                [$((stringify!($field), <$kind>::WORDS)),*]
                    .into_iter()
                    .filter_map(|(column, words)| Some((column, words?)))
                    .collect()
            }
        }

        #[derive(Debug, Default)]
        pub(crate) struct $columns {
            $($field: Vec<<$kind as Value>::Stored>,)*
            rows: usize,
        }

        impl Columns for $columns {
            type Row = $name;

            #[inline]
            fn push(&mut self, row: $name) {
                $(self.$field.push(row.$field.stored());)*
                self.rows += 1;
            }

            fn clear(&mut self) {
                $(self.$field.clear();)*
                self.rows = 0;
            }
        }

        impl ReadColumns for $columns {
            fn table(&self) -> Table {
                Table::$table
            }

            fn rows(&self) -> usize {
                self.rows
            }

            fn arrays(&self, names: &Names) -> Vec<ArrayRef> {
                vec![$(<$kind>::array(&self.$field, names)),*]
            }

            #[cfg(feature = "parquet")]
            fn encode(&self, names: &Names, columns: &mut [Column]) {
                let mut columns = columns.iter_mut();
                $(<$kind>::encode(&self.$field, names, columns.next().expect("a column for each field"));)*
            }
        }
    };
}

row! {
    /// One probe sent, or one packet of a call or a game. A lost probe or packet has a row, too.
    ProbeRow as ProbeColumns in Probes {
        /// The entry of traffic that sent it. For a call or a game, the stream: `<traffic>/1` from its `from`, `<traffic>/2` from
        /// its `to`.
        probe: Name,
        /// Counts the probes of this entry, or the packets of this stream.
        seq: u64,
        /// When it was sent.
        sent_ns: u64,
        /// Time from sending to the arrival of the answer; `None`: lost, or not answered in time, or a packet of a kind
        /// that is not answered.
        rtt_ns: Option<u64>,
        /// One-way delay of the request or packet, if the engine knows it. It is always known for a packet of a call
        /// or a game,
        /// where `None` means lost.
        owd_up_ns: Option<u64>,
        /// One-way delay of the answer, if the engine knows it.
        owd_down_ns: Option<u64>,
    }
}

row! {
    /// One sample of the sending side of a flow. Quantities have the names of Linux' `tcp_info` if they exist there.
    ///
    /// A flow over UDP has no window and no acknowledgements. Its `delivered_bytes` are the bytes that have arrived,
    /// and its `lost` datagrams are those that the receiver has found missing. Quantities without an equivalent are
    /// `None`.
    FlowRow as FlowColumns in Flows {
        /// When the sample was taken.
        t_ns: u64,
        /// `<traffic>/<number>`, numbers from 1.
        flow: Name,
        /// Congestion window; `None`: not TCP.
        cwnd_bytes: Option<u64>,
        /// Slow-start threshold; `None`: still unlimited.
        ssthresh_bytes: Option<u64>,
        /// Payload in flight: sent and neither acknowledged (over UDP, arrived) nor marked lost.
        inflight_bytes: u64,
        /// Smoothed round-trip time; `None`: not measured yet.
        srtt_ns: Option<u64>,
        /// Smallest round-trip time of the last five minutes (`tcpi_min_rtt`); `None`: not measured yet.
        min_rtt_ns: Option<u64>,
        /// The window that the receiver advertised last; `None`: not TCP.
        rwnd_bytes: Option<u64>,
        /// Pacing rate in bits per second; `None`: not paced.
        pacing_bps: Option<u64>,
        /// Delivery rate measured last, in bits of payload per second (`tcpi_delivery_rate`); `None`: not measured yet.
        delivery_rate_bps: Option<u64>,
        /// Whether the application was the limit while that rate was measured (`tcpi_delivery_rate_app_limited`);
        /// `None`: not TCP.
        app_limited: Option<bool>,
        /// Payload acknowledged cumulatively since the start (`tcpi_bytes_acked`); over UDP, arrived since the start.
        delivered_bytes: u64,
        /// Segments delivered since the start, in order or not, including those of the handshake (`tcpi_delivered`);
        /// over UDP, datagrams that have arrived.
        delivered_packets: u64,
        /// Number of these segments that arrived marked with CE, as the receiver reported (`tcpi_delivered_ce`);
        /// `None`: not TCP.
        delivered_ce_packets: Option<u64>,
        /// Segments retransmitted since the start (`tcpi_total_retrans`); `None`: not TCP.
        retransmits: Option<u64>,
        /// Segments marked lost and not retransmitted yet (`tcpi_lost`); over UDP, datagrams still missing although a
        /// later one has arrived.
        lost: u64,
        /// Number of segments by which the path is believed to reorder (`tcpi_reordering`); `None`: not TCP.
        reordering: Option<u64>,
        /// Payload written and not sent yet (`tcpi_notsent_bytes`); `None`: UDP.
        notsent_bytes: Option<u64>,
        /// Time since the start during which there was data to send or to be acknowledged (`tcpi_busy_time`); `None`:
        /// not TCP.
        busy_ns: Option<u64>,
        /// Part of that time in which the receiver's window was the limit (`tcpi_rwnd_limited`); `None`: not TCP.
        rwnd_limited_ns: Option<u64>,
        /// Part of that time in which the send buffer was the limit (`tcpi_sndbuf_limited`); `None`: UDP.
        sndbuf_limited_ns: Option<u64>,
        /// State of the congestion control; `None`: not TCP.
        state: Option<FlowState>,
    }
}

/// The counters of a flow whose datagrams all have the same size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Datagrams {
    /// Payload of each.
    pub payload_bytes: u64,
    /// Sent so far.
    pub sent: u64,
    /// One more than the highest number that has arrived; numbers begin with 0.
    pub expected: u64,
    /// Arrived so far.
    pub received: u64,
}

impl FlowRow {
    /// A sample of a flow that is not TCP. Quantities that only TCP has are `None`.
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
    /// One sample of the contents of one layer of a port.
    QueueRow as QueueColumns in Queues {
        /// When the sample was taken.
        t_ns: u64,
        /// `<from>><to>`, as in `r1>h2`.
        port: Name,
        /// The layer of the port.
        layer: Layer,
        /// Packets queued.
        packets: u64,
        /// Bytes queued, link-layer overhead included.
        bytes: u64,
        /// Packets dropped since the start.
        dropped: u64,
        /// Packets marked since the start.
        marked: u64,
        /// Packets passed on since the start; a packet of several segments counts as so many.
        sent_packets: u64,
        /// Bytes passed on since the start, link-layer overhead included.
        sent_bytes: u64,
        /// Time since the start that the transmissions of a port on the air took, failed ones and preambles included;
        /// `None`: not a driver's layer of such a port.
        airtime_ns: Option<u64>,
        /// Their number. A transmission is an aggregate of frames, or a single frame; `None`: likewise.
        transmissions: Option<u64>,
        /// The limit that byte queue limits set for a ring (`limit` in sysfs); `None`: not a ring, or it has none.
        limit_bytes: Option<u64>,
        /// Bytes that count against this limit: those in the ring that the device has not yet reported as sent (`inflight`
        /// in sysfs).
        inflight_bytes: Option<u64>,
    }
}

row! {
    /// One sample of a flow queue that holds packets. An engine that sees the packets has a row for each flow in the
    /// queue, so two rows with the same time, port and queue are two flows that share it.
    FlowQueueRow as FlowQueueColumns in FlowQueues {
        /// When the sample was taken.
        t_ns: u64,
        /// The port.
        port: Name,
        /// The number of the queue, which is that of its class in `tc -s class`. In an inner discipline, the upper 16
        /// bits are the number of that discipline, counted from 1.
        queue: u64,
        /// The flow that the packets belong to, `ping/1` for those of a ping; `None` if the engine sees only the queue.
        flow: Option<Name>,
        /// Packets queued.
        packets: u64,
        /// Bytes queued, link-layer overhead included.
        bytes: u64,
    }
}

row! {
    /// One packet dropped or marked.
    DropRow as DropColumns in Drops {
        /// When it happened. For a drop derived from a counter, when the sample that found it was taken.
        t_ns: u64,
        /// The port where it happened.
        port: Name,
        /// The layer of the port.
        layer: Layer,
        /// The flow that the packet belonged to; `None` if the engine has only counters.
        flow: Option<Name>,
        /// Its size, link-layer overhead included; `None` if the engine has only counters.
        bytes: Option<u64>,
        /// Why.
        reason: DropReason,
        /// Whether the engine saw the packet itself, or only a counter of such packets.
        observed: Observed,
    }
}

row! {
    /// One object fetched or sent.
    TransferRow as TransferColumns in Transfers {
        /// The entry of traffic it belongs to.
        traffic: Name,
        /// The connection that carried it. All look-ups of an entry of traffic have the same.
        flow: Name,
        /// When its first packet was sent: the SYN, or the question. For the later segments of a video, when they were
        /// requested.
        started_ns: u64,
        /// When all its bytes had arrived in order; `None`: not within the run, or the look-up failed.
        finished_ns: Option<u64>,
        /// Its size.
        bytes: u64,
    }
}

row! {
    /// Packets that spent about the same time in one layer of one port.
    ///
    /// With histograms, these are all packets of one bucket of a [`SojournHistogram`](crate::SojournHistogram) that
    /// left within one second. Packet by packet, it is a single packet.
    SojournRow as SojournColumns in Sojourns {
        /// Start of the second in which they left. Packet by packet, the time at which the packet left.
        t_ns: u64,
        /// The port.
        port: Name,
        /// The layer of the port.
        layer: Layer,
        /// How long they stayed in the layer.
        sojourn_ns: u64,
        /// Number of packets.
        packets: u64,
    }
}

row! {
    /// The rate of a port's link from a time on: the first, and each change.
    CapacityRow as CapacityColumns in Capacity {
        /// The time from which the rate applies; 0 for the first.
        t_ns: u64,
        /// The port. A port without a rate has no row.
        port: Name,
        /// Bits per second, link-layer overhead included.
        rate_bps: u64,
    }
}

row! {
    /// What a test of the path's buffers observed in one direction.
    EstimateRow as EstimateColumns in Estimates {
        /// The entry of traffic that made the test.
        traffic: Name,
        /// The direction in which the large packets went, as seen from the client.
        direction: Direction,
        /// When the first packet of the load was sent.
        started_ns: u64,
        /// Mean round-trip time of the small packets before any load; `None`: none was answered.
        idle_ns: Option<u64>,
        /// Mean round-trip time of the packets whose answers arrived in the second half of the load; `None`: none
        /// arrived.
        loaded_ns: Option<u64>,
        /// Bits of payload of the large packets that made the round trip, per second of the second half of the load.
        rate_bps: u64,
        /// Packets that the client sent under load.
        sent: u64,
        /// Answers that arrived in the second half of the load.
        received: u64,
    }
}

row! {
    /// One round-trip time that a capture shows: of one half of the path.
    RoundTripRow as RoundTripColumns in RoundTrips {
        /// When the answer passed the vantage point.
        t_ns: u64,
        /// The flow.
        flow: Name,
        /// The half of the path.
        half: Half,
        /// What was matched.
        method: Method,
        /// From the vantage point to that end and back, including the time that the end took to answer.
        rtt_ns: u64,
    }
}

row! {
    /// One retransmitted segment.
    RetransmissionRow as RetransmissionColumns in Retransmissions {
        /// When.
        t_ns: u64,
        /// The flow.
        flow: Name,
        /// Its payload; 0 for a SYN.
        bytes: u64,
        /// Why it was retransmitted, as far as the capture shows.
        kind: RetransmissionKind,
        /// Whether the first copy had arrived, too; `None`: not known.
        spurious: Option<bool>,
    }
}

row! {
    /// One packet whose times at two places are known: captured at two vantage points, or a probe of a live
    /// measurement, which goes with the data on its way to the server and with the acknowledgements on its way back.
    OneWayRow as OneWayColumns in OneWay {
        /// When it passed the first of them. For both ways of a probe, when the client sent it.
        t_ns: u64,
        /// The flow.
        flow: Name,
        /// Whether it went with the data or with the acknowledgements.
        way: FlowDirection,
        /// By how much its delay between the two places exceeded the smallest. The offset of the clocks cancels out, but
        /// in a live measurement their drift does not.
        change_ns: u64,
    }
}

row! {
    /// One probe of a live measurement that was to reach only a hop of the path, because its TTL was limited.
    HopRow as HopColumns in Hops {
        /// When it was sent.
        t_ns: u64,
        /// The end that sent it. Hops are counted from this end.
        ladder: End,
        /// Its TTL: the number of the hop.
        ttl: u64,
        /// The hop's address; `None`: not answered.
        address: Option<Name>,
        /// Time from sending to the arrival of the answer; `None`: not answered. Routers answer only some of the probes,
        /// so this is no loss of a packet.
        rtt_ns: Option<u64>,
        /// What answered; for a probe without an answer, what was expected to answer.
        kind: Option<Answer>,
        /// Whether the answer shows that the hop belongs to an MPLS tunnel; `None`: not known.
        mpls: Option<bool>,
    }
}

row! {
    /// One stay of a packet in one of its sender's own queues, from the kernel's timestamps.
    StageRow as StageColumns in Stages {
        /// When the packet entered the queue.
        t_ns: u64,
        /// The end that sent the packet.
        end: End,
        /// The queue.
        stage: Stage,
        /// How long it stayed.
        delay_ns: u64,
    }
}
