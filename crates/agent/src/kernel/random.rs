//! The kernel's random numbers. In a machine that belongs to the run (a guest), the kernel's hashes then depend on the
//! run's seed.
#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

use nix::libc;

/// `struct rand_pool_info` with room for one seed.
#[repr(C)]
struct PoolInfo {
    entropy_bits: i32,
    bytes: i32,
    seed: [u64; 4],
}

/// `_IOW('R', 0x03, int[2])` and `_IO('R', 0x07)` of `include/uapi/linux/random.h`.
const RNDADDENTROPY: u64 = 0x4008_5203;
const RNDRESEEDCRNG: u64 = 0x5207;

/// Mixes a seed into the kernel's generator and makes it take effect at once.
pub(crate) fn mix(seed: u64) -> io::Result<()> {
    let random = File::open("/dev/urandom")?;
    let info = PoolInfo { entropy_bits: 256, bytes: 32, seed: [seed; 4] };
    // SAFETY: RNDADDENTROPY reads a rand_pool_info and as many bytes after it as that states; RNDRESEEDCRNG reads
    // nothing.
    let done = unsafe {
        match libc::ioctl(random.as_raw_fd(), RNDADDENTROPY as _, &raw const info) {
            0 => libc::ioctl(random.as_raw_fd(), RNDRESEEDCRNG as _),
            failed => failed,
        }
    };
    if done < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
