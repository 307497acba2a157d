//! Whether devices carry packets yet.

use std::io;
use std::thread::sleep;
use std::time::{Duration, Instant};

use nix::ifaddrs::getifaddrs;
use nix::net::if_::InterfaceFlags;

/// The kernel checks at most once a second whether a device's other end has come up.
const TIMEOUT: Duration = Duration::from_secs(5);
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Waits until these devices of the calling thread's namespace carry packets. Before that, they are up but drop
/// everything: a network that was built in less than a second would lose its first packets.
pub(crate) fn wait(devices: &[String]) -> io::Result<()> {
    let start = Instant::now();
    loop {
        let carrying = carrying()?;
        let Some(waiting) = devices.iter().find(|device| !carrying.contains(device)) else { return Ok(()) };
        if start.elapsed() > TIMEOUT {
            return Err(io::Error::new(io::ErrorKind::TimedOut, format!("{waiting} does not come up")));
        }
        sleep(POLL_INTERVAL);
    }
}

/// The devices of the calling thread's namespace that carry packets (`IFF_RUNNING`).
fn carrying() -> io::Result<Vec<String>> {
    let running = getifaddrs()?.filter(|device| device.flags.contains(InterfaceFlags::IFF_RUNNING));
    Ok(running.map(|device| device.interface_name).collect())
}
