//! A batch that went through bytes is the same batch.
#![cfg(feature = "ipc")]

use bufferscope_records::*;
use proptest::prelude::*;

fn probes() -> MemorySink {
    let mut recorder = Recorder::new(MemorySink::default());
    let probe = recorder.intern("ping");
    for seq in 0..100 {
        let rtt_ns = (seq % 7 != 0).then_some(20_000_000 + seq);
        recorder.probe(ProbeRow { probe, seq, sent_ns: seq, rtt_ns, owd_up_ns: None, owd_down_ns: rtt_ns });
    }
    recorder.finish().expect("memory takes everything")
}

#[test]
fn a_batch_survives_the_journey() {
    let sink = probes();
    let batch = &sink.batches(Table::Probes)[0];
    let bytes = ipc::encode(Table::Probes, batch).unwrap();
    assert_eq!(&ipc::decode(Table::Probes, &bytes).unwrap(), batch);
}

#[test]
fn any_number_of_batches_is_one_stream() {
    let sink = probes();
    let batch = &sink.batches(Table::Probes)[0];
    let bytes = ipc::encode_all(Table::Probes, &[batch.clone(), batch.clone()]).unwrap();
    assert_eq!(&ipc::decode(Table::Probes, &bytes).unwrap(), batch, "the first of them");
    let one = ipc::encode(Table::Probes, batch).unwrap();
    let none = ipc::encode_all(Table::Probes, &[]).unwrap();
    assert!(none.len() < one.len() && one.len() < bytes.len());
    assert!(ipc::decode(Table::Probes, &none).unwrap_err().to_string().contains("a stream without a batch"));
}

#[test]
fn a_batch_of_another_table_is_refused() {
    let bytes = ipc::encode(Table::Probes, &probes().batches(Table::Probes)[0]).unwrap();
    let error = ipc::decode(Table::Flows, &bytes).unwrap_err();
    assert!(error.to_string().starts_with("a batch of the table `flows` has other columns"), "{error}");
    assert!(error.to_string().contains("probe, seq, sent_ns"), "{error}");
}

proptest! {
    #[test]
    fn bytes_that_are_no_stream_are_refused(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        prop_assert!(ipc::decode(Table::Probes, &bytes).is_err());
    }
}
