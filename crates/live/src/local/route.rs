//! The interface through which packets to an address leave (`RTM_GETROUTE`, rtnetlink(7)).

use std::io;
use std::net::IpAddr;

use bufferscope_endpoint::bytes::read_u32;
use bufferscope_endpoint::netlink::{Malformed, Netlink, attributes, push_attribute};
use nix::libc::{AF_INET, AF_INET6};

const RTM_NEWROUTE: u16 = 24;
const RTM_GETROUTE: u16 = 26;
/// Length of `struct rtmsg`.
const RTMSG_BYTES: usize = 12;
const RTA_DST: u16 = 1;
const RTA_OIF: u16 = 4;

/// The index of the interface. It is that of the loopback device for this machine's own addresses.
pub(super) fn interface_towards(netlink: &mut Netlink, remote: IpAddr) -> io::Result<u32> {
    let mut found = None;
    netlink.get_if_any(RTM_GETROUTE, &question(remote), |kind, payload| {
        if kind == RTM_NEWROUTE {
            found = outgoing(payload)?;
        }
        Ok(())
    })?;
    found.ok_or_else(|| Malformed("a route without an interface").into())
}

fn question(remote: IpAddr) -> Vec<u8> {
    let (family, address) = match remote.to_canonical() {
        IpAddr::V4(address) => (AF_INET, address.octets().to_vec()),
        IpAddr::V6(address) => (AF_INET6, address.octets().to_vec()),
    };
    // struct rtmsg: u8 family, bits of the destination, bits of the source, TOS, and fields that are 0 here.
    let mut question = vec![0; RTMSG_BYTES];
    question[0] = family as u8;
    question[1] = 8 * address.len() as u8;
    push_attribute(&mut question, RTA_DST, &address);
    question
}

fn outgoing(payload: &[u8]) -> Result<Option<u32>, Malformed> {
    let cut = Malformed("a route is cut off");
    for attribute in attributes(payload.get(RTMSG_BYTES..).ok_or(cut)?) {
        if let (RTA_OIF, value) = attribute? {
            return read_u32(value, 0).map(Some).ok_or(cut);
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The answer to a question about 192.0.2.1: by interface 7, in the main table.
    fn answer() -> Vec<u8> {
        let mut bytes = vec![AF_INET as u8, 32, 0, 0, 254, 0, 0, 1, 0, 2, 0, 0];
        push_attribute(&mut bytes, RTA_DST, &[192, 0, 2, 1]);
        push_attribute(&mut bytes, RTA_OIF, &7_u32.to_ne_bytes());
        bytes
    }

    #[test]
    fn a_route_names_its_interface() {
        assert_eq!(outgoing(&answer()), Ok(Some(7)));
        assert_eq!(outgoing(&answer()[..20]), Ok(None));
        assert!(outgoing(&answer()[..26]).is_err());
        assert!(outgoing(&[0; 3]).is_err());
    }

    #[test]
    fn an_ipv4_address_in_ipv6_form_is_asked_for_as_ipv4() {
        let [plain, mapped] = ["192.0.2.1", "::ffff:192.0.2.1"].map(|address| question(address.parse().unwrap()));
        assert_eq!(plain, mapped);
        assert_eq!((plain[0], plain[1], plain.len()), (AF_INET as u8, 32, 20));
        let six = question("2001:db8::1".parse().unwrap());
        assert_eq!((six[0], six[1], six.len()), (AF_INET6 as u8, 128, 32));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..100)) {
            let _ = outgoing(&bytes);
        }
    }
}
