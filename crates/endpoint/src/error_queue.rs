//! A socket's error queue: timestamps of packets that left, and ICMP errors about them (ip(7), `IP_RECVERR`).

use std::io::{self, IoSliceMut};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::{AsRawFd, OwnedFd};

use nix::errno::Errno;
use nix::libc;
use nix::sys::socket::{ControlMessageOwned, MsgFlags, recvmsg};
use nix::sys::time::TimeSpec;

/// Room for the control messages of one notice.
const CONTROL_BYTES: usize = 512;
/// `IP_RECVERR_RFC4884` and `IPV6_RECVERR_RFC4884` (since Linux 5.9): where extensions begin in an ICMP error.
const RECVERR_RFC4884: [i32; 2] = [26, 31];
/// `SCM_TSTAMP_SND`, `SCM_TSTAMP_SCHED` and `SCM_TSTAMP_ACK` of `include/uapi/linux/errqueue.h`.
const SENT: u32 = 0;
const SCHEDULED: u32 = 1;
const ACKNOWLEDGED: u32 = 2;

/// Where in the kernel a packet was stamped (`SCM_TSTAMP_*`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stamped {
    /// When it entered the queueing discipline.
    Scheduled,
    /// When the driver took it.
    Sent,
    /// When the peer acknowledged its last byte.
    Acknowledged,
}

/// One entry of the queue. A copy or a quotation of the packet is at the beginning of the caller's buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notice {
    /// A packet's timestamp.
    Stamp {
        /// The datagram's number, or the offset of the last byte of a write.
        id: u32,
        /// Where.
        stamped: Stamped,
        /// When, on the real-time clock.
        realtime_ns: u64,
        /// Length of the copy.
        bytes: usize,
    },
    /// An ICMP error.
    Icmp {
        /// Who sent it.
        offender: Option<IpAddr>,
        /// Whether the packet's TTL (hop limit) was used up.
        time_exceeded: bool,
        /// When it arrived, on the real-time clock.
        realtime_ns: Option<u64>,
        /// Length of the quotation, which begins with the packet's payload.
        bytes: usize,
        /// Whether it has an extension about MPLS labels (RFC 4950).
        mpls: bool,
    },
    /// Something else.
    Other,
}

/// Lets a socket report ICMP errors about its packets.
pub fn report_errors(socket: &OwnedFd, is_ipv6: bool) -> io::Result<()> {
    let (level, option) =
        if is_ipv6 { (libc::IPPROTO_IPV6, libc::IPV6_RECVERR) } else { (libc::IPPROTO_IP, libc::IP_RECVERR) };
    crate::options::set_int(socket, level, option, 1)?;
    // Older kernels report the same errors without the position of extensions.
    let _ = crate::options::set_int(socket, level, RECVERR_RFC4884[usize::from(is_ipv6)], 1);
    Ok(())
}

/// Takes the next entry of a socket's error queue; `None` if it is empty.
pub fn take_notice(socket: &OwnedFd, buffer: &mut [u8]) -> io::Result<Option<Notice>> {
    let mut control = [0; CONTROL_BYTES];
    let mut into = [IoSliceMut::new(buffer)];
    let flags = MsgFlags::MSG_ERRQUEUE | MsgFlags::MSG_DONTWAIT;
    let message = match recvmsg::<()>(socket.as_raw_fd(), &mut into, Some(&mut control), flags) {
        Err(Errno::EAGAIN | Errno::EINTR) => return Ok(None),
        other => other?,
    };
    let bytes = message.bytes;
    let (mut realtime_ns, mut error, mut offender) = (None, None, None);
    for control in message.cmsgs()? {
        match control {
            ControlMessageOwned::ScmTimestampsns(stamps) => realtime_ns = nanoseconds(stamps.system),
            ControlMessageOwned::ScmTimestampns(stamp) => realtime_ns = nanoseconds(stamp),
            ControlMessageOwned::Ipv4RecvErr(found, address) => {
                error = Some(found);
                offender = address.map(|address| IpAddr::V4(Ipv4Addr::from(u32::from_be(address.sin_addr.s_addr))));
            }
            ControlMessageOwned::Ipv6RecvErr(found, address) => {
                error = Some(found);
                offender = address.map(|address| IpAddr::V6(Ipv6Addr::from(address.sin6_addr.s6_addr)));
            }
            _ => {}
        }
    }
    let Some(error) = error else { return Ok(Some(Notice::Other)) };
    Ok(Some(notice(&error, offender, realtime_ns, &buffer[..bytes])))
}

fn notice(
    error: &libc::sock_extended_err,
    offender: Option<IpAddr>,
    realtime_ns: Option<u64>,
    payload: &[u8],
) -> Notice {
    const TIME_EXCEEDED: u8 = 11;
    const TIME_EXCEEDED_V6: u8 = 3;
    match error.ee_origin {
        libc::SO_EE_ORIGIN_TIMESTAMPING => {
            let stamped = match error.ee_info {
                SCHEDULED => Stamped::Scheduled,
                SENT => Stamped::Sent,
                ACKNOWLEDGED => Stamped::Acknowledged,
                _ => return Notice::Other,
            };
            match realtime_ns {
                Some(realtime_ns) => Notice::Stamp { id: error.ee_data, stamped, realtime_ns, bytes: payload.len() },
                None => Notice::Other,
            }
        }
        libc::SO_EE_ORIGIN_ICMP | libc::SO_EE_ORIGIN_ICMP6 => Notice::Icmp {
            offender,
            time_exceeded: match error.ee_origin {
                libc::SO_EE_ORIGIN_ICMP => error.ee_type == TIME_EXCEEDED,
                _ => error.ee_type == TIME_EXCEEDED_V6,
            },
            realtime_ns,
            bytes: payload.len(),
            mpls: has_labels(payload, error.ee_data),
        },
        _ => Notice::Other,
    }
}

/// Whether an ICMP error has an MPLS label stack among its extensions (RFC 4884, section 7; RFC 4950, class 1). The lower
/// half of `data` is the extensions' position in the payload (`struct sock_ee_data_rfc4884`), the byte after it has
/// flags, of which the lowest says that they are invalid.
fn has_labels(payload: &[u8], data: u32) -> bool {
    const HEADER_BYTES: usize = 4;
    const LABELS: u8 = 1;
    let data = data.to_ne_bytes();
    let (start, is_invalid) = (usize::from(u16::from_ne_bytes([data[0], data[1]])), data[2] & 1 == 1);
    if start == 0 || is_invalid {
        return false;
    }
    let mut rest = payload.get(start + HEADER_BYTES..).unwrap_or_default();
    while let [high, low, class, ..] = *rest {
        if class == LABELS {
            return true;
        }
        let length = usize::from(u16::from_be_bytes([high, low]));
        match rest.get(length..) {
            Some(after) if length >= HEADER_BYTES => rest = after,
            _ => return false,
        }
    }
    false
}

/// A stamp in nanoseconds; `None` if it is not set.
pub fn nanoseconds(time: TimeSpec) -> Option<u64> {
    let [seconds, nanoseconds] = [time.tv_sec(), time.tv_nsec()].map(u64::try_from);
    seconds.ok()?.checked_mul(1_000_000_000)?.checked_add(nanoseconds.ok()?).filter(|&ns| ns > 0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn icmp(data: u32, payload: &[u8]) -> Notice {
        let error = libc::sock_extended_err {
            ee_errno: 113,
            ee_origin: libc::SO_EE_ORIGIN_ICMP,
            ee_type: 11,
            ee_code: 0,
            ee_pad: 0,
            ee_info: 0,
            ee_data: data,
        };
        notice(&error, None, Some(5), payload)
    }

    #[test]
    fn labels_are_found_behind_the_quotation() {
        // Eight bytes quoted, then the extensions: version 2, an object of class 3, and one of class 1.
        let payload = [&[0_u8; 8][..], &[0x20, 0, 0, 0], &[0, 4, 3, 0], &[0, 8, 1, 1, 0, 1, 1, 1]].concat();
        let found = |data| matches!(icmp(data, &payload), Notice::Icmp { mpls: true, time_exceeded: true, .. });
        assert!(found(8));
        assert!(!found(0), "no extensions");
        assert!(!found(8 | 1 << 16), "invalid extensions");
        assert!(!found(4000), "beyond the end");
    }

    #[test]
    fn an_object_without_a_length_ends_the_search() {
        let payload = [&[0_u8; 8][..], &[0x20, 0, 0, 0], &[0, 0, 3, 0], &[0, 8, 1, 1, 0, 1, 1, 1]].concat();
        assert!(matches!(icmp(8, &payload), Notice::Icmp { mpls: false, .. }));
    }

    proptest! {
        #[test]
        fn any_error_is_read(
            payload in proptest::collection::vec(prop_oneof![Just(0), Just(1), any::<u8>()], 0..200),
            (origin, kind, info, data) in (0..8_u8, any::<u8>(), 0..5_u32, any::<u32>()),
            start in 0..200_u32,
        ) {
            let error = |data| libc::sock_extended_err {
                ee_errno: 113,
                ee_origin: origin,
                ee_type: kind,
                ee_code: 0,
                ee_pad: 0,
                ee_info: info,
                ee_data: data,
            };
            for data in [data, start] {
                let found = notice(&error(data), None, Some(5), &payload);
                if let Notice::Stamp { bytes, .. } | Notice::Icmp { bytes, .. } = found {
                    prop_assert_eq!(bytes, payload.len());
                }
            }
        }
    }
}
