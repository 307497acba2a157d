//! `SIOCETHTOOL`: queries and commands for a device's driver.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use nix::libc;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, socket};

/// Words of the longest structure that a command may be called with: `struct ethtool_link_settings` with three masks of
/// at most 127 words.
pub const MOST_WORDS: usize = 12 + 3 * 127;

/// Talks to the drivers of the calling thread's namespace.
#[derive(Debug)]
pub struct Ethtool(OwnedFd);

impl Ethtool {
    /// Opens a socket for this.
    pub fn open() -> io::Result<Self> {
        Ok(Self(socket(AddressFamily::Inet, SockType::Datagram, SockFlag::SOCK_CLOEXEC, None)?))
    }

    /// Carries out a command on a device. `words` is the command's structure in `include/uapi/linux/ethtool.h`. It
    /// consists of 32-bit words, of which the first is the command. Returns the structure as the answer has overwritten
    /// it.
    pub fn call<const N: usize>(&self, device: &str, words: [u32; N]) -> io::Result<[u32; N]> {
        // The kernel writes as many bytes as the command's structure has. There is room for the longest structure, in
        // case a caller passes too few words.
        let mut room = [0_u32; MOST_WORDS];
        room[..N].copy_from_slice(&words);
        // SAFETY: all-zero bytes are a valid ifreq; the name fits with its terminating zero; `room` outlives the call,
        // which writes no more than the longest structure of the commands in use.
        let done = unsafe {
            let mut request: libc::ifreq = std::mem::zeroed();
            for (to, &from) in request.ifr_name.iter_mut().take(libc::IFNAMSIZ - 1).zip(device.as_bytes()) {
                *to = from as libc::c_char;
            }
            request.ifr_ifru.ifru_data = (&raw mut room).cast();
            libc::ioctl(self.0.as_raw_fd(), libc::SIOCETHTOOL as _, &raw mut request)
        };
        if done < 0 {
            return Err(io::Error::last_os_error());
        }
        let mut answer = words;
        answer.copy_from_slice(&room[..N]);
        Ok(answer)
    }
}
