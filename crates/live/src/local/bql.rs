//! Byte queue limits: whether the driver uses them, and what is in its rings (`byte_queue_limits` in sysfs).
//!
//! A kernel may offer the files for a driver that does not use byte queue limits. The limit is then always 0, as it
//! is for any driver that has not sent anything yet: the first completion raises it. So it is certain that a driver
//! uses them when a limit is not 0, and that it does not when all limits are 0 after it has sent something.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use bufferscope_endpoint::byte_limits::{Allowed, LimitFiles};
use bufferscope_endpoint::sysfs::number_in;

/// When the interface has sent so much since the first look, some of it has been completed.
const PROOF_BYTES: u64 = 1_000_000;
/// Each transmit queue needs two open files.
const MOST_QUEUES: usize = 128;

/// The byte queue limits of an interface.
#[derive(Debug)]
pub(super) struct Bql {
    /// Those transmit queues whose limits are known. Empty if the driver uses none.
    queues: Vec<LimitFiles>,
    uses: Option<bool>,
    /// The count of the bytes that the interface has sent, if there is one, and its value at the first look.
    sent: Option<(File, u64)>,
}

impl Bql {
    /// Looks at an interface's directory in sysfs. An error says in words why nothing is known.
    pub(super) fn open(interface: &Path) -> Result<Self, String> {
        let unreadable = |error: io::Error| format!("the transmit queues cannot be read in /sys: {error}");
        let directories = transmit_queues(interface).map_err(unreadable)?;
        if directories.is_empty() {
            return Err("/sys does not list the transmit queues".to_owned());
        }
        if directories.len() > MOST_QUEUES {
            return Err(format!("there are {} transmit queues, more than {MOST_QUEUES}", directories.len()));
        }
        let mut queues = Vec::new();
        for directory in directories {
            match LimitFiles::open(&directory.join("byte_queue_limits")) {
                Ok(files) => queues.push(files),
                // The kernel has none, or knows that this device has no use for them.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(unreadable(error)),
            }
        }
        let counted = File::open(interface.join("statistics/tx_bytes")).ok();
        let sent = counted.and_then(|file| number_in(&file).ok().map(|bytes| (file, bytes)));
        let uses = if queues.is_empty() { Some(false) } else { None };
        let mut bql = Self { queues, uses, sent };
        bql.inflight_bytes();
        Ok(bql)
    }

    /// Whether the driver uses byte queue limits; `None` while this is not certain.
    pub(super) fn uses(&self) -> Option<bool> {
        self.uses
    }

    /// The bytes in the rings of all queues, if the driver uses byte queue limits.
    pub(super) fn inflight_bytes(&mut self) -> Option<u64> {
        if self.uses == Some(false) {
            return None;
        }
        let (mut limits, mut inflight) = (0_u64, 0_u64);
        // Counted before the limits are read, so that they include the completion of what was counted.
        let sent = self.sent.as_ref().and_then(|(file, before)| Some(number_in(file).ok()?.saturating_sub(*before)));
        for queue in &self.queues {
            let Allowed { limit_bytes, inflight_bytes } = queue.read().ok()?;
            limits = limits.saturating_add(limit_bytes);
            inflight = inflight.saturating_add(inflight_bytes);
        }
        if self.uses.is_none() {
            self.uses = judge(limits, inflight, sent);
            if self.uses == Some(false) {
                self.queues.clear();
            }
        }
        self.uses?.then_some(inflight)
    }
}

/// Whether a driver uses byte queue limits, from the sums over its queues and the bytes that it has sent meanwhile.
fn judge(limits: u64, inflight: u64, sent: Option<u64>) -> Option<bool> {
    if limits > 0 || inflight > 0 { Some(true) } else { sent.filter(|&bytes| bytes >= PROOF_BYTES).map(|_| false) }
}

/// The directories `queues/tx-*`.
fn transmit_queues(interface: &Path) -> io::Result<Vec<PathBuf>> {
    let mut queues = Vec::new();
    for queue in fs::read_dir(interface.join("queues"))? {
        let queue = queue?;
        if queue.file_name().as_encoded_bytes().starts_with(b"tx-") {
            queues.push(queue.path());
        }
    }
    Ok(queues)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An interface's directory with these limits and bytes in flight per queue.
    fn interface(queues: &[(u64, u64)], sent: u64) -> tempfile::TempDir {
        let interface = tempfile::tempdir().unwrap();
        let write = |path: &str, value: u64| {
            let path = interface.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, format!("{value}\n")).unwrap();
        };
        for (number, (limit, inflight)) in queues.iter().enumerate() {
            write(&format!("queues/tx-{number}/byte_queue_limits/limit"), *limit);
            write(&format!("queues/tx-{number}/byte_queue_limits/inflight"), *inflight);
        }
        write("queues/rx-0/rps_flow_cnt", 0);
        write("statistics/tx_bytes", sent);
        interface
    }

    #[test]
    fn a_limit_shows_that_they_are_used() {
        let interface = interface(&[(0, 0), (11_314, 3028), (9000, 1514)], 0);
        let mut bql = Bql::open(interface.path()).unwrap();
        assert_eq!((bql.uses(), bql.inflight_bytes()), (Some(true), Some(4542)));
    }

    #[test]
    fn without_a_limit_it_takes_traffic_to_know() {
        let interface = interface(&[(0, 0), (0, 0)], 5_000_000_000);
        let mut bql = Bql::open(interface.path()).unwrap();
        assert_eq!((bql.inflight_bytes(), bql.uses()), (None, None));
        fs::write(interface.path().join("statistics/tx_bytes"), "5000999999\n").unwrap();
        assert_eq!((bql.inflight_bytes(), bql.uses()), (None, None));
        fs::write(interface.path().join("statistics/tx_bytes"), "5001000000\n").unwrap();
        assert_eq!((bql.inflight_bytes(), bql.uses()), (None, Some(false)));
    }

    #[test]
    fn a_first_packet_shows_that_they_are_used() {
        let interface = interface(&[(0, 0)], 0);
        let mut bql = Bql::open(interface.path()).unwrap();
        fs::write(interface.path().join("queues/tx-0/byte_queue_limits/inflight"), "1514\n").unwrap();
        assert_eq!((bql.inflight_bytes(), bql.uses()), (Some(1514), Some(true)));
        fs::write(interface.path().join("queues/tx-0/byte_queue_limits/inflight"), "0\n").unwrap();
        assert_eq!(bql.inflight_bytes(), Some(0));
    }

    #[test]
    fn a_queue_without_the_files_has_no_limits() {
        let interface = interface(&[], 0);
        assert_eq!(Bql::open(interface.path()).unwrap_err(), "/sys does not list the transmit queues");
        fs::create_dir_all(interface.path().join("queues/tx-0")).unwrap();
        let mut bql = Bql::open(interface.path()).unwrap();
        assert_eq!((bql.uses(), bql.inflight_bytes()), (Some(false), None));
    }

    #[test]
    fn too_many_queues_are_left_alone() {
        let interface = interface(&[(0, 0); 129], 0);
        assert_eq!(Bql::open(interface.path()).unwrap_err(), "there are 129 transmit queues, more than 128");
    }
}
