//! The interface at which a packet was captured, if one stream has the packets of several (`tcpdump -i any`).
//!
//! On a router or a bridge, such a stream has each packet at least twice: when it was received and when it was sent.
//! The headers of cooked captures and of Darwin's `pktap` distinguish these.

use super::cursor::{u16_at, u32_at};
use super::link::{LINUX_COOKED, LINUX_COOKED_2, PKTAP};

/// Where a packet in a stream of several interfaces was captured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Origin {
    /// It was received, at an interface that the header does not name.
    Received,
    /// It was sent, at an interface that the header does not name.
    Sent,
    /// It was captured at the interface with this index.
    Index(u32),
    /// It was captured at the interface with this name, padded with zeros.
    Name([u8; 24]),
}

impl Origin {
    /// A name for the interface.
    pub fn name(self) -> String {
        match self {
            Self::Received => "packets received".to_owned(),
            Self::Sent => "packets sent".to_owned(),
            Self::Index(index) => format!("interface {index}"),
            Self::Name(name) => {
                let end = name.iter().position(|byte| *byte == 0).unwrap_or(name.len());
                String::from_utf8_lossy(&name[..end]).into_owned()
            }
        }
    }
}

/// Where a packet was captured; `None`: the link type has no such header, or it is cut off.
#[inline]
pub fn origin(link_type: u16, data: &[u8]) -> Option<Origin> {
    /// `PACKET_OUTGOING` of Linux.
    const OUTGOING: u16 = 4;
    match link_type {
        LINUX_COOKED => {
            let kind = data.first_chunk::<2>()?;
            Some(if u16_at(kind, 0) == OUTGOING { Origin::Sent } else { Origin::Received })
        }
        LINUX_COOKED_2 => Some(Origin::Index(u32_at(data.first_chunk::<8>()?, 4))),
        number if PKTAP.contains(&number) => {
            let name = data.get(12..)?.first_chunk::<24>()?;
            (name[0] != 0).then_some(Origin::Name(*name))
        }
        _ => None,
    }
}
