//! Byte queue limits of a transmit queue (`byte_queue_limits` in sysfs).

use std::fs::File;
use std::io;
use std::path::Path;

use crate::sysfs::number_in;

/// The files of one transmit queue.
#[derive(Debug)]
pub struct LimitFiles {
    limit: File,
    inflight: File,
}

/// What byte queue limits allow in a ring, and what counts against that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allowed {
    /// The present limit. It is 0 until the driver reports the first completion.
    pub limit_bytes: u64,
    /// Bytes that the driver has been given and has not completed.
    pub inflight_bytes: u64,
}

impl LimitFiles {
    /// Opens the files in a queue's directory `byte_queue_limits`.
    pub fn open(directory: &Path) -> io::Result<Self> {
        let open = |file| File::open(directory.join(file));
        Ok(Self { limit: open("limit")?, inflight: open("inflight")? })
    }

    /// The same files, for another reader.
    pub fn try_clone(&self) -> io::Result<Self> {
        Ok(Self { limit: self.limit.try_clone()?, inflight: self.inflight.try_clone()? })
    }

    /// The present values.
    pub fn read(&self) -> io::Result<Allowed> {
        Ok(Allowed { limit_bytes: number_in(&self.limit)?, inflight_bytes: number_in(&self.inflight)? })
    }
}
