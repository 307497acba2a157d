//! Runs the agent's program and observes it from outside.
#![allow(dead_code)]

use std::fmt::Display;
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use bufferscope_records::frame::{FrameKind, FrameReader, PROTOCOL};
use bufferscope_records::{Table, ipc, packets};
use bufferscope_scenario::{Experiment, Scenario};
use serde_json::{Value, json};

/// The dumbbell of `scripts/agreement`: 10 Mbit/s and 20 ms, with a queue of this many packets, and these entries of
/// traffic.
pub(crate) fn dumbbell(duration: &str, packets: u32, traffic: &str) -> String {
    let file = include_str!("../../../../scripts/agreement/dumbbell.toml");
    let network = file.split("[[traffic]]").next().unwrap();
    let changes = [("30s", duration), ("10ms", "5ms"), ("100p", &format!("{packets}p"))];
    let network = changes.iter().fold(network.to_owned(), |text, (old, new)| text.replace(old, new));
    format!("traffic = [{traffic}]\n{network}")
}

pub(crate) fn scenario(toml: &str) -> Scenario {
    let experiment = Experiment::parse(toml, "test.toml", &[]).unwrap_or_else(|error| panic!("{error}"));
    experiment.points()[0].scenario.clone()
}

/// Copies the agent to a directory where another user can run it.
///
/// A separate process makes the copy. If this process had the copy open for writing, a child that another test starts
/// at the same time would inherit the open file until it calls exec. A program that any process has open for writing
/// can't be started ("text file busy").
pub(crate) fn copy_agent(to: &Path) {
    let agent = env!("CARGO_BIN_EXE_bufferscope-agent");
    assert!(Command::new("cp").arg(agent).arg(to).status().unwrap().success());
}

/// What this kernel can do; `None` if it lets no user create network namespaces, so that a test cannot run.
pub(crate) fn capabilities() -> Option<Value> {
    let output = program().arg("--capabilities").output().unwrap();
    let stdout = String::from_utf8(output.stdout).unwrap();
    if !output.status.success() {
        skip(String::from_utf8_lossy(&output.stderr).trim());
        return None;
    }
    Some(serde_json::from_str(&stdout).unwrap())
}

/// Whether this kernel can limit a port's rate. If not, prints a message.
pub(crate) fn has_shaper() -> bool {
    let has = |capabilities: &Value| capabilities["qdiscs"]["htb"] == true && capabilities["qdiscs"]["pfifo"] == true;
    let found = capabilities();
    if found.as_ref().is_some_and(|found| !has(found)) {
        skip("this kernel has no sch_htb");
    }
    found.is_some_and(|found| has(&found))
}

/// Prints that a test was skipped. It does not use `eprintln!`, whose output the test harness captures.
pub(crate) fn skip(why: impl Display) {
    say("skipped", why);
}

fn say(what: &str, more: impl Display) {
    let thread = std::thread::current();
    let _ = writeln!(std::io::stderr(), "{what}: {}: {more}", thread.name().unwrap_or("a test"));
}

/// Number of disturbed runs after which a test gives up.
const ATTEMPTS: usize = 6;

/// Expectations that have failed, perhaps only because the machine disturbed the run.
#[derive(Debug, Default)]
pub(crate) struct Doubts(Vec<String>);

impl Doubts {
    /// Expects something that depends on timing, and so may fail on a busy machine. (Asserts are for what holds on any
    /// machine.)
    pub(crate) fn unless(&mut self, holds: bool, otherwise: impl Display) {
        if !holds {
            self.0.push(otherwise.to_string());
        }
    }
}

/// Runs a scenario and judges it. If there are doubts and the run's own warnings say that the machine disturbed it, the
/// run is repeated. A run without warnings must meet all expectations. If every attempt is disturbed, the test fails
/// with that message.
pub(crate) fn judge(scenario: &Scenario, judge: impl Fn(&Report, &mut Doubts)) {
    let mut last = String::new();
    for attempt in 1..=ATTEMPTS {
        let report = run(scenario, json!({}));
        let warnings = &report.summary()["warnings"];
        let mut doubts = Doubts::default();
        judge(&report, &mut doubts);
        if doubts.0.is_empty() {
            return;
        }
        assert_ne!(*warnings, json!([]), "{}", doubts.0.join("; "));
        last = format!("{}: the run warns: {warnings}", doubts.0.join("; "));
        say("disturbed", format!("attempt {attempt} of {ATTEMPTS}: {last}"));
    }
    panic!("disturbed by the machine {ATTEMPTS} times; at last {last}");
}

pub(crate) fn program() -> Command {
    Command::new(env!("CARGO_BIN_EXE_bufferscope-agent"))
}

/// Starts a run. The child writes the frames to its standard output.
pub(crate) fn start(scenario: &Scenario, options: Value) -> Child {
    let mut child = program().stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let request = json!({ "protocol": PROTOCOL, "scenario": scenario, "seed": 1, "options": options });
    child.stdin.take().unwrap().write_all(request.to_string().as_bytes()).unwrap();
    child
}

/// Everything that a run reported.
pub(crate) struct Report {
    pub(crate) progress: usize,
    pub(crate) batches: Vec<(Table, RecordBatch)>,
    /// Time, interface and length of each captured packet, and how much of it is stored.
    pub(crate) packets: Vec<(u64, u32, u32, usize)>,
    /// The summary, or the error.
    pub(crate) end: Result<Value, Value>,
}

pub(crate) fn run(scenario: &Scenario, options: Value) -> Report {
    let mut child = start(scenario, options);
    let mut bytes = Vec::new();
    child.stdout.take().unwrap().read_to_end(&mut bytes).unwrap();
    let succeeded = child.wait().unwrap().success();
    let report = read(&bytes);
    assert_eq!(report.end.is_ok(), succeeded, "the exit status agrees with the frames: {:?}", report.end);
    report
}

pub(crate) fn read(bytes: &[u8]) -> Report {
    let (mut progress, mut batches, mut seen, mut end) = (0, Vec::new(), Vec::new(), None);
    let mut frames = FrameReader::default();
    frames.feed(bytes);
    while let Some((kind, payload)) = frames.next_frame().unwrap() {
        assert!(end.is_none(), "something follows the last frame");
        match kind {
            FrameKind::Hello => unreachable!("the reader takes it"),
            FrameKind::Progress => progress += 1,
            FrameKind::Batch => {
                let table = Table::ALL[usize::from(payload[0])];
                batches.push((table, ipc::decode(table, &payload[1..]).unwrap()));
            }
            FrameKind::Packets => seen.extend(packets::read(&payload).map(|packet| {
                let packet = packet.unwrap();
                (packet.t_ns, packet.interface, packet.length, packet.data.len())
            })),
            FrameKind::Summary => end = Some(Ok(serde_json::from_slice(&payload).unwrap())),
            FrameKind::Error => end = Some(Err(serde_json::from_slice(&payload).unwrap())),
        }
    }
    assert!(frames.is_between_frames(), "the last frame is cut off");
    Report { progress, batches, packets: seen, end: end.expect("a run ends with a summary or an error") }
}

impl Report {
    /// The summary of a run that succeeded.
    pub(crate) fn summary(&self) -> &Value {
        self.end.as_ref().unwrap_or_else(|error| panic!("{error}"))
    }

    /// A column of integers.
    pub(crate) fn integers(&self, table: Table, column: &str) -> Vec<Option<i64>> {
        let batches = self.batches.iter().filter(|(of, _)| *of == table);
        batches.flat_map(|(_, batch)| batch[column].as_primitive::<Int64Type>().iter().collect::<Vec<_>>()).collect()
    }

    /// A column of texts.
    pub(crate) fn texts(&self, table: Table, column: &str) -> Vec<String> {
        let batches = self.batches.iter().filter(|(of, _)| *of == table);
        let texts = |batch: &RecordBatch| -> Vec<String> {
            batch[column].as_string::<i32>().iter().map(|text| text.unwrap().to_owned()).collect()
        };
        batches.flat_map(|(_, batch)| texts(batch)).collect()
    }

    /// A column of integers without nulls, in the rows whose `key` is `value`.
    pub(crate) fn of(&self, table: Table, key: &str, value: &str, column: &str) -> Vec<i64> {
        let rows = self.texts(table, key).into_iter().zip(self.integers(table, column));
        rows.filter(|(text, _)| text == value).map(|(_, integer)| integer.unwrap()).collect()
    }
}
