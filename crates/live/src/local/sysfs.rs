//! An interface's directory in sysfs.

use std::fs;
use std::path::{Path, PathBuf};

use super::link::Link;

const INTERFACES: &str = "/sys/class/net";

/// An interface's directory, `/sys/class/net/IF`.
#[derive(Clone, Debug)]
pub(super) struct Directory(PathBuf);

impl Directory {
    /// The directory of that interface, if there is one. A mount of sysfs shows the network namespace in which it was
    /// made, and that may have another interface of the same name: so the index and the hardware address must be those
    /// that netlink reports.
    pub(super) fn of(link: &Link) -> Option<Self> {
        let directory = Self(Path::new(INTERFACES).join(&link.name));
        let is_same = directory.text("ifindex")? == link.index.to_string()
            && directory.text("address")? == hardware_address(&link.address);
        is_same.then_some(directory)
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    /// `DEVTYPE` of its `uevent`.
    pub(super) fn devtype(&self) -> Option<String> {
        devtype(&self.text("uevent")?)
    }

    /// The bus on which the device is.
    pub(super) fn bus(&self) -> Option<String> {
        let bus = fs::read_link(self.0.join("device/subsystem")).ok()?;
        Some(bus.file_name()?.to_string_lossy().into_owned())
    }

    fn text(&self, file: &str) -> Option<String> {
        Some(fs::read_to_string(self.0.join(file)).ok()?.trim_end().to_owned())
    }
}

fn hardware_address(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(":")
}

fn devtype(uevent: &str) -> Option<String> {
    uevent.lines().find_map(|line| line.strip_prefix("DEVTYPE=")).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_written_as_in_sysfs() {
        assert_eq!(hardware_address(&[2, 0, 0, 0, 1, 10]), "02:00:00:00:01:0a");
        assert_eq!(hardware_address(&[]), "");
    }

    #[test]
    fn the_type_of_a_device_is_a_line_of_its_uevent() {
        assert_eq!(devtype("DEVTYPE=wlan\nINTERFACE=wlan0\nIFINDEX=3\n").as_deref(), Some("wlan"));
        assert_eq!(devtype("INTERFACE=eth0\nIFINDEX=2\n"), None);
    }
}
