//! What the kernel knows of an interface (`RTM_GETLINK`, rtnetlink(7)).

use std::io;

use bufferscope_endpoint::bytes::{read_u16, read_u32};
use bufferscope_endpoint::netlink::{Malformed, Netlink, attributes};
use nix::libc::{IFF_UP, IFNAMSIZ};

const RTM_NEWLINK: u16 = 16;
const RTM_GETLINK: u16 = 18;
/// Length of `struct ifinfomsg`.
const IFINFOMSG_BYTES: usize = 16;

const IFLA_ADDRESS: u16 = 1;
const IFLA_IFNAME: u16 = 3;
const IFLA_QDISC: u16 = 6;
const IFLA_LINKINFO: u16 = 18;
const IFLA_PARENT_DEV_BUS_NAME: u16 = 57;
const IFLA_INFO_KIND: u16 = 1;
const IFLA_INFO_DATA: u16 = 2;
const IFLA_TUN_TYPE: u16 = 3;
const IFF_TAP: u8 = 2;

/// How many times a list is requested that changed while it was read.
const ATTEMPTS: usize = 5;
/// How many interfaces an error message lists.
const MOST_LISTED: usize = 20;

/// An interface.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Link {
    pub(super) index: u32,
    /// `ARPHRD_*`.
    pub(super) hardware: u16,
    /// `IFF_*`.
    pub(super) flags: u32,
    pub(super) name: String,
    pub(super) address: Vec<u8>,
    /// The root queueing discipline.
    pub(super) qdisc: Option<String>,
    /// The kind of a device that was made by software, as in `ip link add type KIND`.
    pub(super) kind: Option<String>,
    /// Whether a `tun` device carries Ethernet frames.
    pub(super) is_tap: bool,
    /// The bus on which the device is, as in `pci`. Only sysfs has it before Linux 5.14.
    pub(super) bus: Option<String>,
}

impl Link {
    /// The interface with that index.
    pub(super) fn read(netlink: &mut Netlink, index: u32) -> io::Result<Self> {
        // struct ifinfomsg: u8 family, padding, u16 type, u32 index, flags, mask of flags.
        let mut question = [0; IFINFOMSG_BYTES];
        question[4..8].copy_from_slice(&index.to_ne_bytes());
        let mut found = None;
        netlink.get_if_any(RTM_GETLINK, &question, |kind, payload| {
            if kind == RTM_NEWLINK {
                found = Some(Self::of(payload)?);
            }
            Ok(())
        })?;
        let asked_for = |link: &Self| link.index == index;
        found.filter(asked_for).ok_or_else(|| Malformed("an answer is not about the interface asked for").into())
    }

    /// The interface of that name.
    pub(super) fn named(netlink: &mut Netlink, name: &str) -> io::Result<Self> {
        let mut links = all(netlink)?;
        match links.iter().position(|link| link.name == name).filter(|_| is_possible(name)) {
            Some(at) => Ok(links.swap_remove(at)),
            None => Err(io::Error::new(io::ErrorKind::NotFound, missing(name, &links))),
        }
    }

    /// Whether it was not set up.
    pub(super) fn is_down(&self) -> bool {
        self.flags & IFF_UP as u32 == 0
    }

    fn of(payload: &[u8]) -> Result<Self, Malformed> {
        let cut = Malformed("an interface's message is cut off");
        let mut link = Self {
            hardware: read_u16(payload, 2).ok_or(cut)?,
            index: read_u32(payload, 4).ok_or(cut)?,
            flags: read_u32(payload, 8).ok_or(cut)?,
            ..Self::default()
        };
        for attribute in attributes(payload.get(IFINFOMSG_BYTES..).ok_or(cut)?) {
            match attribute? {
                (IFLA_ADDRESS, value) => link.address = value.to_vec(),
                (IFLA_IFNAME, value) => link.name = text(value),
                (IFLA_QDISC, value) => link.qdisc = Some(text(value)),
                (IFLA_LINKINFO, value) => link.read_info(value)?,
                (IFLA_PARENT_DEV_BUS_NAME, value) => link.bus = Some(text(value)),
                _ => {}
            }
        }
        Ok(link)
    }

    /// Reads the nested `IFLA_LINKINFO`.
    fn read_info(&mut self, bytes: &[u8]) -> Result<(), Malformed> {
        let mut data: &[u8] = &[];
        for attribute in attributes(bytes) {
            match attribute? {
                (IFLA_INFO_KIND, value) => self.kind = Some(text(value)),
                (IFLA_INFO_DATA, value) => data = value,
                _ => {}
            }
        }
        if self.kind.as_deref() == Some("tun") {
            for attribute in attributes(data) {
                if let (IFLA_TUN_TYPE, value) = attribute? {
                    self.is_tap = value.first() == Some(&IFF_TAP);
                }
            }
        }
        Ok(())
    }
}

/// All interfaces of the socket's namespace.
fn all(netlink: &mut Netlink) -> io::Result<Vec<Link>> {
    let mut attempt = 1;
    loop {
        let mut links = Vec::new();
        let listed = netlink.dump(RTM_GETLINK, &[0; IFINFOMSG_BYTES], |kind, payload| {
            if kind == RTM_NEWLINK {
                links.push(Link::of(payload)?);
            }
            Ok(())
        });
        match listed {
            Err(error) if error.kind() == io::ErrorKind::Interrupted && attempt < ATTEMPTS => attempt += 1,
            other => return other.map(|()| links),
        }
    }
}

/// Whether the kernel accepts this as an interface's name.
fn is_possible(name: &str) -> bool {
    let refused = |byte: u8| byte == b'/' || byte == b':' || byte == 0 || byte.is_ascii_whitespace();
    !name.is_empty() && name.len() < IFNAMSIZ && name != "." && name != ".." && !name.bytes().any(refused)
}

fn missing(name: &str, links: &[Link]) -> String {
    let mut names: Vec<String> = links.iter().map(|link| link.name.escape_debug().to_string()).collect();
    names.sort();
    let more = names.len().saturating_sub(MOST_LISTED);
    names.truncate(MOST_LISTED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let why = match is_possible(name) {
        true => String::new(),
        false => format!(" (a name has 1 to {} bytes, without spaces, `/` and `:`)", IFNAMSIZ - 1),
    };
    format!("there is no interface {name:?}{why}; this machine has {}{more}", names.join(", "))
}

/// A string that ends with a zero byte.
fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

#[cfg(test)]
mod tests {
    use bufferscope_endpoint::netlink::push_attribute;
    use proptest::prelude::*;

    use super::*;

    fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        push_attribute(&mut bytes, kind, value);
        bytes
    }

    /// `tap0`, made by `ip tuntap add mode tap`, with `fq_codel`.
    fn tap() -> Vec<u8> {
        let data = [attribute(IFLA_TUN_TYPE, &[IFF_TAP]), attribute(4, &[0])].concat();
        let info = [attribute(IFLA_INFO_KIND, b"tun\0"), attribute(IFLA_INFO_DATA, &data)].concat();
        // struct ifinfomsg: family and padding, ARPHRD_ETHER, index 9, flags.
        let mut bytes = [&[0, 0][..], &1_u16.to_ne_bytes(), &9_u32.to_ne_bytes(), &0x1003_u32.to_ne_bytes()].concat();
        bytes.extend([0; 4]);
        bytes.extend(attribute(IFLA_IFNAME, b"tap0\0"));
        bytes.extend(attribute(IFLA_ADDRESS, &[2, 0, 0, 0, 1, 10]));
        bytes.extend(attribute(IFLA_QDISC, b"fq_codel\0"));
        bytes.extend(attribute(IFLA_LINKINFO, &info));
        bytes
    }

    #[test]
    fn an_interface_is_read() {
        let expected = Link {
            index: 9,
            hardware: 1,
            flags: 0x1003,
            name: "tap0".to_owned(),
            address: vec![2, 0, 0, 0, 1, 10],
            qdisc: Some("fq_codel".to_owned()),
            kind: Some("tun".to_owned()),
            is_tap: true,
            bus: None,
        };
        assert_eq!(Link::of(&tap()), Ok(expected));
    }

    #[test]
    fn a_missing_interface_is_reported_with_those_that_exist() {
        let links = ["lo", "eth0"].map(|name| Link { name: name.to_owned(), ..Link::default() });
        assert_eq!(missing("eth1", &links), "there is no interface \"eth1\"; this machine has eth0, lo");
        for name in ["", "a name", "../class", "sixteen-bytes-xx", ".", "eth0:1", "a\0"] {
            assert!(missing(name, &links).contains("(a name has 1 to 15 bytes, "), "{name:?}");
        }
        let many: Vec<Link> =
            (0..30).map(|index| Link { name: format!("veth{index:02}"), ..Link::default() }).collect();
        assert!(missing("x", &many).ends_with("veth18, veth19 and 10 more"));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = Link::of(&bytes);
        }

        #[test]
        fn a_message_that_is_cut_or_changed_never_panics(at in 0_usize..200, value: u8) {
            let mut bytes = tap();
            let at = at % bytes.len();
            let _ = Link::of(&bytes[..at]);
            bytes[at] = value;
            let _ = Link::of(&bytes);
        }
    }
}
