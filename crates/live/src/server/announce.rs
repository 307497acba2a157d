//! Announces the server on the local network (DNS-SD over multicast DNS, RFC 6762 and 6763), as
//! draft-ietf-ippm-responsiveness describes it: whoever browses for `_nq._tcp` finds `/.well-known/nq` there.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use mdns_sd::{ServiceDaemon, ServiceInfo};

use super::log;

/// The type of the service.
const SERVICE: &str = "_nq._tcp.local.";
/// The announcement is taken back within this time, or its records expire.
const FAREWELL: Duration = Duration::from_millis(500);

/// An announcement, taken back when this is dropped.
pub(super) struct Announcement {
    daemon: ServiceDaemon,
    names: Vec<String>,
}

impl Announcement {
    /// Announces a server that listens on these addresses. What fails is logged: the server works without it.
    pub(super) fn start(listening: &[SocketAddr]) -> Option<Self> {
        let daemon = match ServiceDaemon::new() {
            Ok(daemon) => daemon,
            Err(error) => {
                log(format_args!("the server is not announced on the local network: {error}"));
                return None;
            }
        };
        let mut names = Vec::new();
        for (port, addresses) in by_port(listening) {
            let registered = service(port, &addresses).and_then(|service| {
                let name = service.get_fullname().to_owned();
                daemon.register(service).map(|()| name)
            });
            match registered {
                Ok(name) => names.push(name),
                Err(error) => log(format_args!("port {port} is not announced on the local network: {error}")),
            }
        }
        Some(Self { daemon, names })
    }
}

impl Drop for Announcement {
    fn drop(&mut self) {
        for name in &self.names {
            if let Ok(done) = self.daemon.unregister(name) {
                let _ = done.recv_timeout(FAREWELL);
            }
        }
        if let Ok(done) = self.daemon.shutdown() {
            let _ = done.recv_timeout(FAREWELL);
        }
    }
}

/// The ports, each with the addresses it is reached at; none: all of this machine.
fn by_port(listening: &[SocketAddr]) -> Vec<(u16, Vec<IpAddr>)> {
    let mut ports: Vec<(u16, Vec<IpAddr>)> = Vec::new();
    for address in listening {
        let known = ports.iter().position(|(port, _)| *port == address.port());
        let at = known.unwrap_or_else(|| {
            ports.push((address.port(), Vec::new()));
            ports.len() - 1
        });
        ports[at].1.push(address.ip());
    }
    for (_, addresses) in &mut ports {
        if addresses.iter().any(IpAddr::is_unspecified) {
            addresses.clear();
        }
    }
    ports
}

fn service(port: u16, addresses: &[IpAddr]) -> mdns_sd::Result<ServiceInfo> {
    let host = nix::unistd::gethostname().ok().and_then(|name| name.into_string().ok());
    let host = label(&host.unwrap_or_default());
    // Its own name: the machine's may be announced by another program.
    let own = format!("{host}-bufferscope.local.");
    let instance = format!("bufferscope on {host}, port {port}");
    let service = ServiceInfo::new(SERVICE, &instance, &own, addresses, port, None::<HashMap<String, String>>)?;
    Ok(if addresses.is_empty() { service.enable_addr_auto() } else { service })
}

/// A machine's name without its domain, as a part of labels: these have at most 63 bytes (RFC 1035, section 2.3.4), of which
/// the instance's other words and its port take 27.
fn label(host: &str) -> String {
    let first = host.split('.').next().unwrap_or_default();
    let label: String = first.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '-').take(63 - 27).collect();
    if label.is_empty() { "server".to_owned() } else { label }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_is_the_first_part_of_a_name_and_leaves_room_for_the_rest() {
        assert_eq!(label("pc.example.org"), "pc");
        assert_eq!([label(""), label(".example.org"), label("..")], ["server"; 3]);
        let long = label(&"ip-10-0-0-1-".repeat(9));
        assert_eq!(format!("bufferscope on {long}, port 47300").len(), 63);
    }

    #[test]
    fn a_port_is_announced_with_its_addresses_or_with_all() {
        let listening: Vec<SocketAddr> =
            ["192.0.2.1:1", "[2001:db8::1]:1", "0.0.0.0:2", "[::]:2"].map(|text| text.parse().unwrap()).into();
        let [one, two] = [["192.0.2.1", "2001:db8::1"].map(|text| text.parse().unwrap()).to_vec(), vec![]];
        assert_eq!(by_port(&listening), [(1, one), (2, two)]);
        let found = service(47300, &["192.0.2.1".parse().unwrap()]).unwrap();
        assert!(found.get_fullname().ends_with("._nq._tcp.local."), "{}", found.get_fullname());
        assert_eq!(found.get_port(), 47300);
    }
}
