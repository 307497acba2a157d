//! Turns the records of a run into series, and counts them.

use std::cell::{RefCell, RefMut};
use std::collections::HashMap;
use std::rc::Rc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, Int64Array, RecordBatch, StringArray};
use bufferscope_records::{Batch, RecordsError, Sink, Table};
use bufferscope_scenario::Scenario;

use crate::columns::Columns;
use crate::numbers::Numbers;
use crate::series::Series;
use crate::totals::{self, AllTotals};

/// Ports and flows that have a series at most.
const MOST_PORTS: usize = 256;
const MOST_FLOWS: usize = 256;
/// Names of probes and of traffic with transfers, and rows of each, at most.
const MOST_NAMES: usize = 64;
const MOST_ROWS: usize = 20_000;

/// Columns of a port's series.
const OF_PORTS: [&str; 6] = ["packets", "bytes", "ring_bytes", "dropped", "marked", "sent_bytes"];
/// Columns of a flow's series.
const OF_FLOWS: [&str; 7] = ["cwnd", "ssthresh", "srtt_ns", "inflight", "delivered", "pacing_bps", "retransmits"];

/// Takes the batches of a run. A clone has the same records.
#[derive(Clone, Debug)]
pub(crate) struct Recording(Rc<RefCell<Records>>);

/// What is kept of the records.
#[derive(Debug)]
pub(crate) struct Records {
    end_ns: u64,
    /// Time between two samples of queues and flows.
    queues_ns: u64,
    flows_ns: u64,
    totals: AllTotals,
    pub(crate) numbers: Numbers,
    /// Rows of each table that were looked at before they became part of a batch.
    seen: [usize; Table::ALL.len()],
    ports: Named<PortSeries>,
    flows: Named<Series<{ OF_FLOWS.len() }>>,
    probes: Named<Rows<3>>,
    transfers: Named<Rows<3>>,
    capacity: Named<Rows<2>>,
}

/// Things by name, in the order in which they were first seen.
#[derive(Debug)]
struct Named<T> {
    most: usize,
    by_name: HashMap<String, usize>,
    all: Vec<(String, T)>,
    /// Whether there were more names.
    more: bool,
}

impl<T> Named<T> {
    fn new(most: usize) -> Self {
        Self { most, by_name: HashMap::new(), all: Vec::new(), more: false }
    }

    fn get(&mut self, name: &str, make: impl FnOnce() -> T) -> Option<&mut T> {
        if let Some(index) = self.by_name.get(name) {
            return Some(&mut self.all[*index].1);
        }
        if self.all.len() == self.most {
            self.more = true;
            return None;
        }
        self.by_name.insert(name.to_owned(), self.all.len());
        self.all.push((name.to_owned(), make()));
        self.all.last_mut().map(|(_, new)| new)
    }
}

/// The series of a port, and its newest sample, of which some layers may still be missing.
#[derive(Debug)]
struct PortSeries {
    series: Series<{ OF_PORTS.len() }>,
    sample: Option<(u64, [f64; OF_PORTS.len()])>,
}

impl PortSeries {
    fn complete(&mut self) {
        if let Some((t_ns, values)) = self.sample.take() {
            self.series.push(t_ns, values);
        }
    }
}

/// Rows that are not samples.
#[derive(Debug)]
struct Rows<const N: usize> {
    rows: Vec<[f64; N]>,
    given: usize,
    more: bool,
}

impl<const N: usize> Rows<N> {
    fn new() -> Self {
        Self { rows: Vec::new(), given: 0, more: false }
    }

    fn push(&mut self, row: [f64; N]) {
        if self.given + self.rows.len() == MOST_ROWS {
            self.more = true;
        } else {
            self.rows.push(row);
        }
    }

    fn drain(&mut self, part: &str, name: &str, names: [&str; N], columns: &mut Columns) {
        if self.rows.is_empty() {
            return;
        }
        for (index, key) in names.into_iter().enumerate() {
            columns.f64([part, name, key], self.rows.iter().map(|row| row[index]));
        }
        self.given += self.rows.len();
        self.rows.clear();
    }
}

impl Recording {
    pub(crate) fn new(scenario: &Scenario) -> Self {
        let sampled = |table| scenario.sampled_every_ns(table).unwrap_or(scenario.sample_interval_ns);
        Self(Rc::new(RefCell::new(Records {
            end_ns: scenario.duration_ns,
            queues_ns: sampled(Table::Queues),
            flows_ns: sampled(Table::Flows),
            totals: AllTotals::new(),
            numbers: Numbers::new(scenario),
            seen: [0; Table::ALL.len()],
            ports: Named::new(MOST_PORTS),
            flows: Named::new(MOST_FLOWS),
            probes: Named::new(MOST_NAMES),
            transfers: Named::new(MOST_NAMES),
            capacity: Named::new(MOST_PORTS),
        })))
    }

    pub(crate) fn records(&self) -> RefMut<'_, Records> {
        self.0.borrow_mut()
    }
}

impl Sink for Recording {
    type Output = Self;

    fn write(&mut self, table: Table, batch: &Batch<'_>) -> Result<(), RecordsError> {
        let batch = &batch.to_arrow();
        let mut records = self.records();
        totals::add(&mut records.totals, table, batch);
        records.look(table, batch);
        records.seen[table as usize] = 0;
        Ok(())
    }

    fn finish(self) -> Result<Self, RecordsError> {
        Ok(self)
    }
}

impl Records {
    /// The tables that become series.
    pub(crate) const TABLES: [Table; 5] =
        [Table::Queues, Table::Flows, Table::Probes, Table::Transfers, Table::Capacity];

    /// Looks at the rows of a batch that is being filled, of which the first may have been looked at before.
    pub(crate) fn look(&mut self, table: Table, batch: &RecordBatch) {
        let seen = std::mem::replace(&mut self.seen[table as usize], batch.num_rows());
        let new = batch.slice(seen, batch.num_rows() - seen);
        if new.num_rows() == 0 {
            return;
        }
        match table {
            Table::Queues => self.look_at_queues(&new),
            Table::Flows => self.look_at_flows(&new),
            Table::Probes => self.look_at_probes(&new),
            Table::Transfers => self.look_at_transfers(&new),
            Table::Capacity => self.look_at_capacity(&new),
            _ => {}
        }
    }

    fn look_at_queues(&mut self, batch: &RecordBatch) {
        let [t, packets, bytes, dropped, marked, sent] =
            numbers(batch, ["t_ns", "packets", "bytes", "dropped", "marked", "sent_bytes"]);
        let [ports, layers] = texts(batch, ["port", "layer"]);
        for row in 0..batch.num_rows() {
            let make = || PortSeries { series: Series::new([1, 2], self.queues_ns, self.end_ns), sample: None };
            let Some(port) = self.ports.get(ports.value(row), make) else { continue };
            let t_ns = whole(t, row);
            if port.sample.is_some_and(|(other_ns, _)| other_ns != t_ns) {
                port.complete();
            }
            let (_, sample) = port.sample.get_or_insert((t_ns, [0.0; OF_PORTS.len()]));
            match layers.value(row) {
                "ring" => sample[2] += number(bytes, row),
                _ => {
                    sample[0] += number(packets, row);
                    sample[1] += number(bytes, row);
                }
            }
            sample[3] += number(dropped, row);
            sample[4] += number(marked, row);
            // The stacked discipline comes first, and what it has sent is counted again below it.
            if layers.value(row) == "qdisc" || sample[5] == 0.0 {
                sample[5] = number(sent, row);
            }
        }
    }

    fn look_at_flows(&mut self, batch: &RecordBatch) {
        let names = [
            "t_ns",
            "cwnd_bytes",
            "ssthresh_bytes",
            "srtt_ns",
            "inflight_bytes",
            "delivered_bytes",
            "pacing_bps",
            "retransmits",
        ];
        let [t, columns @ ..] = numbers(batch, names);
        let [flows] = texts(batch, ["flow"]);
        for row in 0..batch.num_rows() {
            let (t_ns, flow) = (whole(t, row), flows.value(row));
            self.numbers.delivered(flow, t_ns, whole(columns[4], row));
            let make = || Series::new([0, 2], self.flows_ns, self.end_ns);
            if let Some(series) = self.flows.get(flow, make) {
                series.push(t_ns, columns.map(|column| number(column, row)));
            }
        }
    }

    fn look_at_probes(&mut self, batch: &RecordBatch) {
        let [sent, rtt, owd] = numbers(batch, ["sent_ns", "rtt_ns", "owd_up_ns"]);
        let [names] = texts(batch, ["probe"]);
        for row in 0..batch.num_rows() {
            let name = names.value(row);
            self.numbers.probe(name, whole(sent, row), measured(rtt, row), measured(owd, row));
            if let Some(rows) = self.probes.get(name, Rows::new) {
                rows.push([sent, rtt, owd].map(|column| number(column, row)));
            }
        }
    }

    fn look_at_transfers(&mut self, batch: &RecordBatch) {
        let [started, finished, bytes] = numbers(batch, ["started_ns", "finished_ns", "bytes"]);
        let [traffic, flows] = texts(batch, ["traffic", "flow"]);
        for row in 0..batch.num_rows() {
            let (name, finished_ns) = (traffic.value(row), measured(finished, row));
            let times = (whole(started, row), finished_ns);
            self.numbers.transfer(name, flows.value(row), times, whole(bytes, row));
            if let Some(rows) = self.transfers.get(name, Rows::new) {
                rows.push([started, finished, bytes].map(|column| number(column, row)));
            }
        }
    }

    fn look_at_capacity(&mut self, batch: &RecordBatch) {
        let columns = numbers(batch, ["t_ns", "rate_bps"]);
        let [ports] = texts(batch, ["port"]);
        for row in 0..batch.num_rows() {
            if let Some(rows) = self.capacity.get(ports.value(row), Rows::new) {
                rows.push(columns.map(|column| number(column, row)));
            }
        }
    }

    /// No more rows come.
    pub(crate) fn finish(&mut self) {
        for (_, port) in &mut self.ports.all {
            port.complete();
            port.series.finish();
        }
        self.flows.all.iter_mut().for_each(|(_, series)| series.finish());
    }

    /// Gives away what is new. Samples of the current time must be complete.
    pub(crate) fn drain(&mut self, columns: &mut Columns) {
        for (name, port) in &mut self.ports.all {
            port.complete();
            port.series.drain("ports", name, OF_PORTS, columns);
        }
        for (name, series) in &mut self.flows.all {
            series.drain("flows", name, OF_FLOWS, columns);
        }
        for (name, rows) in &mut self.probes.all {
            rows.drain("probes", name, ["t_ns", "rtt_ns", "owd_ns"], columns);
        }
        for (name, rows) in &mut self.transfers.all {
            rows.drain("transfers", name, ["started_ns", "finished_ns", "bytes"], columns);
        }
        for (name, rows) in &mut self.capacity.all {
            rows.drain("capacity", name, ["t_ns", "rate_bps"], columns);
        }
    }

    /// The totals of all tables.
    pub(crate) fn totals(&self) -> AllTotals {
        self.totals.clone()
    }

    /// What the series lack, in sentences.
    pub(crate) fn left_out(&self) -> Vec<String> {
        let more = |are_more: bool, most: usize, what: &str| {
            are_more.then(|| format!("only the first {most} {what} have series"))
        };
        let cut = |name: &str, is_cut: bool, what: &str| {
            is_cut.then(|| format!("{name}: only the first {MOST_ROWS} {what} are in the picture"))
        };
        let probes = self.probes.all.iter().filter_map(|(name, rows)| cut(name, rows.more, "probes"));
        let transfers = self.transfers.all.iter().filter_map(|(name, rows)| cut(name, rows.more, "transfers"));
        let rates = self.capacity.all.iter().filter_map(|(name, rows)| cut(name, rows.more, "changes of the rate"));
        [
            more(self.ports.more, MOST_PORTS, "ports"),
            more(self.flows.more, MOST_FLOWS, "flows"),
            more(self.probes.more, MOST_NAMES, "probers"),
            more(self.transfers.more, MOST_NAMES, "entries of traffic with transfers"),
        ]
        .into_iter()
        .flatten()
        .chain(probes)
        .chain(transfers)
        .chain(rates)
        .collect()
    }
}

fn column<'b>(batch: &'b RecordBatch, name: &str) -> &'b dyn Array {
    batch.column_by_name(name).expect("the table has this column").as_ref()
}

fn numbers<'b, const N: usize>(batch: &'b RecordBatch, names: [&str; N]) -> [&'b Int64Array; N] {
    names.map(|name| column(batch, name).as_primitive::<Int64Type>())
}

fn texts<'b, const N: usize>(batch: &'b RecordBatch, names: [&str; N]) -> [&'b StringArray; N] {
    names.map(|name| column(batch, name).as_string::<i32>())
}

/// A number that is always there and never negative.
fn whole(column: &Int64Array, row: usize) -> u64 {
    column.value(row) as u64
}

fn measured(column: &Int64Array, row: usize) -> Option<u64> {
    column.is_valid(row).then(|| whole(column, row))
}

fn number(column: &Int64Array, row: usize) -> f64 {
    measured(column, row).map_or(f64::NAN, |value| value as f64)
}
