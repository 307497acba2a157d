//! The parameters of `dualpi2` in the kernel (`RTM_NEWQDISC` with `TCA_OPTIONS`). An iproute2 older than the discipline
//! can create it, but passes on no parameters.
//!
//! Source: `include/uapi/linux/pkt_sched.h` for the attributes and their units, `net/sched/sch_dualpi2.c` for what the
//! kernel makes of their values.

use std::io;

use bufferscope_scenario::{Dualpi2, StepThreshold};

use crate::bytes::read_u32;
use crate::netlink::{Malformed, Netlink, Refusal, attributes, push_attribute, push_nested};
use crate::qdisc_stats::{self, RTM_NEWQDISC, TCA_KIND, TCMSG_BYTES, question};

const TCA_OPTIONS: u16 = 2;
const NAME: &[u8] = b"dualpi2\0";
const NS_PER_US: u64 = 1000;
const NS_PER_S: u64 = 1_000_000_000;
/// By how many bits the kernel scales weights down (`ALPHA_BETA_SCALING`).
const WEIGHT_SHIFT: u32 = 2;
/// `TC_DUALPI2_ECN_MASK_L4S_ECT` and `TC_DUALPI2_ECN_MASK_ANY_ECT`.
const ECN_MASKS: [u8; 2] = [1, 3];

/// The kernel does not have the parameters.
#[derive(Debug, thiserror::Error)]
pub enum ParametersError {
    /// The kernel refused them.
    #[error("the kernel refused {what}: {source}")]
    Refused {
        /// The parameter that it objects to, or all.
        what: String,
        /// What it said.
        source: Refusal,
    },
    /// They could not be read.
    #[error("reading the parameters: {0}")]
    Unread(#[from] io::Error),
    /// The kernel has another value than it was given.
    #[error("the kernel has {name} = {found} where {name} = {wanted} was set", found = found.map_or("nothing".to_owned(), |found| found.to_string()))]
    Differs {
        /// The parameter.
        name: &'static str,
        /// What it should have.
        wanted: u32,
        /// What it has.
        found: Option<u32>,
    },
}

/// One parameter as an attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Parameter {
    /// Its `TCA_DUALPI2_*`.
    attribute: u16,
    name: &'static str,
    value: Value,
    /// The value that the kernel then reports, which it may have rounded.
    kept: u32,
}

/// The value of an attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Value {
    Byte(u8),
    Word(u32),
}

impl Parameter {
    fn byte(attribute: u16, name: &'static str, value: u8) -> Self {
        Self { attribute, name, value: Value::Byte(value), kept: value.into() }
    }

    fn word(attribute: u16, name: &'static str, value: u32) -> Self {
        Self { attribute, name, value: Value::Word(value), kept: value }
    }

    /// A time that the kernel keeps in 32 bits of nanoseconds.
    fn short_time(attribute: u16, name: &'static str, ns: u64) -> Self {
        let longest_us = u32::MAX / NS_PER_US as u32;
        let us = in_us(ns);
        Self { kept: us.min(longest_us), ..Self::word(attribute, name, us) }
    }

    /// A weight in 256ths of a hertz.
    fn weight(attribute: u16, name: &'static str, weight: u32) -> Self {
        let scaled = ((u64::from(weight) * u64::from(u32::MAX)) >> WEIGHT_SHIFT) / NS_PER_S;
        let kept = ((scaled * NS_PER_S) << WEIGHT_SHIFT) / u64::from(u32::MAX);
        Self { kept: kept as u32, ..Self::word(attribute, name, weight) }
    }

    fn push(self, options: &mut Vec<u8>) {
        match self.value {
            Value::Byte(value) => push_attribute(options, self.attribute, &[value]),
            Value::Word(value) => push_attribute(options, self.attribute, &value.to_ne_bytes()),
        }
    }
}

/// Sets the parameters of the `dualpi2` with this handle on a device in the socket's namespace, and checks that the
/// kernel has them.
pub fn configure(netlink: &mut Netlink, interface: u32, handle: u32, wanted: &Dualpi2) -> Result<(), ParametersError> {
    let parameters = parameters(wanted);
    let (request, options_at) = request(interface, handle, &parameters);
    netlink.change(RTM_NEWQDISC, &request).map_err(|source| {
        let what = source.at.and_then(|at| at_offset(&parameters, at.checked_sub(options_at)?));
        let what = what.map_or("the parameters".to_owned(), |parameter| match parameter.value {
            Value::Byte(value) => format!("{} = {value}", parameter.name),
            Value::Word(value) => format!("{} = {value}", parameter.name),
        });
        ParametersError::Refused { what, source }
    })?;
    let found = qdisc_stats::get(netlink, interface, handle, reported)?;
    compare(&parameters, &found.unwrap_or_default())
}

/// The body of a request that sets parameters, and where in it their attributes begin.
fn request(interface: u32, handle: u32, parameters: &[Parameter]) -> (Vec<u8>, usize) {
    const ATTRIBUTE_HEADER_BYTES: usize = 4;
    let mut options = Vec::new();
    parameters.iter().for_each(|parameter| parameter.push(&mut options));
    let mut request = question(interface, handle, 0).to_vec();
    push_attribute(&mut request, TCA_KIND, NAME);
    let options_at = request.len() + ATTRIBUTE_HEADER_BYTES;
    push_nested(&mut request, TCA_OPTIONS, &options);
    (request, options_at)
}

/// The parameter whose attribute begins at this offset.
fn at_offset(parameters: &[Parameter], offset: usize) -> Option<&Parameter> {
    let mut options = Vec::new();
    parameters.iter().find(|parameter| {
        let at = options.len();
        parameter.push(&mut options);
        at == offset
    })
}

/// The attributes of the options in the message of a discipline, with their values.
fn reported(payload: &[u8]) -> Result<Vec<(u16, u32)>, Malformed> {
    let cut = Malformed("a qdisc's options are cut off");
    let mut found = Vec::new();
    for attribute in attributes(payload.get(TCMSG_BYTES..).ok_or(cut)?) {
        let (TCA_OPTIONS, options) = attribute? else { continue };
        for option in attributes(options) {
            let (kind, value) = option?;
            let byte = || value.first().map(|&byte| byte.into());
            found.push((kind, read_u32(value, 0).or_else(byte).ok_or(cut)?));
        }
    }
    Ok(found)
}

/// Compares parameters with what the kernel reports.
fn compare(parameters: &[Parameter], reported: &[(u16, u32)]) -> Result<(), ParametersError> {
    for &Parameter { attribute, name, kept: wanted, .. } in parameters {
        let found = reported.iter().find(|(kind, _)| *kind == attribute).map(|&(_, value)| value);
        if found != Some(wanted) {
            return Err(ParametersError::Differs { name, wanted, found });
        }
    }
    Ok(())
}

/// The parameters, by the numbers of `TCA_DUALPI2_*`. Without a memory limit, the kernel derives it from `limit`.
fn parameters(dualpi2: &Dualpi2) -> Vec<Parameter> {
    let Dualpi2 { controller, .. } = dualpi2;
    let step_threshold = match dualpi2.step_threshold {
        StepThreshold::Packets(packets) => Parameter::word(7, "step_thresh (packets)", packets),
        StepThreshold::Time(ns) => Parameter::short_time(8, "step_thresh (us)", ns),
    };
    let mut parameters = vec![Parameter::word(1, "limit", dualpi2.limit_packets)];
    parameters.extend(dualpi2.memlimit_bytes.map(|bytes| Parameter::word(2, "memlimit", bytes)));
    parameters.extend([
        Parameter::word(3, "target (us)", in_us(controller.target_ns)),
        Parameter::short_time(4, "tupdate (us)", controller.tupdate_ns),
        Parameter::weight(5, "alpha (256ths)", controller.alpha),
        Parameter::weight(6, "beta (256ths)", controller.beta),
        step_threshold,
        Parameter::word(9, "min_qlen_step", dualpi2.min_qlen_step),
        Parameter::byte(10, "coupling_factor", dualpi2.coupling_factor),
        Parameter::byte(11, "drop_on_overload", dualpi2.drop_on_overload.into()),
        Parameter::byte(12, "drop_enqueue", dualpi2.drop_enqueue.into()),
        Parameter::byte(13, "classic_protection", dualpi2.classic_protection_percent),
        Parameter::byte(14, "ecn_mask", ECN_MASKS[usize::from(dualpi2.any_ect)]),
        Parameter::byte(15, "split_gso", dualpi2.split_gso.into()),
    ]);
    parameters
}

/// Microseconds, in which the kernel takes times. The longest time of an experiment file fits.
fn in_us(ns: u64) -> u32 {
    (ns / NS_PER_US).try_into().unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests;
