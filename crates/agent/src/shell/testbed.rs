//! The network of a shell, with everything that runs in it.

use std::ffi::CString;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

use bufferscope_scenario::Scenario;

use super::request::Build;
use crate::built_network::BuiltNetwork;
use crate::error::Error;
use crate::kernel::child_env::ChildEnv;
use crate::kernel::namespace::Namespace;
use crate::kernel::pid_namespace::PidNamespace;
use crate::kernel::privilege::Privilege;
use crate::network::Network;
use crate::rates::Rates;
use crate::relay::Relay;
use crate::session;
use crate::warnings::Warnings;

/// Where glibc and others look up names.
const HOSTS: &str = "/etc/hosts";
/// The list of name servers. None can be reached, and a program that tries would wait for seconds.
const RESOLV_CONF: &str = "/etc/resolv.conf";

/// The network and everything that belongs to it.
#[derive(Debug)]
pub(super) struct Testbed {
    built: Arc<BuiltNetwork>,
    names: Vec<String>,
    /// Where programs run.
    pub(super) processes: PidNamespace,
    relay: Option<Relay>,
    hosts: String,
    /// One sender for each thread that waits for the program's start.
    waiting: Vec<Sender<()>>,
}

impl Testbed {
    /// Builds the network. The process must be single-threaded so far.
    pub(super) fn build(build: &Build) -> Result<Self, Error> {
        let scenario = &build.scenario;
        let kernel_seed = build.seed_kernel.then_some(build.seed);
        let built = if build.traffic {
            BuiltNetwork::build(scenario, build.delay, kernel_seed)?
        } else {
            // A network is not refused because this kernel lacks something that only the scenario's traffic needs.
            BuiltNetwork::build(&Scenario { traffic: Vec::new(), ..scenario.clone() }, build.delay, kernel_seed)?
        };
        let processes = PidNamespace::create().map_err(Error::step("making a PID namespace"))?;
        // The machine's own names remain: programs look up its name, too.
        let machines = std::fs::read_to_string(HOSTS).unwrap_or_default();
        let hosts = built.network.plan.hosts(scenario) + &machines;
        let names = scenario.nodes.iter().map(|node| node.name.clone()).collect();
        Ok(Self { built: Arc::new(built), names, processes, relay: None, hosts, waiting: Vec::new() })
    }

    fn network(&self) -> &Network {
        &self.built.network
    }

    /// The node of that name.
    pub(super) fn host(&self, name: &str) -> Result<usize, Error> {
        let index = self.names.iter().position(|known| known == name);
        index.ok_or_else(|| Error::NoHost { wanted: name.to_owned(), there: self.names.clone() })
    }

    /// All hosts with their addresses, for users to read.
    pub(super) fn addresses(&self) -> String {
        let addresses = self.names.iter().zip(&self.network().plan.addresses);
        addresses.map(|(name, address)| format!("{name} {address}")).collect::<Vec<_>>().join(", ")
    }

    /// The environment of a program on a host.
    pub(super) fn child_env(&self, host: usize) -> Result<ChildEnv, Error> {
        let network = self.namespace(host).hold().map_err(Error::step("holding a namespace"))?;
        Ok(child_env(network, self.names[host].clone(), &self.hosts))
    }

    /// The contents of a program's hosts file.
    pub(super) fn hosts(&self) -> &str {
        &self.hosts
    }

    /// The namespace of a host.
    pub(super) fn namespace(&self, host: usize) -> &Namespace {
        &self.network().namespaces[host]
    }

    /// The privilege with which the network was built.
    pub(super) fn privilege(&self) -> Privilege {
        self.built.capabilities.privilege
    }

    /// Starts the propagation delay, and prepares what is to run when the program [starts](Self::begin): the changes of
    /// rates, and the traffic if it is requested. After this the calling thread cannot start threads, only programs.
    pub(super) fn run_traffic(&mut self, build: &Build) -> Result<(), Error> {
        self.relay = self.built.start_relay()?;
        if build.traffic {
            self.prepare_traffic(build)?;
        } else {
            self.prepare_rates()?;
        }
        self.processes.enter_for_children().map_err(Error::step("entering a PID namespace"))
    }

    /// Called when the program starts.
    pub(super) fn begin(&mut self) {
        self.waiting.clear();
    }

    /// Reports what disturbed the network; without `warns` only what broke it.
    pub(super) fn report(&self, warns: bool) {
        let mut warnings = Warnings::default();
        match self.relay.as_ref().map(Relay::report) {
            Some(Ok(report)) if warns => report.check(&mut warnings),
            Some(Err(error)) => eprintln!("bufferscope: {error}"),
            _ => {}
        }
        for text in warnings.into_texts() {
            eprintln!("bufferscope: {text}");
        }
    }

    fn prepare_traffic(&mut self, build: &Build) -> Result<(), Error> {
        let built = Arc::clone(&self.built);
        // The samples have no reader.
        let sample_interval_ns = build.scenario.duration_ns;
        let scenario = Scenario { sample_interval_ns, flows_interval_ns: None, ..build.scenario.clone() };
        let seed = build.seed;
        let rates = Rates::prepare(self.network(), self.relay.as_ref())?;
        self.prepare("traffic", move || session::run_traffic(&scenario, seed, &built.network, rates))
    }

    fn prepare_rates(&mut self) -> Result<(), Error> {
        if self.network().plan.rate_changes.is_empty() {
            return Ok(());
        }
        let mut rates = Rates::prepare(self.network(), self.relay.as_ref())?;
        let built = Arc::clone(&self.built);
        self.prepare("rates", move || {
            let start = Instant::now();
            for change in &built.network.plan.rate_changes {
                sleep((start + Duration::from_nanos(change.at_ns)).saturating_duration_since(Instant::now()));
                rates.make(change);
            }
            rates.finish().map_err(Error::from)
        })
    }

    /// Starts a thread that waits for the program's start and then runs `body`. The thread reports an error of `body`.
    fn prepare(&mut self, name: &str, body: impl FnOnce() -> Result<(), Error> + Send + 'static) -> Result<(), Error> {
        let (sender, begun) = channel();
        let thread = thread::Builder::new().name(name.into()).spawn(move || {
            // Nothing is sent: the sender is dropped.
            let _ = begun.recv();
            if let Err(error) = body() {
                eprintln!("bufferscope: {error}");
            }
        });
        self.waiting.push(sender);
        thread.map(drop).map_err(Error::step("starting a thread"))
    }
}

/// The environment of a program in that network.
pub(super) fn child_env(network: OwnedFd, name: String, hosts: &str) -> ChildEnv {
    let file =
        |path: &str, content: &str| (CString::new(path).expect("a path has no NUL"), content.as_bytes().to_vec());
    ChildEnv { network, name, files: vec![file(HOSTS, hosts), file(RESOLV_CONF, "")] }
}
