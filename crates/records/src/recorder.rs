//! From rows to batches.

use arrow_array::RecordBatch;

use crate::names::{Name, Names};
use crate::rows::{
    CapacityColumns, CapacityRow, Columns, DropColumns, DropRow, EstimateColumns, EstimateRow, FlowColumns,
    FlowQueueColumns, FlowQueueRow, FlowRow, HopColumns, HopRow, OneWayColumns, OneWayRow, ProbeColumns, ProbeRow,
    QueueColumns, QueueRow, ReadColumns, RetransmissionColumns, RetransmissionRow, RoundTripColumns, RoundTripRow, Row,
    SojournColumns, SojournRow, StageColumns, StageRow, TransferColumns, TransferRow,
};
use crate::{Batch, RecordsError, Sink, Table, Tables};

/// Number of rows of one table that are kept before they become a batch. This many rows of the widest table fit into a
/// core's second-level cache.
const BATCH_ROWS: usize = 1024;

/// Takes an engine's observations row by row.
///
/// Recording itself never fails: the first error of the sink is kept, later rows are discarded, and [`Recorder::check`]
/// or [`Recorder::finish`] reports the error. So an engine's hot path does not have to handle errors.
///
/// What only records does not depend on the sink's type: `&mut Recorder<S>` coerces to `&mut Recorder<dyn Sink>`.
#[derive(Debug)]
pub struct Recorder<S: Sink + ?Sized> {
    probes: ProbeColumns,
    flows: FlowColumns,
    queues: QueueColumns,
    flow_queues: FlowQueueColumns,
    drops: DropColumns,
    transfers: TransferColumns,
    sojourns: SojournColumns,
    capacity: CapacityColumns,
    estimates: EstimateColumns,
    round_trips: RoundTripColumns,
    retransmissions: RetransmissionColumns,
    one_way: OneWayColumns,
    hops: HopColumns,
    stages: StageColumns,
    output: Output<S>,
}

impl<S: Sink> Recorder<S> {
    /// A recorder of all tables, without rows.
    pub fn new(sink: S) -> Self {
        Self {
            output: Output { sink, tables: Tables::ALL, names: Names::default(), error: None },
            probes: Default::default(),
            flows: Default::default(),
            queues: Default::default(),
            flow_queues: Default::default(),
            drops: Default::default(),
            transfers: Default::default(),
            sojourns: Default::default(),
            capacity: Default::default(),
            estimates: Default::default(),
            round_trips: Default::default(),
            retransmissions: Default::default(),
            one_way: Default::default(),
            hops: Default::default(),
            stages: Default::default(),
        }
    }

    /// The same recorder, which discards the rows of tables other than these.
    pub fn only(mut self, tables: Tables) -> Self {
        self.output.tables = tables;
        self
    }

    /// Writes the remaining rows and completes the sink.
    pub fn finish(mut self) -> Result<S::Output, RecordsError> {
        self.output.flush(&mut self.probes);
        self.output.flush(&mut self.flows);
        self.output.flush(&mut self.queues);
        self.output.flush(&mut self.flow_queues);
        self.output.flush(&mut self.drops);
        self.output.flush(&mut self.transfers);
        self.output.flush(&mut self.sojourns);
        self.output.flush(&mut self.capacity);
        self.output.flush(&mut self.estimates);
        self.output.flush(&mut self.round_trips);
        self.output.flush(&mut self.retransmissions);
        self.output.flush(&mut self.one_way);
        self.output.flush(&mut self.hops);
        self.output.flush(&mut self.stages);
        match self.output.error {
            None => self.output.sink.finish(),
            Some(error) => Err(error),
        }
    }
}

impl<S: Sink + ?Sized> Recorder<S> {
    /// Whether the rows of this table are recorded.
    #[inline]
    pub fn records(&self, table: Table) -> bool {
        self.output.tables.contains(table)
    }

    /// The name that rows of this recorder use for `text`; the same text always gives the same name.
    pub fn intern(&mut self, text: &str) -> Name {
        self.output.names.intern(text)
    }

    /// One probe sent.
    pub fn probe(&mut self, row: ProbeRow) {
        self.output.push(&mut self.probes, row);
    }

    /// One sample of a flow.
    pub fn flow(&mut self, row: FlowRow) {
        self.output.push(&mut self.flows, row);
    }

    /// One sample of a layer of a port.
    pub fn queue(&mut self, row: QueueRow) {
        self.output.push(&mut self.queues, row);
    }

    /// One sample of the packets in a flow queue.
    pub fn flow_queue(&mut self, row: FlowQueueRow) {
        self.output.push(&mut self.flow_queues, row);
    }

    /// One packet dropped or marked.
    pub fn dropped(&mut self, row: DropRow) {
        self.output.push(&mut self.drops, row);
    }

    /// One object fetched or sent, or given up at the end of the run.
    pub fn transfer(&mut self, row: TransferRow) {
        self.output.push(&mut self.transfers, row);
    }

    /// Packets that stayed equally long in one layer of a port.
    pub fn sojourn(&mut self, row: SojournRow) {
        self.output.push(&mut self.sojourns, row);
    }

    /// The first rate of a port's link, or a change of it.
    pub fn capacity(&mut self, row: CapacityRow) {
        self.output.push(&mut self.capacity, row);
    }

    /// One direction of a test of the path's buffers.
    pub fn estimate(&mut self, row: EstimateRow) {
        self.output.push(&mut self.estimates, row);
    }

    /// One round-trip time that a capture shows.
    pub fn round_trip(&mut self, row: RoundTripRow) {
        self.output.push(&mut self.round_trips, row);
    }

    /// One retransmitted segment.
    pub fn retransmission(&mut self, row: RetransmissionRow) {
        self.output.push(&mut self.retransmissions, row);
    }

    /// One packet that was captured at both ends.
    pub fn one_way(&mut self, row: OneWayRow) {
        self.output.push(&mut self.one_way, row);
    }

    /// One probe that was to reach only a hop of the path.
    pub fn hop(&mut self, row: HopRow) {
        self.output.push(&mut self.hops, row);
    }

    /// One stay of a probe in one of its sender's own queues.
    pub fn stage(&mut self, row: StageRow) {
        self.output.push(&mut self.stages, row);
    }

    /// The text of a name of this recorder.
    pub fn text(&self, name: Name) -> String {
        let mut text = String::new();
        self.output.names.write(name, &mut text);
        text
    }

    /// The sink's first error, if there was one. An engine may check from time to time in order to stop early.
    pub fn check(&self) -> Result<(), &RecordsError> {
        self.output.error.as_ref().map_or(Ok(()), Err)
    }

    /// The sink that has the batches so far.
    pub fn sink(&self) -> &S {
        &self.output.sink
    }

    /// The rows of a table that are not in a batch yet, as a batch. They also remain in the recorder.
    pub fn pending(&self, table: Table) -> RecordBatch {
        match table {
            Table::Probes => self.output.batch(&self.probes),
            Table::Flows => self.output.batch(&self.flows),
            Table::Queues => self.output.batch(&self.queues),
            Table::FlowQueues => self.output.batch(&self.flow_queues),
            Table::Drops => self.output.batch(&self.drops),
            Table::Transfers => self.output.batch(&self.transfers),
            Table::Sojourns => self.output.batch(&self.sojourns),
            Table::Capacity => self.output.batch(&self.capacity),
            Table::Estimates => self.output.batch(&self.estimates),
            Table::RoundTrips => self.output.batch(&self.round_trips),
            Table::Retransmissions => self.output.batch(&self.retransmissions),
            Table::OneWay => self.output.batch(&self.one_way),
            Table::Hops => self.output.batch(&self.hops),
            Table::Stages => self.output.batch(&self.stages),
        }
    }
}

/// The output, shared by all tables.
#[derive(Debug)]
struct Output<S: ?Sized> {
    tables: Tables,
    names: Names,
    error: Option<RecordsError>,
    sink: S,
}

impl<S: Sink + ?Sized> Output<S> {
    #[inline]
    fn push<R: Row>(&mut self, rows: &mut R::Columns, row: R) {
        if !self.tables.contains(R::TABLE) {
            return;
        }
        rows.push(row);
        if rows.rows() == BATCH_ROWS {
            self.flush(rows);
        }
    }

    #[cold]
    fn flush<C: Columns>(&mut self, rows: &mut C) {
        if self.error.is_none() && rows.rows() > 0 {
            self.error = self.sink.write(C::Row::TABLE, &Batch::recorded(rows, &self.names)).err();
        }
        rows.clear();
    }

    fn batch<C: Columns>(&self, rows: &C) -> RecordBatch {
        Batch::recorded(rows, &self.names).to_arrow()
    }
}
