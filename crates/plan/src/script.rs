//! A scenario's network as a shell script. The script builds the network with named namespaces, changes its rates, and
//! removes it.

use std::fmt::{self, Display, Formatter, Write};

use bufferscope_scenario::Scenario;

use super::{Kernel, Namespace, Plan, PlanError, module, needed_qdiscs, sysctl};

/// Where `ip netns` keeps the names of namespaces.
const NAMES: &str = "/var/run/netns";

/// Displays as a script for `sh`, to be run by root.
#[derive(Clone, Debug)]
pub struct Script {
    about: Vec<String>,
    plan: Plan,
    /// The two ends of the experiment's first entry of traffic.
    between: Option<[usize; 2]>,
    modules: Vec<String>,
}

impl Script {
    /// The script of a scenario's network; it begins with the lines `about` as comments.
    pub fn new(scenario: &Scenario, about: &[String]) -> Result<Self, PlanError> {
        let plan = Plan::new(scenario, Kernel::USUAL)?;
        if let Some(port) = scenario.first_ring() {
            let reason = "takes a network card, which namespaces have none of: leave it out, or use --engine guest";
            return Err(PlanError::Ring { port, reason: reason.to_owned() });
        }
        let delay = (!plan.delays.is_empty()).then_some("netem");
        let mut modules: Vec<String> = needed_qdiscs(scenario).into_iter().chain(delay).map(module).collect();
        modules.sort();
        modules.dedup();
        let between = scenario.traffic.first().map(|traffic| [traffic.from, traffic.to].map(usize::from));
        Ok(Self { about: about.to_vec(), plan, between, modules })
    }
}

impl Display for Script {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let has_rates = !self.plan.rate_changes.is_empty();
        f.write_str("#!/bin/sh\n")?;
        self.header(f)?;
        f.write_str("set -eu\n\nup() {\n")?;
        self.up(f)?;
        f.write_str("}\n\ndown() {\n")?;
        self.down(f)?;
        f.write_str("}\n")?;
        if has_rates {
            f.write_str("\nrates() {\n")?;
            self.rates(f)?;
            f.write_str("}\n")?;
        }
        let commands = if has_rates { "up | rates | down" } else { "up | down" };
        write!(
            f,
            "\ncase \"${{1:-up}}\" in\n    {commands}) \"${{1:-up}}\" ;;\n    *) echo \"usage: sh $0 [{commands}]\" >&2; exit 2 ;;\n\
             esac\n"
        )
    }
}

impl Script {
    fn header(&self, f: &mut Formatter<'_>) -> fmt::Result {
        // A line break or other control character would end the comment.
        for line in &self.about {
            writeln!(f, "# {}", line.replace(char::is_control, " "))?;
        }
        f.write_str("#\n# By root, with this text in a file:\n#   sh FILE          builds the network\n")?;
        if !self.plan.rate_changes.is_empty() {
            f.write_str("#   sh FILE rates    changes the rates as the experiment does, from then on\n")?;
        }
        f.write_str("#   sh FILE down     removes it\n#\n")?;
        f.write_str("# Each node is a network namespace:\n")?;
        for (namespace, address) in self.plan.namespaces.iter().zip(&self.plan.addresses) {
            writeln!(f, "#   {:<15}  {}", address, namespace.name)?;
        }
        if let Some([from, to]) = self.between {
            let [name, other] = [from, to].map(|node| &self.plan.namespaces[node].name);
            writeln!(f, "# From {name} to {other}: ip netns exec {name} ping {}", self.plan.addresses[to])?;
        }
        let modules = match self.modules.as_slice() {
            [] => String::new(),
            modules => format!(", and a kernel with {}", modules.join(", ")),
        };
        writeln!(f, "#\n# It takes iproute2, ethtool and sysctl{modules}.")
    }

    fn up(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let plan = &self.plan;
        writeln!(f, "    for name in {}; do", self.names())?;
        writeln!(
            f,
            "        [ ! -e \"{NAMES}/$name\" ] || {{ echo \"namespace $name is there already\" >&2; exit 1; }}"
        )?;
        f.write_str("    done\n    # Nothing half built is left behind.\n")?;
        f.write_str("    trap 'exit 1' HUP INT TERM\n    trap down EXIT\n\n")?;
        for namespace in &plan.namespaces {
            writeln!(f, "    ip netns add {}", namespace.name)?;
        }
        let name = |index: usize| plan.namespaces[index].name.clone();
        for cable in &plan.cables {
            writeln!(f, "    ip {}", plan.cable_command(cable, name))?;
        }
        let offloads = if plan.segmentation { "gro off" } else { "tx off sg off tso off gso off gro off" };
        plan.namespaces.iter().try_for_each(|namespace| set_up(f, namespace, offloads))?;
        f.write_str("\n    trap - EXIT\n")
    }

    fn down(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(f, "    for name in {}; do", self.names())?;
        writeln!(f, "        [ ! -e \"{NAMES}/$name\" ] || ip netns delete \"$name\"")?;
        f.write_str("    done\n")
    }

    fn rates(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let mut now_ns = 0;
        for change in &self.plan.rate_changes {
            if change.at_ns > now_ns {
                writeln!(f, "    sleep {}", seconds(change.at_ns - now_ns))?;
                now_ns = change.at_ns;
            }
            for (namespace, tc) in &change.commands {
                writeln!(f, "    tc -n {} {tc}", self.plan.namespaces[*namespace].name)?;
            }
        }
        Ok(())
    }

    fn names(&self) -> String {
        let names: Vec<&str> = self.plan.namespaces.iter().map(|namespace| namespace.name.as_str()).collect();
        names.join(" ")
    }
}

fn set_up(f: &mut Formatter<'_>, namespace: &Namespace, offloads: &str) -> fmt::Result {
    let Namespace { name, sysctls, ip, devices, tc, parameters } = namespace;
    writeln!(f, "\n    # {name}")?;
    for (key, value) in sysctls {
        let optional = if sysctl::is_optional(key, value) { "e" } else { "" };
        writeln!(f, "    ip netns exec {name} sysctl -{optional}qw {key}='{value}'")?;
    }
    for line in ip {
        writeln!(f, "    ip -n {name} {line}")?;
    }
    for device in devices {
        writeln!(f, "    ip netns exec {name} ethtool -K {device} {offloads} >/dev/null")?;
    }
    for (index, line) in tc.iter().enumerate() {
        let left_out = parameters.iter().find(|own| own.command == index).map_or("", |own| &own.arguments);
        writeln!(f, "    tc -n {name} {line}{left_out}")?;
    }
    Ok(())
}

fn seconds(ns: u64) -> String {
    let mut text = String::new();
    write!(text, "{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000).expect("a String takes everything");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}
