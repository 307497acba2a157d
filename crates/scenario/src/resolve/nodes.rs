//! Nodes: everything that the links join.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use crate::error::{Problem, Problems};
use crate::file::{Host, HostTcp, Link};
use crate::model::{Node, NodeIndex, TcpSettings};
use crate::path::join;
use crate::suggest::{any_of, closest};
use crate::text::Name;

/// Most nodes in a scenario.
const MOST_NODES: usize = 1000;

/// The nodes' names, in order of first appearance in the links.
pub(super) struct Nodes<'a> {
    names: Vec<&'a str>,
    indices: HashMap<&'a str, NodeIndex>,
}

impl<'a> Nodes<'a> {
    pub(super) fn new(links: &'a [Link], hosts: &[Host], common: &HostTcp, problems: &mut Problems) -> Self {
        let mut nodes = Self { names: Vec::new(), indices: HashMap::new() };
        links.iter().flat_map(|link| &link.ends).for_each(|name| nodes.add(name.as_str()));
        if nodes.names.len() > MOST_NODES {
            let found = format!("{} nodes", nodes.names.len());
            problems.add(|| Problem::new("link", found, format!("at most {MOST_NODES} nodes")));
        }
        nodes.check_hosts(hosts, common, problems);
        nodes
    }

    /// The node's index. If there is no such node, adds a problem with the key at `path`.
    pub(super) fn find(
        &self,
        name: &Name,
        path: impl FnOnce() -> String,
        problems: &mut Problems,
    ) -> Option<NodeIndex> {
        let index = self.indices.get(name.as_str()).copied();
        if index.is_none() {
            problems.add(|| self.unknown(name, path()));
        }
        index
    }

    pub(super) fn into_models(self, hosts: &[Host], common: &HostTcp) -> Vec<Node> {
        let hosts: HashMap<&str, &Host> = hosts.iter().map(|host| (host.name.as_str(), host)).collect();
        let model = |name: &str| {
            let tcp = hosts.get(name).map_or(common, |host| &host.tcp);
            Node {
                name: name.to_owned(),
                tcp: TcpSettings {
                    rmem_max_bytes: tcp.rmem_max.get(),
                    rmem_default_bytes: tcp.rmem_default.get(),
                    wmem_max_bytes: tcp.wmem_max.get(),
                    wmem_default_bytes: tcp.wmem_default.get(),
                    notsent_lowat_bytes: tcp.notsent_lowat.map(|bytes| bytes.get()),
                    initial_window_packets: tcp.initial_window,
                    gso_max_segs: tcp.gso_max_segs,
                    min_tso_segs: tcp.min_tso_segs,
                    slow_start_after_idle: tcp.slow_start_after_idle,
                    remember_ssthresh: tcp.remember_ssthresh,
                    syn_linear_timeouts: tcp.syn_linear_timeouts,
                    pacing_percent: [tcp.pacing_ss_ratio, tcp.pacing_ca_ratio],
                },
            }
        };
        self.names.into_iter().map(model).collect()
    }

    fn add(&mut self, name: &'a str) {
        // More than MOST_NODES nodes are refused, so an index that does not fit is never used.
        let index = NodeIndex::try_from(self.names.len()).unwrap_or(NodeIndex::MAX);
        if let Entry::Vacant(entry) = self.indices.entry(name) {
            entry.insert(index);
            self.names.push(name);
        }
    }

    fn check_hosts(&self, hosts: &[Host], common: &HostTcp, problems: &mut Problems) {
        // A problem with the common settings is reported once, not for every host that has them.
        let is_common_sound = check_buffers(common, "tcp", problems);
        for host in hosts {
            let path = join("host", host.name.as_str());
            self.find(&host.name, || path.clone(), problems);
            if is_common_sound {
                check_buffers(&host.tcp, &join(&path, "tcp"), problems);
            }
        }
    }

    fn unknown(&self, name: &Name, path: String) -> Problem {
        const SHOWN: usize = 20;
        let mut allowed = format!("a node that a link names: {}", any_of(self.names.iter().copied().take(SHOWN)));
        if self.names.len() > SHOWN {
            allowed.push_str(" and others");
        }
        Problem::new(path, format!("\"{name}\""), allowed)
            .did_you_mean(closest(name.as_str(), self.names.iter().copied()))
    }
}

/// Whether no buffer begins with more than its maximum. If one does, adds a problem with the settings at `path`.
fn check_buffers(tcp: &HostTcp, path: &str, problems: &mut Problems) -> bool {
    let mut sound = true;
    for (kind, default, max) in [("rmem", &tcp.rmem_default, &tcp.rmem_max), ("wmem", &tcp.wmem_default, &tcp.wmem_max)]
    {
        if default.get() > max.get() {
            let allowed = format!("at most {kind}_max = {max}");
            problems.add(|| Problem::new(format!("{path}.{kind}_default"), default.to_string(), allowed));
            sound = false;
        }
    }
    sound
}
