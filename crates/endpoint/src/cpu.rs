//! How busy the machine is: `/proc/stat`.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

const PATH: &str = "/proc/stat";
/// Holds the lines of some hundred CPUs, which come first.
const BUFFER_BYTES: usize = 64 * 1024;

/// Ticks that one CPU, or all together, have spent so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuTime {
    busy: u64,
    softirq: u64,
    total: u64,
}

impl CpuTime {
    /// A time of `total` ticks, of which `busy` were busy.
    pub fn new(busy: u64, total: u64) -> Self {
        Self { busy, softirq: 0, total }
    }

    /// Share of the time since `earlier` that was not idle (or stolen by the hypervisor), in 0..=1.
    pub fn busy_since(self, earlier: Self) -> f64 {
        self.share_since(earlier, |time| time.busy)
    }

    /// Share of the time since `earlier` that was spent in software interrupts, in 0..=1.
    pub fn softirq_since(self, earlier: Self) -> f64 {
        self.share_since(earlier, |time| time.softirq)
    }

    /// Whether no tick has passed since `earlier`.
    pub fn is_at(self, earlier: Self) -> bool {
        self.total <= earlier.total
    }

    fn share_since(self, earlier: Self, part: impl Fn(Self) -> u64) -> f64 {
        let total = self.total.saturating_sub(earlier.total);
        if total == 0 { 0.0 } else { part(self).saturating_sub(part(earlier)) as f64 / total as f64 }
    }
}

/// Each CPU's time so far.
pub fn read() -> io::Result<Vec<CpuTime>> {
    let text = std::fs::read_to_string(PATH)?;
    let mut cpus = Vec::new();
    parse(&text, &mut cpus).ok_or_else(unexpected)?;
    Ok(cpus)
}

/// Reads the CPUs' times again and again, through one descriptor.
#[derive(Debug)]
pub struct CpuReader {
    file: File,
    buffer: Vec<u8>,
}

impl CpuReader {
    /// Opens `/proc/stat`.
    pub fn open() -> io::Result<Self> {
        Ok(Self { file: File::open(PATH)?, buffer: vec![0; BUFFER_BYTES] })
    }

    /// Replaces `cpus` by each CPU's time so far.
    pub fn read(&mut self, cpus: &mut Vec<CpuTime>) -> io::Result<()> {
        let length = self.file.read_at(&mut self.buffer, 0)?;
        // The last line may be cut off.
        let lines = self.buffer[..length].iter().rposition(|&byte| byte == b'\n').map_or(0, |end| end + 1);
        str::from_utf8(&self.buffer[..lines]).ok().and_then(|text| parse(text, cpus)).ok_or_else(unexpected)
    }
}

fn unexpected() -> io::Error {
    io::Error::other("/proc/stat is not as proc(5) describes it")
}

/// The lines `cpu0 user nice system idle iowait irq softirq steal ...`; `None` if there are no such lines or one
/// is malformed.
fn parse(text: &str, cpus: &mut Vec<CpuTime>) -> Option<()> {
    cpus.clear();
    for line in text.lines().filter(|line| line.starts_with("cpu") && !line.starts_with("cpu ")) {
        let mut fields = line.split_ascii_whitespace();
        let name = fields.next()?.strip_prefix("cpu")?;
        name.bytes().all(|byte| byte.is_ascii_digit()).then_some(())?;
        let mut ticks = [0_u64; 8];
        for tick in &mut ticks {
            *tick = fields.next()?.parse().ok()?;
        }
        let [user, nice, system, idle, iowait, irq, softirq, steal] = ticks;
        let busy = [user, nice, system, irq, softirq, steal].into_iter().try_fold(0_u64, u64::checked_add)?;
        cpus.push(CpuTime { busy, softirq, total: busy.checked_add(idle)?.checked_add(iowait)? });
    }
    (!cpus.is_empty()).then_some(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parsed(text: &str) -> Option<Vec<CpuTime>> {
        let mut cpus = Vec::new();
        parse(text, &mut cpus).map(|()| cpus)
    }

    #[test]
    fn idle_and_waiting_are_not_busy() {
        let before = parsed("cpu  0 0 0 0 0 0 0 0 0 0\ncpu0 10 0 10 80 0 0 0 0 0 0\nintr 5\n").unwrap();
        let after = parsed("cpu  0 0 0 0 0 0 0 0 0 0\ncpu0 20 0 20 100 10 0 5 5 0 0\nintr 5\n").unwrap();
        assert_eq!(after[0].busy_since(before[0]), 30.0 / 60.0);
        assert_eq!(after[0].softirq_since(before[0]), 5.0 / 60.0);
    }

    #[test]
    fn a_malformed_line_is_an_error() {
        for text in ["", "cpu 1 2 3 4 5 6 7 8", "cpu0 1 2 3", "cpu0 1 2 3 4 five 6 7 8", "cpux 1 2 3 4 5 6 7 8"] {
            assert_eq!(parsed(text), None, "{text:?}");
        }
    }

    #[test]
    fn an_open_file_shows_the_same_cpus_each_time() {
        let (mut reader, mut cpus) = (CpuReader::open().unwrap(), vec![CpuTime::default(); 3]);
        reader.read(&mut cpus).unwrap();
        let before = cpus.clone();
        reader.read(&mut cpus).unwrap();
        assert_eq!((before.len(), cpus.len()), (read().unwrap().len(), before.len()));
        assert!(cpus.iter().zip(&before).all(|(now, before)| before.is_at(*now)));
    }

    proptest! {
        #[test]
        fn any_text_is_parsed_or_refused(text in "(cpu[0-9 a-z]{0,80}\n?){0,4}") {
            let _ = parsed(&text);
        }
    }
}
