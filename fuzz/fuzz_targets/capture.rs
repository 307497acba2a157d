//! Feeds arbitrary files to the reader of captures, through decoding and analysis to records.
//!
//! Whatever comes in, it must return, with counts that add up. Finds more with
//! `cargo +nightly fuzz run capture -- -dict=fuzz/dictionaries/capture.dict`.

#![no_main]

use std::io::Cursor;
use std::ops::ControlFlow;

use bufferscope_capture::inspect;
use bufferscope_capture::session::{Choice, Source};
use bufferscope_records::{MemorySink, Recorder, Table};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let stream = Box::new(Cursor::new(bytes.to_vec()));
    let sources = vec![Source { name: "fuzz".to_owned(), stream }];
    let recorder = Recorder::new(MemorySink::default());
    let Ok(inspected) = inspect(sources, &Choice::default(), recorder, &mut |_| ControlFlow::Continue(())) else { return };
    let session = &inspected.session;
    let counts = &session.counts;
    let decoded = counts.tcp + counts.udp + counts.echoes + counts.others + counts.copies;
    assert_eq!(counts.packets + counts.more_in_frames, decoded + counts.undecoded.iter().sum::<u64>() + counts.without_time);
    let probes: u64 = session.pings.iter().map(|ping| ping.requests - ping.unknown).sum();
    assert_eq!(inspected.output.rows(Table::Probes) as u64, probes);
});
