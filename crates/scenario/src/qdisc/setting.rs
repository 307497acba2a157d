//! The arguments of `tc` for a discipline: its parameters, and what is inside it.

use super::{DsFilter, Match, Qdisc};

/// The value of a parameter of `tc`.
#[derive(Clone, Debug, PartialEq)]
pub enum Setting {
    /// A number that the kernel holds in 32 bits.
    Number(u64),
    /// A small number that may be negative.
    Integer(i64),
    /// A time in nanoseconds that the kernel counts in microseconds.
    Time(u64),
    /// A time that the kernel counts in nanoseconds.
    ExactTime(u64),
    /// A rate in bits per second.
    Rate(u64),
    /// A number in (0, 1].
    Probability(f64),
    /// A choice of packets.
    DsFilter(DsFilter),
    /// A number with a fraction.
    Decimal(f64),
    /// A number of packets where `tc` would read a bare number as a time.
    Packets(u32),
    /// No value: the parameter consists of its name alone.
    Flag,
    /// Words as they are.
    Words(String),
}

/// A part of a discipline that holds others. Classes are known by the minor numbers of their identifiers; 0 is the
/// discipline itself.
#[derive(Clone, Debug, PartialEq)]
pub enum Part<'a> {
    /// A class, with its parameters.
    Class {
        /// Its number.
        class: u16,
        /// The number of the class that contains it.
        parent: u16,
        /// Its parameters, in order.
        settings: Vec<(&'static str, Setting)>,
    },
    /// The discipline of a class.
    Inner {
        /// The class.
        class: u16,
        /// Its discipline.
        qdisc: &'a Qdisc,
    },
    /// Packets go to a class.
    Filter {
        /// Which packets.
        chosen: &'a Match,
        /// The class.
        class: u16,
    },
}
