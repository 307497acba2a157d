//! How busy the machine is: `/proc/stat`.

use std::io;

/// Ticks that one CPU, or all together, have spent so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CpuTime {
    busy: u64,
    total: u64,
}

impl CpuTime {
    /// A time of `total` ticks, of which `busy` were busy.
    #[cfg(test)]
    pub(crate) fn new(busy: u64, total: u64) -> Self {
        Self { busy, total }
    }

    /// Share of the time since `earlier` that was not idle (or stolen by the hypervisor), in 0..=1.
    pub(crate) fn busy_since(self, earlier: Self) -> f64 {
        let total = self.total.saturating_sub(earlier.total);
        if total == 0 { 0.0 } else { self.busy.saturating_sub(earlier.busy) as f64 / total as f64 }
    }
}

/// Each CPU's time so far.
pub(crate) fn read() -> io::Result<Vec<CpuTime>> {
    let text = std::fs::read_to_string("/proc/stat")?;
    parse(&text).ok_or_else(|| io::Error::other("/proc/stat is not as proc(5) describes it"))
}

/// The lines `cpu0 user nice system idle iowait irq softirq steal ...`; `None` if there are no such lines or one
/// is malformed.
fn parse(text: &str) -> Option<Vec<CpuTime>> {
    let cpu = |line: &str| {
        let mut fields = line.split_ascii_whitespace();
        let name = fields.next()?.strip_prefix("cpu")?;
        name.bytes().all(|byte| byte.is_ascii_digit()).then_some(())?;
        let ticks: Vec<u64> = fields.take(8).map(str::parse).collect::<Result<_, _>>().ok()?;
        let [user, nice, system, idle, iowait, irq, softirq, steal] = ticks.try_into().ok()?;
        let busy = [user, nice, system, irq, softirq, steal].into_iter().try_fold(0_u64, u64::checked_add)?;
        Some(CpuTime { busy, total: busy.checked_add(idle)?.checked_add(iowait)? })
    };
    let is_cpu = |line: &&str| line.starts_with("cpu") && !line.starts_with("cpu ");
    let cpus: Vec<CpuTime> = text.lines().filter(is_cpu).map(cpu).collect::<Option<_>>()?;
    (!cpus.is_empty()).then_some(cpus)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn idle_and_waiting_are_not_busy() {
        let before = parse("cpu  0 0 0 0 0 0 0 0 0 0\ncpu0 10 0 10 80 0 0 0 0 0 0\nintr 5\n").unwrap();
        let after = parse("cpu  0 0 0 0 0 0 0 0 0 0\ncpu0 20 0 20 100 10 0 5 5 0 0\nintr 5\n").unwrap();
        assert_eq!(after[0].busy_since(before[0]), 30.0 / 60.0);
    }

    #[test]
    fn a_malformed_line_is_an_error() {
        for text in ["", "cpu 1 2 3 4 5 6 7 8", "cpu0 1 2 3", "cpu0 1 2 3 4 five 6 7 8", "cpux 1 2 3 4 5 6 7 8"] {
            assert_eq!(parse(text), None, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_parsed_or_refused(text in "(cpu[0-9 a-z]{0,80}\n?){0,4}") {
            let _ = parse(&text);
        }
    }
}
