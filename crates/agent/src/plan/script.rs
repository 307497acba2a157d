//! A plan as a shell script that builds the same network by hand, with named namespaces.

use std::fmt::{self, Display, Formatter, Write};

use super::{Namespace, Plan};

/// Displays as a script for `sh`, to be run by root.
#[derive(Clone, Copy, Debug)]
pub struct Script<'a>(&'a Plan);

impl Plan {
    /// The plan as a shell script.
    pub fn script(&self) -> Script<'_> {
        Script(self)
    }
}

impl Display for Script<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let plan = self.0;
        f.write_str("#!/bin/sh\nset -e\n")?;
        for namespace in &plan.namespaces {
            writeln!(f, "ip netns add {}", namespace.name)?;
        }
        let name = |index: usize| plan.namespaces[index].name.clone();
        for cable in &plan.cables {
            writeln!(f, "ip {}", plan.cable_command(cable, name))?;
        }
        plan.namespaces.iter().try_for_each(|namespace| set_up(f, namespace))?;
        rate_changes(f, plan)
    }
}

fn set_up(f: &mut Formatter<'_>, namespace: &Namespace) -> fmt::Result {
    let Namespace { name, sysctls, ip, offloads_off, tc } = namespace;
    writeln!(f, "\n# {name}")?;
    for (key, value) in sysctls {
        writeln!(f, "ip netns exec {name} sysctl -qw {key}='{value}'")?;
    }
    for line in ip {
        writeln!(f, "ip -n {name} {line}")?;
    }
    for device in offloads_off {
        writeln!(f, "ip netns exec {name} ethtool -K {device} tx off sg off tso off gso off gro off")?;
    }
    for line in tc {
        writeln!(f, "tc -n {name} {line}")?;
    }
    Ok(())
}

/// The rates change from the moment the script is done.
fn rate_changes(f: &mut Formatter<'_>, plan: &Plan) -> fmt::Result {
    if plan.rate_changes.is_empty() {
        return Ok(());
    }
    f.write_str("\n# The rates over time, from now on.\n(\n")?;
    let mut now_ns = 0;
    for change in &plan.rate_changes {
        if change.at_ns > now_ns {
            writeln!(f, "sleep {}", seconds(change.at_ns - now_ns))?;
            now_ns = change.at_ns;
        }
        writeln!(f, "tc -n {} {}", plan.namespaces[change.namespace].name, change.tc)?;
    }
    f.write_str(") &\n")
}

fn seconds(ns: u64) -> String {
    let mut text = String::new();
    write!(text, "{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000).expect("a String takes everything");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}
