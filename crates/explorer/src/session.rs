//! A run, from a request to its summary.

use std::iter;
use std::ops::ControlFlow;

use bufferscope_records::Recorder;
use bufferscope_scenario::{Experiment, Point, Scenario};
use bufferscope_sim::{SimError, Simulation, footprint};
use serde::Serialize;

use crate::columns::Columns;
use crate::describe::{Opened, Refusal};
use crate::numbers::TrafficNumbers;
use crate::packets::{Flows, Packets, flows};
use crate::recording::{Recording, Records};
use crate::request::Request;
use crate::totals::AllTotals;

/// Memory that a run may need, as [`footprint`] estimates it.
const MOST_MEMORY_BYTES: u64 = 512 << 20;
/// Rows of samples that a run may have.
const MOST_ROWS: u64 = 20_000_000;
/// Flows that a run may have at a time.
const MOST_FLOWS: u64 = 4000;
/// The name of the experiment's file in messages, which is not shown.
const FILE: &str = "experiment";

/// A run in progress.
#[derive(Debug)]
pub struct Session {
    experiment: Experiment,
    point: usize,
    member: Option<u64>,
    simulation: Simulation<Recording>,
    recording: Recording,
    packets: Packets,
    duration_ns: u64,
    /// Changes that are still to come, the next one last.
    changes: Vec<(u64, Vec<String>)>,
    /// Overrides in force besides those of the experiment.
    set: Vec<String>,
}

/// Where a run is after a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// There is more.
    GoesOn,
    /// At the scenario's duration. The run can be finished.
    AtEnd,
}

/// What a run reports of itself.
#[derive(Clone, Debug, Serialize)]
pub struct Summary {
    hops: u64,
    events: u64,
    ports: Vec<PortNumbers>,
    traffic: Vec<TrafficNumbers>,
    warnings: Vec<String>,
    left_out: Vec<String>,
    tables: AllTotals,
}

#[derive(Clone, Debug, Serialize)]
struct PortNumbers {
    name: String,
    arrived: u64,
    sent: u64,
    delivered: u64,
    dropped: u64,
    marked: u64,
}

impl Session {
    /// Opens a request, as JSON.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn open(request: &[u8]) -> Result<(Opened, Self), Refusal> {
        let request: Request = serde_json::from_slice(request)
            .map_err(|error| Refusal::new(format!("the request is not what is expected: {error}")))?;
        Self::of(request)
    }

    /// Opens a request.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn of(request: Request) -> Result<(Opened, Self), Refusal> {
        let mut sets = request.sets;
        sets.extend(request.duration_ns.map(|duration_ns| format!("duration={duration_ns}ns")));
        let files = request.files;
        let read = |name: &str| match files.get(name) {
            Some(content) => Ok(content.as_bytes().to_vec()),
            None => Err("the page does not have this file".to_owned()),
        };
        let of_file = |error| Refusal::of_file(&error, &request.toml);
        let experiment =
            Experiment::from_bytes_and_files(request.toml.as_bytes(), FILE, &sets, &read).map_err(of_file)?;
        let index = request.point;
        let Some(point) = experiment.points().get(index) else {
            let points = experiment.points().len();
            return Err(Refusal::new(format!("there is no point {index}: the experiment has {points}")));
        };
        let number = request.member.unwrap_or(request.seed);
        let member = experiment.member(index, number).map_err(of_file)?;
        let point: Point = member.as_ref().map_or_else(|| point.clone(), |member| member.point.clone());
        let member = member.map(|_| number);
        let scenario = &point.scenario;
        check_size(scenario)?;

        let mut changes: Vec<(u64, Vec<String>)> =
            request.changes.into_iter().map(|change| (change.at_ns.min(scenario.duration_ns), change.sets)).collect();
        changes.sort_by_key(|(at_ns, _)| *at_ns);
        let (mut set, mut later) = (Vec::new(), Vec::with_capacity(changes.len()));
        for (_, sets) in &changes {
            set.extend_from_slice(sets);
            let changed = experiment.changed(index, member, &mut set).map_err(of_file)?;
            check_size(&changed)?;
            later.push(changed);
        }
        changes.reverse();

        let flows = Flows::new(&iter::once(scenario).chain(&later).collect::<Vec<_>>());
        let times = (request.packets_from_ns.unwrap_or(0), request.packets_until_ns.unwrap_or(u64::MAX));
        let opened = Opened::new(&experiment, index, &point, flows.names.clone());
        let packets = Packets::new(scenario, &request.watch, times, flows);
        let recording = Recording::new(scenario);
        let duration_ns = scenario.duration_ns;
        let recorder = Recorder::new(recording.clone());
        let mut simulation = Simulation::new(point.scenario, request.seed, recorder).map_err(of_run)?;
        if !packets.is_empty() {
            simulation = simulation.tapped(Box::new(packets.clone()));
        }
        let session = Self {
            experiment,
            point: index,
            member,
            simulation,
            recording,
            packets,
            duration_ns,
            changes,
            set: Vec::new(),
        };
        Ok((opened, session))
    }

    /// The current time.
    pub fn now_ns(&self) -> u64 {
        self.simulation.now_ns()
    }

    /// Advances the run to `until_ns`, at most to the scenario's duration, and adds what was recorded to the columns.
    ///
    /// # Errors
    /// A change that a running network can't undergo. The run can't be continued then.
    pub fn step(&mut self, until_ns: u64, columns: &mut Columns) -> Result<Step, Refusal> {
        let until_ns = until_ns.clamp(self.now_ns(), self.duration_ns);
        while let Some((at_ns, sets)) = self.changes.pop_if(|(at_ns, _)| *at_ns <= until_ns) {
            self.advance(at_ns)?;
            self.set.extend_from_slice(&sets);
            let changed = self.experiment.changed(self.point, self.member, &mut self.set);
            let scenario = changed.map_err(|error| Refusal::of_file(&error, ""))?;
            self.simulation.change(scenario, sets).map_err(of_run)?;
        }
        self.advance(until_ns)?;
        self.look();
        self.recording.records().drain(columns);
        self.packets.drain(columns);
        Ok(if until_ns == self.duration_ns { Step::AtEnd } else { Step::GoesOn })
    }

    /// Runs to the end, until the last probe is answered, and adds the rest to the columns.
    ///
    /// # Errors
    /// As for [`step`](Self::step).
    pub fn finish(mut self, columns: &mut Columns) -> Result<Summary, Refusal> {
        if self.now_ns() < self.duration_ns {
            self.step(self.duration_ns, &mut Columns::default())?;
        }
        let summary = self.simulation.finish(&mut |_| ControlFlow::Continue(())).map_err(of_run)?;
        let mut records = self.recording.records();
        records.finish();
        records.drain(columns);
        self.packets.drain(columns);
        let (traffic, incomplete) = records.numbers.of_traffic();
        let ports = summary.ports.into_iter().map(|port| PortNumbers {
            name: port.port,
            arrived: port.arrived,
            sent: port.sent,
            delivered: port.delivered,
            dropped: port.dropped,
            marked: port.marked,
        });
        Ok(Summary {
            hops: summary.hops,
            events: summary.events,
            ports: ports.collect(),
            traffic,
            warnings: summary.warnings,
            left_out: records.left_out().into_iter().chain(incomplete).collect(),
            tables: records.totals(),
        })
    }

    fn advance(&mut self, until_ns: u64) -> Result<(), Refusal> {
        self.simulation.advance(until_ns, &mut |_| ControlFlow::Continue(())).map_err(of_run)
    }

    /// Looks at the rows that are in no batch yet.
    fn look(&mut self) {
        for table in Records::TABLES {
            let pending = self.simulation.recorder().pending(table);
            self.recording.records().look(table, &pending);
        }
    }
}

/// Refuses what would take too much of a browser.
fn check_size(scenario: &Scenario) -> Result<(), Refusal> {
    let flows = flows(scenario);
    let needs = footprint(scenario).map_err(of_run)?;
    let reason = if flows > MOST_FLOWS {
        format!("{flows} flows, and a browser takes at most {MOST_FLOWS}")
    } else if needs.memory_bytes > MOST_MEMORY_BYTES {
        let largest = needs.largest.map(|name| format!(", most of it for the traffic `{name}`")).unwrap_or_default();
        let [needed, most] = [needs.memory_bytes, MOST_MEMORY_BYTES].map(|bytes| bytes.div_ceil(1 << 20));
        format!("about {needed} MiB of memory{largest}, and a browser takes at most {most} MiB")
    } else if needs.rows > MOST_ROWS {
        format!("{} samples, and a browser takes at most {MOST_ROWS}", needs.rows)
    } else {
        return Ok(());
    };
    Err(Refusal::new(format!("this experiment is too large for a browser: {reason}. `bufferscope run` can run it.")))
}

fn of_run(error: SimError) -> Refusal {
    Refusal::new(error.to_string())
}
