//! Prints what captures show of TCP, and the time that it took: `cargo run --release -p bufferscope-capture --example
//! inspect FILE...`

use std::fs::File;
use std::ops::ControlFlow;
use std::time::Instant;

use bufferscope_capture::inspect;
use bufferscope_capture::session::{Choice, Source};
use bufferscope_records::{MemorySink, Recorder, Table};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut sources = Vec::new();
    for name in std::env::args().skip(1) {
        sources.push(Source { stream: Box::new(File::open(&name)?), name });
    }
    let started = Instant::now();
    let recorder = Recorder::new(MemorySink::default());
    let found = inspect(sources, &Choice::default(), recorder, &mut |_| ControlFlow::Continue(()))?;
    let seconds = started.elapsed().as_secs_f64();
    println!("{}", serde_json::to_string_pretty(&found.tcp)?);
    let rows = |table| found.output.rows(table);
    println!(
        "samples {}, round trips {}, one-way {}",
        rows(Table::Flows),
        rows(Table::RoundTrips),
        rows(Table::OneWay)
    );
    println!("{seconds:.3} s, {:.0} ns per packet", seconds * 1e9 / found.session.counts.packets.max(1) as f64);
    Ok(())
}
