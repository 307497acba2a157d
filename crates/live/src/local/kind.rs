//! What kind of link an interface leads to.

use nix::libc::IFF_LOOPBACK;

use super::LinkKind;
use super::link::Link;

/// Kinds of `ip link` whose packets go on inside other packets.
const TUNNELS: [&str; 20] = [
    "amt",
    "bareudp",
    "erspan",
    "geneve",
    "gre",
    "gretap",
    "gtp",
    "ip6erspan",
    "ip6gre",
    "ip6gretap",
    "ip6tnl",
    "ipip",
    "ovpn",
    "ovpn-dco",
    "sit",
    "vti",
    "vti6",
    "vxlan",
    "wireguard",
    "xfrm",
];
/// Kinds of `ip link` that are the interface of a modem.
const MODEMS: [&str; 3] = ["rmnet", "wwan", "mhi_net"];
/// Drivers of modems that look like an Ethernet card.
const MODEM_DRIVERS: [&str; 8] =
    ["cdc_mbim", "hso", "huawei_cdc_ncm", "mhi_wwan_mbim", "mtk_t7xx", "qmi_wwan", "rndis_wwan", "sierra_net"];
/// Drivers of the cards that a hypervisor emulates.
const VIRTUAL_DRIVERS: [&str; 7] = ["hv_netvsc", "ibmveth", "tun", "veth", "vif", "virtio_net", "vmxnet3"];
/// Buses of a hypervisor.
const VIRTUAL_BUSES: [&str; 3] = ["virtio", "vmbus", "xen"];

/// `ARPHRD_*` of `include/uapi/linux/if_arp.h`.
const ETHER: u16 = 1;
const PPP: u16 = 512;
const RAWIP: u16 = 519;
const TUNNEL_TYPES: [u16; 6] = [768, 769, 776, 778, 823, 65534];
const WIFI_TYPES: [u16; 3] = [801, 802, 803];

/// What is known beyond the link's message.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Hints<'a> {
    /// Whether nl80211 knows the interface.
    pub(super) is_wifi: bool,
    /// The driver's name.
    pub(super) driver: Option<&'a str>,
    /// `DEVTYPE` in sysfs.
    pub(super) devtype: Option<&'a str>,
}

pub(super) fn kind_of(link: &Link, hints: Hints<'_>) -> LinkKind {
    let driver = hints.driver.unwrap_or_default();
    if link.flags & IFF_LOOPBACK as u32 != 0 {
        return LinkKind::Loopback;
    }
    if hints.is_wifi || hints.devtype == Some("wlan") || WIFI_TYPES.contains(&link.hardware) {
        return LinkKind::Wifi;
    }
    if hints.devtype == Some("wwan") || link.hardware == RAWIP || MODEM_DRIVERS.contains(&driver) {
        return LinkKind::Cellular;
    }
    match link.kind.as_deref() {
        // A port of a switch chip has the kind `dsa`.
        None | Some("dsa") => {}
        Some("tun") if link.is_tap => return LinkKind::Virtual,
        Some("tun") => return LinkKind::Tunnel,
        // Its packets may go on over Ethernet, over a modem or inside other packets.
        Some("ppp") => return LinkKind::Unknown,
        Some(kind) if TUNNELS.contains(&kind) => return LinkKind::Tunnel,
        Some(kind) if MODEMS.contains(&kind) => return LinkKind::Cellular,
        Some(_) => return LinkKind::Virtual,
    }
    let is_virtual = link.bus.as_deref().is_some_and(|bus| VIRTUAL_BUSES.contains(&bus));
    match link.hardware {
        _ if is_virtual || VIRTUAL_DRIVERS.contains(&driver) => LinkKind::Virtual,
        PPP => LinkKind::Unknown,
        hardware if TUNNEL_TYPES.contains(&hardware) => LinkKind::Tunnel,
        // Without a bus, it may be anything that calls itself Ethernet.
        ETHER if link.bus.is_some() || link.kind.is_some() => LinkKind::Ethernet,
        _ => LinkKind::Unknown,
    }
}

/// Whether the rate that such a device reports is a constant of its driver.
pub(super) fn has_made_up_rate(link: &Link) -> bool {
    matches!(link.kind.as_deref(), Some("tun" | "veth" | "netkit" | "dummy" | "ifb"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ether(kind: Option<&str>, bus: Option<&str>) -> Link {
        Link { hardware: ETHER, kind: kind.map(str::to_owned), bus: bus.map(str::to_owned), ..Link::default() }
    }

    fn driven_by(driver: &str) -> Hints<'_> {
        Hints { driver: Some(driver), ..Hints::default() }
    }

    #[test]
    fn software_devices_are_known_by_their_kind() {
        for (kind, expected) in [
            ("veth", LinkKind::Virtual),
            ("bridge", LinkKind::Virtual),
            ("dummy", LinkKind::Virtual),
            ("tun", LinkKind::Tunnel),
            ("wireguard", LinkKind::Tunnel),
            ("gre", LinkKind::Tunnel),
            ("ppp", LinkKind::Unknown),
            ("wwan", LinkKind::Cellular),
            ("dsa", LinkKind::Ethernet),
        ] {
            assert_eq!(kind_of(&ether(Some(kind), None), Hints::default()), expected, "{kind}");
        }
        let tap = Link { is_tap: true, ..ether(Some("tun"), None) };
        assert_eq!(kind_of(&tap, Hints::default()), LinkKind::Virtual);
    }

    #[test]
    fn hardware_is_known_by_its_bus_or_its_driver() {
        assert_eq!(kind_of(&ether(None, Some("pci")), driven_by("e1000e")), LinkKind::Ethernet);
        assert_eq!(kind_of(&ether(None, Some("virtio")), driven_by("virtio_net")), LinkKind::Virtual);
        assert_eq!(kind_of(&ether(None, Some("usb")), driven_by("qmi_wwan")), LinkKind::Cellular);
        assert_eq!(kind_of(&ether(None, None), driven_by("vmxnet3")), LinkKind::Virtual);
        assert_eq!(kind_of(&ether(None, None), Hints::default()), LinkKind::Unknown);
        let wlan = Hints { devtype: Some("wlan"), ..driven_by("iwlwifi") };
        assert_eq!(kind_of(&ether(None, Some("pci")), wlan), LinkKind::Wifi);
        let nl80211 = Hints { is_wifi: true, ..Hints::default() };
        assert_eq!(kind_of(&ether(None, None), nl80211), LinkKind::Wifi);
    }

    #[test]
    fn other_types_of_hardware() {
        let of = |hardware| kind_of(&Link { hardware, ..Link::default() }, Hints::default());
        assert_eq!(of(PPP), LinkKind::Unknown);
        assert_eq!(of(RAWIP), LinkKind::Cellular);
        assert_eq!(of(65534), LinkKind::Tunnel);
        assert_eq!(of(803), LinkKind::Wifi);
        let loopback = Link { hardware: 772, flags: IFF_LOOPBACK as u32, ..Link::default() };
        assert_eq!(kind_of(&loopback, Hints::default()), LinkKind::Loopback);
    }
}
