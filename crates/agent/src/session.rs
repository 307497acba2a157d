//! One run, from the request to the summary.

use std::io::{self, Write};
use std::ops::ControlFlow;

use bufferscope_endpoint::clock::RunClock;
use bufferscope_programs::scramble;
use bufferscope_records::{Recorder, Table, frame};
use bufferscope_scenario::Scenario;

use crate::built_network::BuiltNetwork;
use crate::capabilities::Capabilities;
use crate::capture::{self, Capture};
use crate::error::Error;
use crate::kernel::priority::{self, Precedence};
use crate::network::Network;
use crate::output::{BatchSender, Output, Progress};
use crate::rates::{self, Rates};
use crate::reactor::{Event, Reactor};
use crate::relay::Relay;
use crate::request::{Options, Request};
use crate::sampler::Sampler;
use crate::summary::Summary;
use crate::traffic::{RunContext, Traffic};
use crate::warnings::Warnings;
use crate::watch::{CpuWatch, Sampling, look_interval_ns, softnet_drops};
use crate::wire_losses::WireLosses;

/// Time from the end of the preparations to time 0 of the run, at least.
const LEAD_NS: u64 = 20_000_000;
/// In a kernel of the run's own, time 0 is up to this much later. The buckets of its timer wheel for timers of up to 16 s
/// begin at multiples of this (64 jiffies with `CONFIG_HZ=250`).
const CLOCK_PHASES_NS: u64 = 256_000_000;

/// Runs a request and writes the records to `out`. Returns the summary and `out`.
pub(crate) fn run<W: Write + Send + 'static>(request: &Request, mut out: W) -> Result<(Summary, W), Error> {
    let Request { scenario, seed, options, .. } = request;
    let built = BuiltNetwork::build(scenario, options.delay, options.seed_kernel.then_some(*seed))?;
    let relay = built.start_relay()?;
    raise_file_limit();
    frame::write_hello(&mut out).map_err(Error::step("writing the records"))?;
    let output = Output::start(out, options.deliver_at_end);
    let rates = Rates::prepare(&built.network, relay.as_ref())?;
    let mut run = Run::prepare(scenario, *seed, *options, &built.network, rates, &output)?;
    if !options.own_machine {
        // If it is allowed, the thread that generates the traffic takes precedence over everything else on the machine.
        // The relay's thread takes precedence over both.
        let _ = priority::set_realtime(0, Precedence::Ordinary);
    }
    run.go().map_err(Error::step("the run"))?;
    let summary = run.finish(&built.capabilities, relay.as_ref())?;
    let out = output.finish().map_err(Error::step("writing the records"))?;
    Ok((summary, out))
}

/// Generates a scenario's traffic and changes its rates in a network that is up. Keeps no records.
pub(crate) fn run_traffic(scenario: &Scenario, seed: u64, network: &Network, rates: Rates) -> Result<(), Error> {
    raise_file_limit();
    let options = Options { progress_interval_ns: 0, ..Options::default() };
    let output = Output::start(io::sink(), false);
    Run::prepare(scenario, seed, options, network, rates, &output)?
        .go()
        .map_err(Error::step("the experiment's traffic"))
}

/// Time from the end of the preparations to time 0. A guest's clock is as old in every run, so all retransmission timers
/// of all runs would expire at the same moments. Drawn from the seed, time 0 falls on any phase of the clock.
fn lead_ns(seed: u64, options: Options) -> u64 {
    LEAD_NS + if options.seed_kernel { scramble(seed) % CLOCK_PHASES_NS } else { 0 }
}

/// Raises the limit of open files as far as allowed, because every connection takes two descriptors.
fn raise_file_limit() {
    use nix::sys::resource::{Resource, getrlimit, setrlimit};
    if let Ok((_, most)) = getrlimit(Resource::RLIMIT_NOFILE) {
        let _ = setrlimit(Resource::RLIMIT_NOFILE, most, most);
    }
}

/// A run under way.
struct Run<'a, W> {
    context: RunContext<'a>,
    options: Options,
    output: &'a Output<W>,
    traffic: Traffic,
    sampler: Sampler,
    wire_losses: WireLosses,
    sampling: Sampling,
    /// Flow sampling, if it has its own interval.
    flow_sampling: Option<Sampling>,
    /// If packets are captured.
    capture: Option<Capture>,
    rates: Rates,
    cpu: CpuWatch,
    softnet_drops: u64,
    lost_outside_queues: u64,
    /// The scenario's duration is over; the run waits only for probes.
    lingering: bool,
}

impl<'a, W: Write + Send + 'static> Run<'a, W> {
    /// Opens all sockets and plans what happens.
    fn prepare(
        scenario: &'a Scenario,
        seed: u64,
        options: Options,
        network: &'a Network,
        rates: Rates,
        output: &'a Output<W>,
    ) -> Result<Self, Error> {
        let failed = || Error::step("preparing the traffic");
        let recorder: Recorder<BatchSender> = Recorder::new(output.sink()).only(scenario.record);
        let reactor = Reactor::new(RunClock::starting_in(lead_ns(seed, options))).map_err(failed())?;
        let server_ports = scenario.server_ports();
        let mut context =
            RunContext { scenario, server_ports, network, reactor, recorder, warnings: Warnings::default() };
        rates::record_first(&mut context);
        let sampler = Sampler::open(&mut context).map_err(failed())?;
        let wire_losses = WireLosses::open(&mut context).map_err(failed())?;
        context.reactor.at(0, Event::Sample);
        let flow_sampling =
            scenario.flows_interval_ns.filter(|_| context.recorder.records(Table::Flows)).map(Sampling::new);
        if flow_sampling.is_some() {
            context.reactor.at(0, Event::SampleFlows);
        }
        context.reactor.at(0, Event::Progress);
        context.reactor.at(look_interval_ns(options.own_machine), Event::CheckCpus);
        for (index, change) in network.plan.rate_changes.iter().enumerate() {
            context.reactor.at(change.at_ns, Event::ChangeRate(index));
        }
        let capture = options.capture.then(|| Capture::open(network, scenario, options.deliver_at_end)).transpose();
        let capture = capture.map_err(Error::step("capturing packets"))?;
        if capture.is_some() {
            context.reactor.at(0, Event::TakePackets);
        }
        let traffic = Traffic::open(seed, &mut context).map_err(failed())?;
        context.reactor.at(scenario.duration_ns, Event::End);
        Ok(Self {
            options,
            output,
            traffic,
            sampler,
            wire_losses,
            capture,
            sampling: Sampling::new(scenario.sample_interval_ns),
            flow_sampling,
            rates,
            cpu: CpuWatch::start().map_err(failed())?,
            softnet_drops: softnet_drops().map_err(failed())?,
            lost_outside_queues: network.lost_outside_queues().map_err(failed())?,
            lingering: false,
            context,
        })
    }

    fn go(&mut self) -> io::Result<()> {
        let mut ready = Vec::new();
        loop {
            while let Some((due_ns, event)) = self.context.reactor.due() {
                if self.handle(due_ns, event)?.is_break() {
                    return Ok(());
                }
            }
            if self.lingering && !self.traffic.is_waiting(&mut self.context)? {
                return Ok(());
            }
            self.context.reactor.wait(&mut ready)?;
            for (token, flags) in ready.drain(..) {
                self.traffic.ready(token, flags, &mut self.context)?;
            }
        }
    }

    fn handle(&mut self, due_ns: u64, event: Event) -> io::Result<ControlFlow<()>> {
        match event {
            Event::Sample => self.sample(due_ns)?,
            Event::SampleFlows => self.sample_flows(due_ns)?,
            Event::ChangeRate(index) => self.rates.make_and_record(index, &mut self.context),
            Event::Begin(index) => self.traffic.begin(index, &mut self.context)?,
            Event::Send(index) => self.traffic.send(index, &mut self.context)?,
            Event::Stop(index) => self.traffic.stop(index, &mut self.context)?,
            Event::TakePackets => self.take_packets(due_ns)?,
            Event::Progress => self.report_progress(due_ns)?,
            Event::CheckCpus => self.check_cpus()?,
            Event::End => {
                self.lingering = true;
                self.traffic.end(&mut self.context)?;
            }
            Event::GiveUp => {
                self.traffic.give_up(&mut self.context)?;
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Samples the queues, recorded or not, because the run monitors itself by them; and the flows, unless their samples
    /// have an interval of their own. The last sample is taken at the end of the scenario.
    fn sample(&mut self, due_ns: u64) -> io::Result<()> {
        let now_ns = self.context.now_ns();
        self.sampler.sample(due_ns, &mut self.context)?;
        self.wire_losses.sample(&mut self.context)?;
        if self.flow_sampling.is_none() {
            self.traffic.sample(&mut self.context)?;
        }
        let next_ns = self.sampling.taken(due_ns, now_ns);
        self.plan_sample(next_ns, Event::Sample);
        Ok(())
    }

    /// Samples the flows at an interval of their own.
    fn sample_flows(&mut self, due_ns: u64) -> io::Result<()> {
        let now_ns = self.context.now_ns();
        self.traffic.sample(&mut self.context)?;
        if let Some(sampling) = &mut self.flow_sampling {
            let next_ns = sampling.taken(due_ns, now_ns);
            self.plan_sample(next_ns, Event::SampleFlows);
        }
        Ok(())
    }

    fn plan_sample(&mut self, next_ns: u64, event: Event) {
        if next_ns <= self.context.scenario.duration_ns {
            self.context.reactor.at(next_ns, event);
        }
    }

    fn take_packets(&mut self, due_ns: u64) -> io::Result<()> {
        if let Some(capture) = &mut self.capture {
            capture.take(self.context.reactor.clock, self.output)?;
            // The run may still wait for probes when its duration is over.
            self.context.reactor.at(due_ns + capture::INTERVAL_NS, Event::TakePackets);
        }
        Ok(())
    }

    fn report_progress(&mut self, due_ns: u64) -> io::Result<()> {
        let interval_ns = self.options.progress_interval_ns;
        if interval_ns == 0 {
            return Ok(());
        }
        let duration_ns = self.context.scenario.duration_ns;
        if !self.output.progress(Progress { now_ns: self.context.now_ns().min(duration_ns), duration_ns }) {
            return Err(io::Error::other("the receiver of the records is gone"));
        }
        self.context.reactor.at(due_ns + interval_ns, Event::Progress);
        Ok(())
    }

    fn check_cpus(&mut self) -> io::Result<()> {
        let now_ns = self.context.now_ns();
        self.cpu.look(now_ns)?;
        let next_ns = now_ns + look_interval_ns(self.options.own_machine);
        if next_ns <= self.context.scenario.duration_ns {
            self.context.reactor.at(next_ns, Event::CheckCpus);
        }
        Ok(())
    }

    fn finish(self, capabilities: &Capabilities, relay: Option<&Relay>) -> Result<Summary, Error> {
        let failed = || Error::step("concluding the run");
        let RunContext { network, reactor, recorder, mut warnings, .. } = self.context;
        let ended_ns = reactor.clock.now_ns();
        let capture = self.capture.map(|capture| capture.finish(reactor.clock, self.output, &mut warnings));
        let capture = capture.transpose().map_err(failed())?;
        self.rates.finish()?;
        recorder.finish()?;
        self.sampling.check("samples", self.options.own_machine, &mut warnings);
        if let Some(sampling) = &self.flow_sampling {
            sampling.check("samples of flows", self.options.own_machine, &mut warnings);
        }
        self.sampler.conclude(&mut warnings);
        let cpu = self.cpu.report(&mut warnings);
        let relay = relay.map(Relay::report).transpose().map_err(failed())?;
        let lost = network.lost_outside_queues().map_err(failed())?.saturating_sub(self.lost_outside_queues)
            + relay.as_ref().map_or(0, |relay| relay.lost);
        if lost > 0 {
            warnings.add(format!("{lost} packets were lost outside the queues"));
        }
        let overrun = softnet_drops().map_err(failed())?.saturating_sub(self.softnet_drops);
        if overrun > 0 {
            warnings.add(format!("this machine's CPUs dropped {overrun} packets that they could not keep up with"));
        }
        if let Some(relay) = &relay {
            relay.check(&mut warnings);
        }
        Ok(Summary {
            kernel: capabilities.kernel.clone(),
            privilege: capabilities.privilege,
            delay_by: match (network.plan.delays.is_empty(), &relay) {
                (true, _) => None,
                (false, None) => Some("netem"),
                (false, Some(_)) => Some("relay"),
            },
            ended_ns,
            sampling: self.sampling,
            cpu,
            relay,
            drops_from: "counters",
            not_measured: vec![Table::Sojourns.name()],
            capture,
            warnings: warnings.into_texts(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_with_a_kernel_of_its_own_begins_on_any_phase_of_the_clock() {
        let own = Options { seed_kernel: true, ..Options::default() };
        let sixteenths: std::collections::BTreeSet<u64> =
            (1..=100).map(|seed| (lead_ns(seed, own) - LEAD_NS) / (CLOCK_PHASES_NS / 16)).collect();
        assert!(sixteenths.into_iter().eq(0..16));
        assert_eq!(lead_ns(1, own), lead_ns(1, own));
        assert_eq!(lead_ns(1, Options::default()), LEAD_NS);
    }
}
