//! A reader finds exactly what a run has recorded.

use std::fs::{self, File};
use std::path::Path;

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type};
use bufferscope_records::*;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

/// More than two row groups, and not a multiple of a batch.
const MANY: u64 = 150_001;

/// The rows after which a row group is written.
const ROW_GROUP_ROWS: i64 = 16 * 1024;

fn recorded(record: impl FnOnce(&mut Recorder<MemorySink>)) -> MemorySink {
    let mut recorder = Recorder::new(MemorySink::default());
    record(&mut recorder);
    recorder.finish().expect("memory takes everything")
}

fn read(directory: &Path, table: Table) -> Vec<RecordBatch> {
    let file = File::open(directory.join(format!("{table}.parquet"))).expect("every table has a file");
    let reader = ParquetRecordBatchReaderBuilder::try_new(file).expect("a Parquet file").build().expect("readable");
    assert_eq!(arrow_array::RecordBatchReader::schema(&reader), schema(table));
    reader.map(|batch| batch.expect("a whole batch")).collect()
}

fn integers<'a>(batches: &'a [RecordBatch], column: &'a str) -> impl Iterator<Item = Option<i64>> + 'a {
    batches.iter().flat_map(move |batch| batch[column].as_primitive::<Int64Type>().iter())
}

fn texts<'a>(batches: &'a [RecordBatch], column: &'a str) -> impl Iterator<Item = &'a str> + 'a {
    batches.iter().flat_map(move |batch| batch[column].as_string::<i32>().iter().map(|text| text.expect("no null")))
}

fn record_probes<S: Sink>(recorder: &mut Recorder<S>) {
    let probes = [recorder.intern("ping"), recorder.intern("ping-back")];
    for seq in 0..MANY {
        let rtt_ns = (seq % 3 != 0).then_some(20_000_000 + seq);
        let probe = probes[(seq % 2) as usize];
        recorder.probe(ProbeRow {
            probe,
            seq,
            sent_ns: seq * 100,
            rtt_ns,
            owd_up_ns: rtt_ns.map(|t| t / 2),
            owd_down_ns: None,
        });
    }
}

#[test]
fn probes_survive_a_round_trip_in_order_and_a_lost_one_is_null() {
    let directory = tempfile::tempdir().unwrap();
    let mut recorder = Recorder::new(ParquetSink::create(directory.path()).unwrap());
    record_probes(&mut recorder);
    let counts = recorder.finish().unwrap();
    assert_eq!(counts.of(Table::Probes), MANY);

    let batches = read(directory.path(), Table::Probes);
    assert!(integers(&batches, "seq").eq((0..MANY as i64).map(Some)));
    assert!(integers(&batches, "rtt_ns").eq((0..MANY as i64).map(|seq| (seq % 3 != 0).then_some(20_000_000 + seq))));
    assert!(integers(&batches, "owd_down_ns").all(|value| value.is_none()));
    assert!(texts(&batches, "probe").eq((0..MANY).map(|seq| ["ping", "ping-back"][(seq % 2) as usize])));
}

#[test]
fn every_kind_of_row_keeps_its_values() {
    let sink = recorded(|recorder| {
        let [flow, port, web] = ["web/17", "r1>h2", "web"].map(|text| recorder.intern(text));
        recorder.flow(FlowRow {
            t_ns: 1,
            flow,
            cwnd_bytes: Some(14_480),
            ssthresh_bytes: None,
            inflight_bytes: 2_896,
            srtt_ns: Some(20_000_000),
            min_rtt_ns: Some(19_000_000),
            rwnd_bytes: Some(65_535),
            pacing_bps: None,
            delivery_rate_bps: None,
            app_limited: Some(true),
            delivered_bytes: 5,
            delivered_packets: 8,
            delivered_ce_packets: Some(9),
            retransmits: Some(6),
            lost: 7,
            reordering: Some(3),
            notsent_bytes: None,
            busy_ns: Some(10),
            rwnd_limited_ns: Some(11),
            sndbuf_limited_ns: Some(12),
            state: Some(FlowState::Recovery),
        });
        recorder.queue(QueueRow {
            t_ns: 2,
            port,
            layer: Layer::Qdisc,
            packets: 3,
            bytes: 4_542,
            dropped: 5,
            marked: 6,
            sent_packets: 7,
            sent_bytes: 10_598,
            airtime_ns: Some(8_000),
            transmissions: None,
            limit_bytes: Some(3_028),
            inflight_bytes: None,
        });
        recorder.dropped(DropRow {
            t_ns: 3,
            port,
            layer: Layer::Ring,
            flow: Some(flow),
            bytes: Some(1514),
            reason: DropReason::new("red_early"),
            observed: Observed::Packet,
        });
        let (unknown, reason) = (None, DropReason::new("red"));
        let observed = Observed::Counter;
        recorder.dropped(DropRow { t_ns: 3, port, layer: Layer::Qdisc, flow: unknown, bytes: None, reason, observed });
        recorder.transfer(TransferRow { traffic: web, flow, started_ns: 4, finished_ns: None, bytes: 177_669 });
        recorder.sojourn(SojournRow { t_ns: 5, port, layer: Layer::Qdisc, sojourn_ns: 6, packets: u64::MAX });
    });

    let numbers = |table, column| integers(sink.batches(table), column).collect::<Vec<_>>();
    let words = |table, column| texts(sink.batches(table), column).collect::<Vec<_>>();
    assert_eq!(words(Table::Flows, "flow"), ["web/17"]);
    assert_eq!(words(Table::Flows, "state"), ["recovery"]);
    assert_eq!(numbers(Table::Flows, "cwnd_bytes"), [Some(14_480)]);
    assert_eq!(numbers(Table::Flows, "ssthresh_bytes"), [None]);
    assert_eq!(numbers(Table::Flows, "srtt_ns"), [Some(20_000_000)]);
    assert_eq!(numbers(Table::Flows, "lost"), [Some(7)]);
    assert_eq!(words(Table::Queues, "layer"), ["qdisc"]);
    assert_eq!(numbers(Table::Queues, "sent_bytes"), [Some(10_598)]);
    assert_eq!(words(Table::Drops, "layer"), ["ring", "qdisc"]);
    let flows = sink.batches(Table::Drops).iter().flat_map(|batch| batch["flow"].as_string::<i32>().iter());
    assert_eq!(flows.collect::<Vec<_>>(), [Some("web/17"), None]);
    assert_eq!(numbers(Table::Drops, "bytes"), [Some(1514), None]);
    assert_eq!(words(Table::Drops, "reason"), ["red_early", "red"]);
    assert_eq!(words(Table::Drops, "observed"), ["packet", "counter"]);
    assert_eq!(words(Table::Transfers, "traffic"), ["web"]);
    assert_eq!(numbers(Table::Transfers, "finished_ns"), [None]);
    assert_eq!(numbers(Table::Sojourns, "packets"), [Some(i64::MAX)], "what does not fit stays at the largest number");
}

#[test]
fn rows_leave_in_batches_so_memory_is_bounded() {
    let sink = recorded(record_probes);
    let sizes: Vec<usize> = sink.batches(Table::Probes).iter().map(RecordBatch::num_rows).collect();
    assert_eq!(sizes.iter().sum::<usize>() as u64, MANY);
    assert!(sizes.iter().all(|&rows| rows <= 1024), "{sizes:?}");
}

#[test]
fn the_rows_so_far_can_be_read_at_any_time_and_this_changes_nothing() {
    let mut recorder = Recorder::new(MemorySink::default());
    let probe = recorder.intern("ping");
    assert_eq!(recorder.pending(Table::Probes).num_rows(), 0);
    for seq in 0..3000 {
        recorder.probe(ProbeRow { probe, seq, sent_ns: seq, rtt_ns: None, owd_up_ns: None, owd_down_ns: None });
        if [0, 1023, 1024, 2999].contains(&seq) {
            let so_far = [recorder.sink().batches(Table::Probes), &[recorder.pending(Table::Probes)]].concat();
            assert!(integers(&so_far, "seq").flatten().eq(0..=seq as i64), "after {seq}");
        }
    }
    let sizes = |sink: &MemorySink| sink.batches(Table::Probes).iter().map(RecordBatch::num_rows).collect::<Vec<_>>();
    assert_eq!(sizes(&recorder.finish().unwrap()), [1024, 1024, 952]);
}

#[test]
fn row_groups_are_bounded_too() {
    let directory = tempfile::tempdir().unwrap();
    let mut recorder = Recorder::new(ParquetSink::create(directory.path()).unwrap());
    record_probes(&mut recorder);
    recorder.finish().unwrap();
    let file = File::open(directory.path().join("probes.parquet")).unwrap();
    let builder = ParquetRecordBatchReaderBuilder::try_new(file).unwrap();
    let groups: Vec<i64> = builder.metadata().row_groups().iter().map(|group| group.num_rows()).collect();
    assert_eq!(groups, [[ROW_GROUP_ROWS; 9].as_slice(), &[MANY as i64 % ROW_GROUP_ROWS]].concat());
}

#[test]
fn the_rows_of_a_partition_have_the_number_of_their_run_and_are_otherwise_those_of_the_run() {
    let directory = tempfile::tempdir().unwrap();
    let alone = recorded(record_probes);
    let mut partition = Partition::create(directory.path()).unwrap();
    for run in 0..3 {
        let mut recorder = Recorder::new(partition.next_run());
        if run != 1 {
            record_probes(&mut recorder);
        }
        let rows = recorder.finish().unwrap();
        assert_eq!(rows.of(Table::Probes), if run == 1 { 0 } else { MANY });
    }
    partition.finish().unwrap();

    let file = File::open(directory.path().join("probes.parquet")).unwrap();
    let reader = ParquetRecordBatchReaderBuilder::try_new(file).unwrap().build().unwrap();
    let batches: Vec<RecordBatch> = reader.map(Result::unwrap).collect();
    let runs = batches.iter().flat_map(|batch| batch["run"].as_primitive::<Int32Type>().iter().flatten());
    assert!(runs.eq([0, 2].into_iter().flat_map(|run| std::iter::repeat_n(run, MANY as usize))));
    for column in ["seq", "sent_ns", "rtt_ns", "owd_up_ns", "owd_down_ns"] {
        let once = || integers(alone.batches(Table::Probes), column);
        assert!(integers(&batches, column).eq(once().chain(once())), "{column}");
    }
    for table in Table::ALL.into_iter().filter(|table| !table.is_optional()) {
        let file = File::open(directory.path().join(format!("{table}.parquet"))).expect("every table has a file");
        let columns = ParquetRecordBatchReaderBuilder::try_new(file).unwrap().schema().clone();
        let own = schema(table);
        assert_eq!(columns.field(0).name(), "run");
        assert_eq!(columns.fields()[1..], own.fields()[..], "{table}");
    }
}

#[test]
fn a_partition_keeps_no_more_than_a_row_group_of_a_table() {
    let directory = tempfile::tempdir().unwrap();
    let mut partition = Partition::create(directory.path()).unwrap();
    for _ in 0..3 {
        let mut recorder = Recorder::new(partition.next_run());
        record_probes(&mut recorder);
        recorder.finish().unwrap();
    }
    partition.finish().unwrap();
    let file = File::open(directory.path().join("probes.parquet")).unwrap();
    let metadata = ParquetRecordBatchReaderBuilder::try_new(file).unwrap().metadata().clone();
    assert!(
        metadata.row_groups().iter().all(|group| group.num_rows() < ROW_GROUP_ROWS + 1024),
        "a batch is not divided"
    );
    assert!(metadata.row_groups().iter().all(|group| group.column(0).statistics().is_some()), "to skip other runs");
    let rows = metadata.row_groups().iter().map(|group| group.num_rows()).sum::<i64>();
    assert_eq!(rows, 3 * MANY as i64);
}

#[test]
fn an_empty_run_still_has_all_tables_but_the_optional_ones() {
    let directory = tempfile::tempdir().unwrap();
    let counts = Recorder::new(ParquetSink::create(directory.path()).unwrap()).finish().unwrap();
    for table in Table::ALL {
        assert_eq!(counts.of(table), 0);
        let has_file = directory.path().join(format!("{table}.parquet")).exists();
        assert_eq!(has_file, !table.is_optional(), "{table}");
        if has_file {
            assert_eq!(read(directory.path(), table).iter().map(RecordBatch::num_rows).sum::<usize>(), 0);
        }
    }
}

#[test]
fn an_optional_table_gets_its_file_with_its_first_rows() {
    let directory = tempfile::tempdir().unwrap();
    let mut recorder = Recorder::new(ParquetSink::create(directory.path()).unwrap());
    let row = HopRow { t_ns: 5, ladder: End::Client, ttl: 2, address: None, rtt_ns: None, kind: None, mpls: None };
    let address = Some(recorder.intern("192.0.2.1"));
    recorder.hop(row);
    recorder.hop(HopRow { address, rtt_ns: Some(7), kind: Some(Answer::Exceeded), mpls: Some(false), ..row });
    let counts = recorder.finish().unwrap();
    assert_eq!(read(directory.path(), Table::Hops).iter().map(RecordBatch::num_rows).sum::<usize>(), 2);
    assert!(!directory.path().join("stages.parquet").exists());
    let written = serde_json::to_value(counts).unwrap();
    assert_eq!((&written["hops"], written.get("stages")), (&2.into(), None));
}

#[test]
fn rows_of_a_table_that_is_not_recorded_are_discarded() {
    for (tables, rows) in [(Tables::from_iter([Table::Probes]), MANY), (Tables::from_iter([Table::Flows]), 0)] {
        let mut recorder = Recorder::new(MemorySink::default()).only(tables);
        assert_eq!(recorder.records(Table::Probes), rows > 0);
        record_probes(&mut recorder);
        assert_eq!(recorder.finish().unwrap().rows(Table::Probes) as u64, rows);
    }
}

#[test]
fn equal_rows_give_identical_files() {
    let files = || {
        let directory = tempfile::tempdir().unwrap();
        let mut recorder = Recorder::new(ParquetSink::create(directory.path()).unwrap());
        record_probes(&mut recorder);
        recorder.finish().unwrap();
        let written = Table::ALL.into_iter().filter(|table| !table.is_optional());
        written.map(|table| fs::read(directory.path().join(format!("{table}.parquet"))).unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(files(), files());
}

#[test]
fn a_nullable_column_is_one_that_may_be_unknown() {
    let nullable: Vec<String> = Table::ALL
        .iter()
        .flat_map(|table| {
            schema(*table).fields().iter().filter(|f| f.is_nullable()).map(|f| f.name().clone()).collect::<Vec<_>>()
        })
        .collect();
    assert_eq!(
        nullable,
        [
            "rtt_ns",
            "owd_up_ns",
            "owd_down_ns",
            "cwnd_bytes",
            "ssthresh_bytes",
            "srtt_ns",
            "min_rtt_ns",
            "rwnd_bytes",
            "pacing_bps",
            "delivery_rate_bps",
            "app_limited",
            "delivered_ce_packets",
            "retransmits",
            "reordering",
            "notsent_bytes",
            "busy_ns",
            "rwnd_limited_ns",
            "sndbuf_limited_ns",
            "state",
            "airtime_ns",
            "transmissions",
            "limit_bytes",
            "inflight_bytes",
            "flow",
            "flow",
            "bytes",
            "finished_ns",
            "idle_ns",
            "loaded_ns",
            "spurious",
            "address",
            "rtt_ns",
            "kind",
            "mpls"
        ]
    );
}

#[test]
fn row_counts_serialise_by_table_name() {
    let directory = tempfile::tempdir().unwrap();
    let mut recorder = Recorder::new(ParquetSink::create(directory.path()).unwrap());
    let ping = recorder.intern("ping");
    recorder.probe(ProbeRow { probe: ping, seq: 1, sent_ns: 0, rtt_ns: None, owd_up_ns: None, owd_down_ns: None });
    let counts = serde_json::to_string(&recorder.finish().unwrap()).unwrap();
    assert_eq!(
        counts,
        r#"{"probes":1,"flows":0,"queues":0,"drops":0,"transfers":0,"sojourns":0,"capacity":0,"estimates":0,"round_trips":0,"retransmissions":0,"one_way":0}"#
    );
}

#[test]
fn a_directory_that_is_not_there_is_named() {
    let error = ParquetSink::create(Path::new("/nonexistent/run")).map(|_| ()).unwrap_err();
    assert!(error.to_string().starts_with("cannot create /nonexistent/run/probes.parquet: "), "{error}");
}

/// Refuses everything, as a full disk does.
struct FullDisk;

impl Sink for FullDisk {
    type Output = ();

    fn write(&mut self, table: Table, _: &Batch<'_>) -> Result<(), RecordsError> {
        let source = parquet::errors::ParquetError::General("no space left".into());
        Err(RecordsError::Write { table, source })
    }

    fn finish(self) -> Result<(), RecordsError> {
        Ok(())
    }
}

#[test]
fn an_error_of_the_sink_is_reported_at_the_end_and_on_request() {
    let mut recorder = Recorder::new(FullDisk);
    assert!(recorder.check().is_ok(), "nothing was written yet");
    record_probes(&mut recorder);
    let error = recorder.check().unwrap_err().to_string();
    assert_eq!(error, "cannot write the table `probes`: Parquet error: no space left");
    assert!(recorder.finish().is_err(), "asking does not forgive");

    let mut recorder = Recorder::new(FullDisk);
    let ping = recorder.intern("ping");
    recorder.probe(ProbeRow { probe: ping, seq: 1, sent_ns: 0, rtt_ns: None, owd_up_ns: None, owd_down_ns: None });
    assert!(recorder.finish().is_err());
}
