//! `tcp`: files sent one after the other, or the data that an application writes as long as it runs.

use std::collections::BTreeMap;

use bufferscope_scenario::TcpTraffic;

use crate::agenda::{Agenda, Task};
use crate::random::{Random, Uniform};
use crate::sockets::{Opening, Role, Sockets, Transfer};
use crate::starts::Starts;
use crate::streams::{Run, Stream};
use crate::writer::Writer;

/// The senders of an entry of traffic.
#[derive(Debug)]
pub(crate) struct Tcp {
    parameters: TcpTraffic,
    random: Random,
    stop_ns: u64,
    opened: u32,
    /// By the number of its connection.
    flows: BTreeMap<u32, Flow>,
}

/// A flow with a connection.
#[derive(Debug)]
struct Flow {
    started_ns: u64,
    /// The file has arrived.
    arrived: bool,
    /// Number of transfers that follow this one.
    more: u32,
    /// Its application, if the application does not write everything at once.
    writer: Option<Writer>,
}

impl Stream for Tcp {
    type Parameters = TcpTraffic;

    fn new<U: Uniform>(parameters: &TcpTraffic, random: Random, starts: &mut Starts<U>, agenda: &mut Agenda) -> Self {
        for flow in 0..u64::from(parameters.flows) {
            if let Some(at_ns) = starts.after(flow.saturating_mul(parameters.stagger_ns)) {
                agenda.plan(at_ns, Task::Begin);
            }
        }
        Self { parameters: parameters.clone(), random, stop_ns: starts.stop_ns, opened: 0, flows: BTreeMap::new() }
    }

    /// The next flow begins, or the application of a connection continues.
    fn on_task<U: Uniform, S: Sockets>(&mut self, task: Task, run: &mut Run<'_, U, S>) -> Result<(), S::Error> {
        match task {
            Task::Begin => self.open(run.now_ns, self.parameters.transfers - 1, run.agenda, run.sockets),
            Task::Step(number) => self.write(number, run.agenda, run.sockets),
        }
    }

    fn on_arrived<U: Uniform, S: Sockets>(&mut self, number: u32, run: &mut Run<'_, U, S>) -> Result<(), S::Error> {
        let Some((flow, bytes)) = self.flows.get_mut(&number).zip(self.parameters.bytes) else { return Ok(()) };
        flow.arrived = true;
        let (started_ns, finished_ns) = (flow.started_ns, Some(run.now_ns));
        run.sockets.record(Transfer { connection: number, started_ns, finished_ns, bytes })
    }

    /// The receiver has closed, too. If any transfers are left, the flow continues over another connection.
    fn on_closed<U: Uniform, S: Sockets>(&mut self, number: u32, run: &mut Run<'_, U, S>) -> Result<(), S::Error> {
        match self.flows.get(&number) {
            Some(&Flow { arrived: true, more, .. }) => {
                self.flows.remove(&number);
                let goes_on = more > 0 && run.now_ns < self.stop_ns;
                if goes_on { self.open(run.now_ns, more - 1, run.agenda, run.sockets) } else { Ok(()) }
            }
            _ => Ok(()),
        }
    }

    /// Endless transfers end now; a file is sent to its end.
    fn on_stop<S: Sockets>(&mut self, _: &mut Agenda, sockets: &mut S) -> Result<(), S::Error> {
        if self.parameters.bytes.is_some() {
            return Ok(());
        }
        for &number in std::mem::take(&mut self.flows).keys() {
            sockets.hold(number)?;
            sockets.close(number)?;
        }
        Ok(())
    }

    fn bring_stop_forward(&mut self, stop_ns: u64) {
        self.stop_ns = stop_ns;
    }

    /// Further flows begin, or the newest ones end. Only for endless flows.
    fn set_flows<U: Uniform, S: Sockets>(&mut self, flows: u32, run: &mut Run<'_, U, S>) -> Result<(), S::Error> {
        let before = std::mem::replace(&mut self.parameters.flows, flows);
        for at_ns in (before..flows).filter_map(|_| run.starts.soon(run.now_ns)) {
            run.agenda.plan(at_ns, Task::Begin);
        }
        for _ in flows..before {
            if run.agenda.forget_last(Task::Begin) {
                continue;
            }
            if let Some((number, _)) = self.flows.pop_last() {
                run.sockets.hold(number)?;
                run.sockets.close(number)?;
            }
        }
        Ok(())
    }

    fn unfinished(&mut self) -> Vec<Transfer> {
        let Some(bytes) = self.parameters.bytes else { return Vec::new() };
        let flows = std::mem::take(&mut self.flows).into_iter().filter(|(_, flow)| !flow.arrived);
        flows
            .map(|(connection, flow)| Transfer { connection, started_ns: flow.started_ns, finished_ns: None, bytes })
            .collect()
    }
}

impl Tcp {
    /// The application of a connection continues.
    fn write<S: Sockets>(&mut self, number: u32, agenda: &mut Agenda, sockets: &mut S) -> Result<(), S::Error> {
        let Some(writer) = self.flows.get_mut(&number).and_then(|flow| flow.writer.as_mut()) else { return Ok(()) };
        let step = writer.step();
        if step.hold {
            sockets.hold(number)?;
        }
        if step.write > 0 {
            sockets.write(number, step.write)?;
        }
        match step.next_ns {
            Some(next_ns) => agenda.plan(next_ns, Task::Step(number)),
            None => sockets.close(number)?,
        }
        Ok(())
    }

    fn open<S: Sockets>(
        &mut self,
        now_ns: u64,
        more: u32,
        agenda: &mut Agenda,
        sockets: &mut S,
    ) -> Result<(), S::Error> {
        self.opened += 1;
        let (number, bytes) = (self.opened, self.parameters.bytes);
        sockets.open(&Opening { number, data_from: Role::Client, expects: bytes })?;
        let writer = Writer::new(&self.parameters, now_ns, self.random.split(number));
        let writes_at_once = writer.is_none();
        self.flows.insert(number, Flow { started_ns: now_ns, arrived: false, more, writer });
        if !writes_at_once {
            return self.write(number, agenda, sockets);
        }
        sockets.write(number, bytes.unwrap_or(u64::MAX))?;
        if bytes.is_some() { sockets.close(number) } else { Ok(()) }
    }
}
