//! The experiment that the tests start from.
#![allow(dead_code, unreachable_pub, reason = "each test is a program of its own that uses part of this")]

use std::sync::LazyLock;

/// The UCAS lab "reproduce" with three queue sizes: a complete file, each key on a line of its own.
pub static LAB: LazyLock<String> = LazyLock::new(|| {
    let dumbbell = include_str!("../../../../scripts/agreement/dumbbell.toml");
    let (_, network) = dumbbell.split_once("[[link]]").unwrap();
    let changes = [("10ms", "5ms"), ("flows = 1\n", ""), ("cubic", "reno"), ("50ms", "100ms")];
    let network = changes.iter().fold(network.to_owned(), |text, (old, new)| text.replace(old, new));
    format!("{HEAD}\n[[link]]{network}\n{SWEEP}")
});

const HEAD: &str = r#"#:schema ./experiment.schema.json
title = "Reproducing bufferbloat: tail drop, three queue sizes"
source = "UCAS computer networks, lab 2"
duration = "60s"
figures = ["queue_length", "rtt", "cwnd"]
"#;

const SWEEP: &str = r#"[sweep]
"link.bottleneck.queue.limit" = ["50p", "100p", "200p"]

[[expect]]
metric = "rtt.max_ms"
where = { "link.bottleneck.queue.limit" = "200p" }
says = "about 70 % of the time above 250 ms"
band = [245, 320]
"#;

/// The lab with one piece of text replaced by another; the piece must be there.
pub fn lab_with(old: &str, new: &str) -> String {
    assert!(LAB.contains(old), "the lab has no {old:?}");
    LAB.replacen(old, new, 1)
}

/// The lab without its sweep and expectation.
pub fn lab_unswept() -> String {
    LAB.split("[sweep]").next().unwrap().to_owned()
}

/// `PATH=VALUE` overrides.
pub fn set<const N: usize>(overrides: [&str; N]) -> Vec<String> {
    overrides.map(str::to_owned).to_vec()
}
