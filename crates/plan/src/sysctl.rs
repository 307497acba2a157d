//! Settings of the namespaces' kernels.
//!
//! The congestion control is not among them: every socket sets its own, because Linux lets a namespace have only the
//! machine's default.

use bufferscope_scenario::Scenario;

use super::Plan;

/// Number of SYN timeouts that do not double. Linux has this setting since 6.5; before that, the number is zero.
pub const SYN_LINEAR_TIMEOUTS: &str = "net.ipv4.tcp_syn_linear_timeouts";

/// Whether the kernel excludes slow-start thresholds from the metrics that it saves about connections. Linux has this
/// setting since 5.6; before that, they are not excluded.
const NO_SSTHRESH_METRICS_SAVE: &str = "net.ipv4.tcp_no_ssthresh_metrics_save";

/// Whether a kernel may lack this setting, because it then behaves as with this value anyway. (If a kernel cannot
/// exclude thresholds, `tcp_no_metrics_save` excludes everything.)
pub fn is_optional(key: &str, value: &str) -> bool {
    key.starts_with("net.ipv6.") || key == NO_SSTHRESH_METRICS_SAVE || (key == SYN_LINEAR_TIMEOUTS && value == "0")
}

/// Adds what every namespace needs, and each node's TCP settings.
pub(super) fn add(scenario: &Scenario, plan: &mut Plan) {
    let mut links = vec![0_u32; scenario.nodes.len()];
    scenario.links.iter().flat_map(|link| link.ends).for_each(|node| links[usize::from(node)] += 1);

    for namespace in &mut plan.namespaces {
        let quiet = ["net.ipv6.conf.all.disable_ipv6", "net.ipv6.conf.default.disable_ipv6"];
        namespace.sysctls.extend(quiet.map(|key| (key, "1".into())));
    }
    for (index, node) in scenario.nodes.iter().enumerate() {
        let sysctls = &mut plan.namespaces[index].sysctls;
        if links[index] > 1 {
            sysctls.push(("net.ipv4.ip_forward", "1".into()));
        }
        let tcp = &node.tcp;
        sysctls.extend([
            ("net.ipv4.conf.all.rp_filter", "0".into()),
            ("net.ipv4.conf.default.rp_filter", "0".into()),
            ("net.ipv4.tcp_no_metrics_save", u8::from(!tcp.remember_ssthresh).to_string()),
            (NO_SSTHRESH_METRICS_SAVE, u8::from(!tcp.remember_ssthresh).to_string()),
            ("net.ipv4.tcp_rmem", format!("4096 {} {}", tcp.rmem_default_bytes, tcp.rmem_max_bytes)),
            ("net.ipv4.tcp_wmem", format!("4096 {} {}", tcp.wmem_default_bytes, tcp.wmem_max_bytes)),
            ("net.ipv4.tcp_notsent_lowat", tcp.notsent_lowat_bytes.unwrap_or(u32::MAX.into()).to_string()),
            ("net.ipv4.tcp_min_tso_segs", tcp.min_tso_segs.to_string()),
            ("net.ipv4.tcp_slow_start_after_idle", u8::from(tcp.slow_start_after_idle).to_string()),
            (SYN_LINEAR_TIMEOUTS, tcp.syn_linear_timeouts.to_string()),
            ("net.ipv4.tcp_pacing_ss_ratio", tcp.pacing_percent[0].to_string()),
            ("net.ipv4.tcp_pacing_ca_ratio", tcp.pacing_percent[1].to_string()),
        ]);
    }
}
