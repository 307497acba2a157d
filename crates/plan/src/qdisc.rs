//! A queueing discipline as arguments of `tc qdisc add`.

use std::collections::BTreeSet;

use bufferscope_scenario::{Kind, Qdisc, Scenario, Setting};

use super::{PlanError, units};

/// The queueing disciplines that a scenario's ports need, including the shaper but not the propagation delay.
pub fn needed(scenario: &Scenario) -> BTreeSet<&'static str> {
    let ports = scenario.links.iter().flat_map(|link| [&link.forward, &link.reverse]);
    let rated = ports.filter(|port| port.rate.is_some());
    rated.flat_map(|port| [Some(port.queue.kind().name), port.ring.is_none().then_some("htb")]).flatten().collect()
}

/// The kernel module that contains a queueing discipline.
pub fn module(name: &str) -> String {
    Kind::named(name).map_or_else(|| format!("sch_{name}"), |kind| kind.module.to_owned())
}

/// The discipline's name and parameters; `port` is for error messages.
pub(super) fn arguments(qdisc: &Qdisc, port: &str) -> Result<String, PlanError> {
    let kind = qdisc.kind();
    let mut arguments = kind.name.to_owned();
    for (name, setting) in qdisc.settings() {
        arguments += " ";
        arguments += name;
        arguments += &match setting {
            Setting::Flag => continue,
            Setting::Number(value) => format!(" {}", within_u32(value, name, kind.module, port)?),
            Setting::Probability(value) | Setting::Decimal(value) => format!(" {value}"),
            Setting::Packets(number) => format!(" {number}p"),
            Setting::Rate(bits_per_second) => format!(" {}", units::rate(bits_per_second)),
            Setting::Time(ns) if ns % 1000 == 0 => format!(" {}", units::time(ns)),
            Setting::Time(value_ns) => {
                return Err(PlanError::TooFine { place: port.to_owned(), what: name, value_ns, holder: kind.name });
            }
        };
    }
    Ok(arguments)
}

fn within_u32(value: u64, what: &'static str, holder: &'static str, port: &str) -> Result<u64, PlanError> {
    let most = u64::from(u32::MAX);
    if value > most {
        return Err(PlanError::TooLarge { place: port.to_owned(), what, value, holder, most });
    }
    Ok(value)
}
