//! How fast the simulator is, and how much memory it takes: `cargo run --release -p bufferscope-bench`.
//!
//! The scenario: 1 Gbit/s to a router and 100 Mbit/s from there, 20 ms of base RTT, long CUBIC flows or UDP flows of together
//! 105 Mbit/s, 60 s; every record is streamed to Parquet files in a temporary directory. One line of JSON:
//! - `hops`: packets fully sent on one link, in either direction;
//! - `cpu_s`: CPU time of this thread (Linux' `/proc/thread-self/schedstat`), writing the records included;
//! - `hops_per_cpu_s`: their quotient, or null where the run was too short for the kernel to count any CPU time;
//! - `peak_growth_kib`: by how much the largest resident set exceeds what the process took before the run.
//!
//! Arguments: `[QDISC] [FLOWS] [SECONDS] [tcp|udp] [PATH=VALUE]...`, by default `pfifo 1 60 tcp`. The last are overrides of
//! the experiment, such as `sample.flows=1s`.

use std::error::Error;
use std::ops::ControlFlow;
use std::path::Path;
use std::{env, fs, process};

use bufferscope_records::{ParquetSink, Recorder};
use bufferscope_scenario::{Experiment, ExperimentError, Scenario};

/// Of all UDP flows together, in payload.
const UDP_BITS_PER_SECOND: u32 = 105_000_000;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = env::args().skip(1).peekable();
    let qdisc = arguments.next().unwrap_or_else(|| "pfifo".to_owned());
    let flows = arguments.next().map_or(Ok(1), |flows| flows.parse())?;
    let seconds = arguments.next().map_or(Ok(60), |seconds| seconds.parse())?;
    let traffic = match arguments.next_if(|argument| !argument.contains('=')).as_deref() {
        None | Some("tcp") => "kind = \"tcp\"\ncongestion = \"cubic\"".to_owned(),
        Some("udp") => format!("kind = \"udp\"\nrate = \"{}bit\"", UDP_BITS_PER_SECOND / flows.max(1)),
        Some(other) => return Err(format!("{other}: neither tcp nor udp").into()),
    };
    measure(&qdisc, flows, seconds, &traffic, &arguments.collect::<Vec<_>>())
}

fn measure(qdisc: &str, flows: u32, seconds: u32, traffic: &str, overrides: &[String]) -> Result<(), Box<dyn Error>> {
    let experiment = experiment(qdisc, flows, seconds, traffic, overrides)?;
    let scenario = &experiment.points()[0].scenario;
    let directory = env::temp_dir().join(format!("bufferscope-bench-{}", process::id()));
    fs::create_dir(&directory)?;
    let measured = simulate(scenario, &directory);
    fs::remove_dir_all(&directory)?;
    let Measured { hops, events, cpu_s, peak_growth_kib } = measured?;
    let rate = if cpu_s > 0.0 { format!("{:.0}", hops as f64 / cpu_s) } else { "null".to_owned() };
    println!(
        r#"{{"qdisc": "{qdisc}", "flows": {flows}, "seconds": {seconds}, "hops": {hops}, "events": {events}, "cpu_s": {cpu_s:.3}, "hops_per_cpu_s": {rate}, "peak_growth_kib": {peak_growth_kib}}}"#
    );
    Ok(())
}

/// One run.
struct Measured {
    hops: u64,
    events: u64,
    cpu_s: f64,
    peak_growth_kib: u64,
}

fn simulate(scenario: &Scenario, directory: &Path) -> Result<Measured, Box<dyn Error>> {
    let baseline_kib = reset_peak()?;
    let start_ns = cpu_ns()?;
    let recorder = Recorder::new(ParquetSink::create(directory)?);
    let summary = bufferscope_sim::run(scenario, 1, recorder, &mut |_| ControlFlow::Continue(()))?;
    let cpu_s = (cpu_ns()? - start_ns) as f64 / 1e9;
    let peak_growth_kib = status_kib("VmHWM")?.saturating_sub(baseline_kib);
    Ok(Measured { hops: summary.hops, events: summary.events, cpu_s, peak_growth_kib })
}

/// The dumbbell of `scripts/agreement` with other links and flows.
fn experiment(
    qdisc: &str,
    flows: u32,
    seconds: u32,
    traffic: &str,
    overrides: &[String],
) -> Result<Experiment, ExperimentError> {
    let dumbbell = include_str!("../../../scripts/agreement/dumbbell.toml");
    let network = dumbbell.split("[[traffic]]").next().unwrap_or_default();
    let flows = format!("name = \"bulk\"\nfrom = \"h1\"\nto = \"h2\"\nflows = {flows}\n{traffic}");
    // `cake` limits memory, not packets; in bytes it would have another meaning.
    let limit = if qdisc == "cake" { "" } else { r#", limit = "1000p""# };
    let mut changes = vec![
        format!("duration={seconds}s"),
        "link.access.rate=1gbit".to_owned(),
        "link.access.delay=5ms".to_owned(),
        "link.bottleneck.rate=100mbit".to_owned(),
        "link.bottleneck.delay=5ms".to_owned(),
        format!("link.bottleneck.queue={{ qdisc = \"{qdisc}\"{limit} }}"),
    ];
    changes.extend_from_slice(overrides);
    Experiment::parse(&format!("{network}[[traffic]]\n{flows}"), "bench.toml", &changes)
}

/// CPU time of this thread so far.
fn cpu_ns() -> Result<u64, Box<dyn Error>> {
    let stat = fs::read_to_string("/proc/thread-self/schedstat")?;
    Ok(stat.split_whitespace().next().ok_or("schedstat is empty")?.parse()?)
}

/// Sets the largest resident set back to the present one, and returns that.
fn reset_peak() -> Result<u64, Box<dyn Error>> {
    fs::write("/proc/self/clear_refs", "5")?;
    status_kib("VmHWM")
}

/// One of the memory lines of `/proc/self/status`.
fn status_kib(key: &str) -> Result<u64, Box<dyn Error>> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find(|line| line.starts_with(key)).ok_or("no such line in /proc/self/status")?;
    Ok(line.split_whitespace().nth(1).ok_or("no number in the line")?.parse()?)
}
