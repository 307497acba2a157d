//! A queueing discipline as arguments of `tc qdisc add`.

use std::collections::BTreeSet;

use bufferscope_scenario::{Dualpi2, Kind, Match, Part, Port, Qdisc, Scenario, Setting};

use super::shaper::LEAF_HANDLE;
use super::{InnerQdisc, Parameters, PlanError, units};

/// The queueing disciplines that a scenario's ports need, including the shaper but not the propagation delay.
pub fn needed(scenario: &Scenario) -> BTreeSet<&'static str> {
    let ports = scenario.links.iter().flat_map(|link| [&link.forward, &link.reverse]);
    let rated = ports.filter(|port| port.rate.is_some());
    let names = |port: &Port| {
        let queues = port.queue.all().into_iter().map(|qdisc| qdisc.kind().name);
        queues.chain(port.ring.is_none().then_some("htb")).collect::<Vec<_>>()
    };
    rated.flat_map(names).collect()
}

/// The kernel module that contains a queueing discipline.
pub fn module(name: &str) -> String {
    Kind::named(name).map_or_else(|| format!("sch_{name}"), |kind| kind.module.to_owned())
}

/// Attaches disciplines to a device.
#[derive(Debug)]
pub(super) struct Attaching<'a> {
    device: &'a str,
    /// For error messages.
    port: &'a str,
    /// Arguments of `tc`, one command a line.
    pub(super) lines: Vec<String>,
    /// Parameters that these leave out.
    pub(super) parameters: Vec<Parameters>,
    /// The disciplines, each before those inside it.
    pub(super) attached: Vec<InnerQdisc>,
}

impl<'a> Attaching<'a> {
    pub(super) fn new(device: &'a str, port: &'a str) -> Self {
        Self { device, port, lines: Vec::new(), parameters: Vec::new(), attached: Vec::new() }
    }

    /// Attaches a discipline, and all inner ones, at a parent such as `root` or `parent 1:1`, inside the discipline
    /// `outer`. `table` is what the size table adds to the command.
    pub(super) fn attach(&mut self, qdisc: &Qdisc, outer: usize, parent: &str, table: &str) -> Result<(), PlanError> {
        let Self { device, port, .. } = *self;
        let index = self.attached.len();
        let number = (LEAF_HANDLE >> 16) + index as u32;
        self.attached.push(InnerQdisc { handle: number << 16, parent: outer });
        let kind = qdisc.kind();
        let mut settings = arguments(kind, qdisc.settings(), port)?;
        if let Qdisc::Dualpi2(dualpi2) = qdisc {
            let arguments = settings.split_off(kind.name.len());
            self.parameters.push(Parameters {
                command: self.lines.len(),
                device: device.to_owned(),
                handle: number << 16,
                dualpi2: dualpi2.clone(),
                arguments: if *dualpi2 == Dualpi2::default() { String::new() } else { arguments },
            });
        }
        self.lines.push(format!("qdisc add dev {device} {parent} handle {number:x}:{table} {settings}"));
        let id = |class: u16| if class == 0 { format!("{number:x}:") } else { format!("{number:x}:{class:x}") };
        let mut filters = 0;
        for part in qdisc.parts() {
            match part {
                Part::Class { class, parent, settings } => {
                    let (class, parent, settings) = (id(class), id(parent), arguments(kind, settings, port)?);
                    self.lines.push(format!("class add dev {device} parent {parent} classid {class} {settings}"));
                }
                Part::Inner { class, qdisc } => self.attach(qdisc, index, &format!("parent {}", id(class)), "")?,
                Part::Filter { chosen, class } => {
                    filters += 1;
                    let (parent, class) = (id(0), id(class));
                    self.lines.extend(matches(chosen).into_iter().map(|matches| {
                        format!(
                            "filter add dev {device} parent {parent} protocol ip prio {filters} u32 {matches} flowid {class}"
                        )
                    }));
                }
            }
        }
        Ok(())
    }
}

/// What `u32` must match, in as many filters as it takes. The bytes of the port have another meaning in ICMP, so the
/// protocol must match too.
fn matches(chosen: &Match) -> Vec<String> {
    const ICMP: u8 = 1;
    const TCP: u8 = 6;
    const UDP: u8 = 17;
    let protocol = |number: u8| format!("match ip protocol {number} 0xff");
    let of_port = |port: u16| match port {
        0 => vec![protocol(ICMP)],
        _ => [(TCP, "sport"), (TCP, "dport"), (UDP, "sport"), (UDP, "dport")]
            .map(|(number, end)| format!("{} match ip {end} {port} 0xffff", protocol(number)))
            .to_vec(),
    };
    match chosen {
        Match::Dscp(dscp) => vec![format!("match ip dsfield {:#04x} 0xfc", dscp << 2)],
        Match::Ports(ports) => ports.iter().copied().flat_map(of_port).collect(),
        Match::Traffic { .. } => Vec::new(),
    }
}

/// The name and the parameters of a discipline as `tc qdisc add` takes them, without what it holds, and without what is
/// set alike in `defaults`; `port` is for error messages.
pub fn own_arguments(qdisc: &Qdisc, defaults: Option<&Qdisc>, port: &str) -> Result<String, PlanError> {
    let mut settings = qdisc.settings();
    if let Some(defaults) = defaults.filter(|defaults| defaults.kind().name == qdisc.kind().name) {
        let known = defaults.settings();
        settings.retain(|setting| !known.contains(setting));
    }
    arguments(qdisc.kind(), settings, port)
}

/// The name of a discipline and parameters of it or of its class; `port` is for error messages.
fn arguments(kind: &Kind, settings: Vec<(&'static str, Setting)>, port: &str) -> Result<String, PlanError> {
    let mut arguments = kind.name.to_owned();
    for (name, setting) in settings {
        arguments += " ";
        arguments += name;
        arguments += &match setting {
            Setting::Flag => continue,
            Setting::Words(words) => format!(" {words}"),
            Setting::Number(value) => format!(" {}", within_u32(value, name, kind.module, port)?),
            Setting::DsFilter(filter) => format!(" {filter}"),
            Setting::Probability(value) | Setting::Decimal(value) => format!(" {value}"),
            Setting::Packets(number) => format!(" {number}p"),
            Setting::Integer(value) => format!(" {value}"),
            Setting::Rate(bits_per_second) => format!(" {}", units::rate(bits_per_second)),
            Setting::ExactTime(ns) => format!(" {}", units::time(ns)),
            Setting::Time(ns) if ns % 1000 == 0 => format!(" {}", units::time(ns)),
            Setting::Time(value_ns) => {
                return Err(PlanError::TooFine { location: port.to_owned(), what: name, value_ns, holder: kind.name });
            }
        };
    }
    Ok(arguments)
}

fn within_u32(value: u64, what: &'static str, holder: &'static str, port: &str) -> Result<u64, PlanError> {
    let most = u64::from(u32::MAX);
    if value > most {
        return Err(PlanError::TooLarge { location: port.to_owned(), what, value, holder, most });
    }
    Ok(value)
}
