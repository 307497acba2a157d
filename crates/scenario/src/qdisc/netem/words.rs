//! The parameters of `netem` as `tc` takes them.

use super::super::Setting;
use super::{Distribution, Loss, Netem, SlotDelay};

impl Netem {
    /// The parameters as `tc` takes them, in microseconds.
    pub fn arguments(&self) -> String {
        let arguments = self.words().into_iter().map(|(name, setting)| match setting {
            Setting::Words(words) => format!("{name} {words}"),
            Setting::Number(number) => format!("{name} {number}"),
            Setting::Time(ns) => format!("{name} {}us", ns / 1000),
            _ => name.to_owned(),
        });
        arguments.collect::<Vec<_>>().join(" ")
    }

    /// Its times in nanoseconds, by name.
    pub fn times_ns(&self) -> Vec<(&'static str, u64)> {
        let mut times = vec![("delay", self.delay_ns), ("jitter", self.jitter_ns)];
        times.extend(self.slot.as_ref().into_iter().flat_map(|slot| match slot.delay {
            SlotDelay::Between([min, max]) => [("slot.min_delay", min), ("slot.max_delay", max)],
            SlotDelay::Distributed(_, [mean, deviation]) => [("slot.delay", mean), ("slot.jitter", deviation)],
        }));
        times
    }

    /// The parameters in order.
    pub(super) fn words(&self) -> Vec<(&'static str, Setting)> {
        let us = |ns: u64| format!("{}us", ns / 1000);
        let percent = |parts: &[f64]| {
            let parts: Vec<String> = parts.iter().map(|part| format!("{}", part * 100.0)).collect();
            parts.join(" ")
        };
        let mut settings = vec![("limit", Setting::Number(self.limit_packets.into()))];
        if self.jitter_ns > 0 {
            let words = format!("{} {} {}", us(self.delay_ns), us(self.jitter_ns), percent(&[self.correlation]));
            settings.push(("delay", Setting::Words(words)));
        } else if self.delay_ns > 0 {
            settings.push(("delay", Setting::Time(self.delay_ns)));
        }
        let distribution = self.distribution.table();
        settings.extend(distribution.map(|name| ("distribution", Setting::Words(name.to_owned()))));
        let loss = self.loss.map(|loss| match loss {
            Loss::Random(parts) => format!("random {}", percent(&parts)),
            Loss::State(parts) => format!("state {}", percent(&parts)),
            Loss::Gemodel(parts) => format!("gemodel {}", percent(&parts)),
        });
        settings.extend(loss.map(|loss| ("loss", Setting::Words(loss))));
        settings.extend(self.ecn.then_some(("ecn", Setting::Flag)));
        settings.extend(self.duplicate.map(|parts| ("duplicate", Setting::Words(percent(&parts)))));
        settings.extend(self.corrupt.map(|parts| ("corrupt", Setting::Words(percent(&parts)))));
        if let Some(reorder) = &self.reorder {
            settings.push(("reorder", Setting::Words(percent(&[reorder.probability, reorder.correlation]))));
            settings.push(("gap", Setting::Number(reorder.gap.into())));
        }
        if let Some(rate) = &self.rate {
            let cells = format!("{} {} {}", rate.packet_overhead_bytes, rate.cell_bytes, rate.cell_overhead_bytes);
            settings.push(("rate", Setting::Words(format!("{}bit {cells}", rate.rate_bps))));
        }
        if let Some(slot) = &self.slot {
            let mut words = match slot.delay {
                SlotDelay::Between([min, max]) => format!("{} {}", us(min), us(max)),
                SlotDelay::Distributed(distribution, [mean, deviation]) => {
                    let table = distribution.table().unwrap_or("normal");
                    format!("distribution {table} {} {}", us(mean), us(deviation))
                }
            };
            for (name, most) in [("packets", slot.packets), ("bytes", slot.bytes)] {
                words.extend(most.map(|most| format!(" {name} {most}")));
            }
            settings.push(("slot", Setting::Words(words)));
        }
        settings
    }
}

impl Distribution {
    /// The name of its table in iproute2.
    fn table(self) -> Option<&'static str> {
        match self {
            Self::Uniform => None,
            Self::Normal => Some("normal"),
            Self::Pareto => Some("pareto"),
            Self::ParetoNormal => Some("paretonormal"),
        }
    }
}
