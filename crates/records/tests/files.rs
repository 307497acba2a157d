//! A file has the rows that were recorded, whatever they are.

use std::fs::{self, File};
use std::path::Path;
use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use bufferscope_records::*;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

/// The batches of a table, as large as a recorder makes them.
fn read(directory: &Path, table: Table) -> Vec<RecordBatch> {
    let file = File::open(directory.join(format!("{table}.parquet"))).expect("the table has rows");
    let builder = ParquetRecordBatchReaderBuilder::try_new(file).expect("a Parquet file").with_batch_size(1024);
    builder.build().expect("readable").map(|batch| batch.expect("a whole batch")).collect()
}

/// Numbers near one another, as counters are, and such as have nothing in common.
fn number() -> impl Strategy<Value = u64> {
    prop_oneof![0..3_u64, 1_000_000..1_001_000_u64, Just(i64::MAX as u64), any::<u64>().prop_map(|any| any >> 1)]
}

/// The same number of equal rows in a row as real tables have: one, a few, or very many.
fn repeated<T: Clone + std::fmt::Debug>(row: impl Strategy<Value = T>) -> impl Strategy<Value = Vec<T>> {
    let runs = vec((row, prop_oneof![8 => Just(1), 1 => 2..100_usize, 1 => 1_000..4_000_usize]), 1..200);
    runs.prop_map(|runs| runs.into_iter().flat_map(|(row, length)| std::iter::repeat_n(row, length)).collect())
}

type Hop = (u64, End, Option<u32>, Option<u64>, Option<Answer>, Option<bool>);

fn hop() -> impl Strategy<Value = Hop> {
    let (rtt_ns, mpls) = (proptest::option::of(number()), any::<Option<bool>>());
    let kind = proptest::option::of(select(Answer::ALL));
    (number(), select(End::ALL), proptest::option::of(0..3_000_u32), rtt_ns, kind, mpls)
}

fn record_hops<S: Sink>(rows: &[Hop], sink: S) -> S::Output {
    let mut recorder = Recorder::new(sink);
    let address = recorder.intern("192.0.2.1");
    for &(t_ns, ladder, number, rtt_ns, kind, mpls) in rows {
        let address = number.map(|number| address.numbered(number));
        recorder.hop(HopRow { t_ns, ladder, ttl: t_ns % 7, address, rtt_ns, kind, mpls });
    }
    recorder.finish().expect("there is room")
}

fn record_drops<S: Sink>(rows: &[(u64, Option<u64>, usize)], sink: S) -> S::Output {
    let mut recorder = Recorder::new(sink);
    let ports = ["r1>h2", "h2>r1"].map(|port| recorder.intern(port));
    for &(t_ns, bytes, number) in rows {
        let reason = DropReason::new(["overlimit", "overlimit2", "red_early", ""][number]);
        let (port, layer, observed) = (ports[number % 2], Layer::ALL[number], Observed::ALL[number % 2]);
        recorder.dropped(DropRow { t_ns, port, layer, flow: None, bytes, reason, observed });
    }
    recorder.finish().expect("there is room")
}

/// Checks that a file has what the memory has, and that the batches from memory make the same file.
fn check(table: Table, memory: &MemorySink, directory: &Path) {
    assert!(read(directory, table) == memory.batches(table), "other rows");
    let again = tempfile::tempdir().expect("a directory");
    let mut sink = ParquetSink::create(again.path()).expect("files");
    memory.batches(table).iter().try_for_each(|batch| sink.write(table, &batch.into())).expect("there is room");
    sink.finish().expect("there is room");
    let bytes = |directory: &Path| fs::read(directory.join(format!("{table}.parquet"))).expect("a file");
    assert!(bytes(directory) == bytes(again.path()), "another file");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn a_file_has_the_rows_that_were_recorded(hops in repeated(hop())) {
        let directory = tempfile::tempdir().expect("a directory");
        record_hops(&hops, ParquetSink::create(directory.path()).expect("files"));
        check(Table::Hops, &record_hops(&hops, MemorySink::default()), directory.path());
    }

    #[test]
    fn so_it_has_where_reasons_are_texts_of_the_program(
        drops in repeated((number(), proptest::option::of(number()), 0..4_usize)),
    ) {
        let directory = tempfile::tempdir().expect("a directory");
        record_drops(&drops, ParquetSink::create(directory.path()).expect("files"));
        check(Table::Drops, &record_drops(&drops, MemorySink::default()), directory.path());
    }
}

/// Another process or a program in another language may send a batch of any size.
#[test]
fn a_batch_of_any_size_becomes_bounded_row_groups() {
    const ROWS: i64 = 50_000;
    let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(0..ROWS));
    let texts =
        |text| -> ArrayRef { Arc::new(StringArray::from_iter_values(std::iter::repeat_n(text, ROWS as usize))) };
    let columns = vec![numbers.clone(), texts("r1>h2"), texts("qdisc"), numbers.clone(), numbers];
    let batch = RecordBatch::try_new(schema(Table::Sojourns), columns).expect("the columns of the table");

    let directory = tempfile::tempdir().expect("a directory");
    let mut sink = ParquetSink::create(directory.path()).expect("files");
    sink.write(Table::Sojourns, &(&batch).into()).expect("there is room");
    assert_eq!(sink.finish().expect("there is room").of(Table::Sojourns), ROWS as u64);
    let file = File::open(directory.path().join("sojourns.parquet")).expect("a file");
    let metadata = ParquetRecordBatchReaderBuilder::try_new(file).expect("a Parquet file").metadata().clone();
    let rows: Vec<i64> = metadata.row_groups().iter().map(|group| group.num_rows()).collect();
    assert_eq!(rows, [16_384, 16_384, 16_384, 848]);
    let parts = (0..).step_by(1024).map(|from| batch.slice(from, 1024.min(ROWS as usize - from)));
    for (written, expected) in read(directory.path(), Table::Sojourns).iter().zip(parts) {
        assert_eq!(*written, expected);
    }
}
