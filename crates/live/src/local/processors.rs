//! How busy the processors are (`/proc/stat`).

use std::io;

use bufferscope_endpoint::cpu::{CpuReader, CpuTime};

/// Shares of the time since the last look.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Shares {
    /// How long the busiest processor was busy.
    pub(super) busy: f64,
    /// How long the processor with the most softirq time spent in it.
    pub(super) softirq: f64,
}

/// The processors of this machine.
#[derive(Debug)]
pub(super) struct Processors {
    reader: CpuReader,
    before: Vec<CpuTime>,
    now: Vec<CpuTime>,
}

impl Processors {
    pub(super) fn open() -> io::Result<Self> {
        let mut reader = CpuReader::open()?;
        let mut before = Vec::new();
        reader.read(&mut before)?;
        Ok(Self { reader, now: Vec::with_capacity(before.len()), before })
    }

    /// The shares since the last call; `None` if no tick has passed since then, or if a processor came or went.
    pub(super) fn look(&mut self) -> Option<Shares> {
        self.reader.read(&mut self.now).ok()?;
        let same_number = self.now.len() == self.before.len();
        if same_number && self.now.iter().zip(&self.before).all(|(now, before)| now.is_at(*before)) {
            return None;
        }
        std::mem::swap(&mut self.now, &mut self.before);
        same_number.then(|| shares(&self.before, &self.now))
    }
}

/// The largest shares of any processor.
fn shares(now: &[CpuTime], before: &[CpuTime]) -> Shares {
    let most = |share: fn(CpuTime, CpuTime) -> f64| {
        now.iter().zip(before).map(|(now, before)| share(*now, *before)).fold(0.0, f64::max)
    };
    Shares { busy: most(CpuTime::busy_since), softirq: most(CpuTime::softirq_since) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_busiest_processor_counts() {
        let before = [CpuTime::new(100, 1000), CpuTime::new(100, 1000)];
        let now = [CpuTime::new(101, 1010), CpuTime::new(109, 1010)];
        assert_eq!(shares(&now, &before), Shares { busy: 0.9, softirq: 0.0 });
    }

    #[test]
    fn a_working_processor_is_busy() {
        let mut processors = Processors::open().unwrap();
        let start = std::time::Instant::now();
        while start.elapsed() < std::time::Duration::from_millis(200) {
            std::hint::spin_loop();
        }
        let shares = processors.look().unwrap();
        assert!(shares.busy > 0.5 && shares.busy <= 1.0 && shares.softirq <= shares.busy, "{shares:?}");
    }
}
