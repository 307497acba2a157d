use super::super::{Qdisc, testing};
use super::*;

/// The discipline of a link whose queue has these keys, or why it is refused.
fn loaded(keys: &str) -> Result<FqPie, String> {
    match testing::loaded(&format!("qdisc = \"fq_pie\"{keys}"))? {
        Qdisc::FqPie(fq_pie) => Ok(fq_pie),
        other => unreachable!("{other:?}"),
    }
}

/// `tc` refuses an `alpha` or `beta` above 32 and an `ecn_prob` of 100, and the kernel 65,537 flows and a quantum above 1 MB.
/// A zero would not be passed on.
#[test]
fn what_tc_or_the_kernel_refuses_is_refused() {
    let refused = [
        ("alpha", "33"),
        ("alpha", "0"),
        ("beta", "33"),
        ("beta", "0"),
        ("ecn_prob", "100"),
        ("ecn_prob", "0"),
        ("flows", "65537"),
        ("flows", "0"),
        ("quantum", "1048577"),
        ("quantum", "0"),
        ("limit", "0"),
        ("memory_limit", "0"),
        ("memory_limit", "'4gb'"),
        ("target", "'0ms'"),
        ("tupdate", "'0ms'"),
    ];
    for (key, value) in refused {
        let message = loaded(&format!(", {key} = {value}")).unwrap_err();
        assert!(message.contains(&format!("queue.{key}: found")), "{message}");
    }
    assert_eq!(loaded(", flows = 65536, quantum = '1mb'").unwrap().flows, 65_536);
}

/// Seven drops of which two at the limit, and three marks.
#[test]
fn drops_at_the_limit_are_among_all_drops() {
    assert_eq!(FqPie::counts(7, &[500, 7, 2, 9, 3, 40, 1, 2, 9000]), counted([2, 5, 3]));
}

#[test]
fn the_arguments_name_the_switches() {
    let flags = |keys| {
        let settings = loaded(keys).unwrap().settings();
        settings.into_iter().filter(|each| each.1 == Setting::Flag).map(|each| each.0).collect::<Vec<_>>()
    };
    assert_eq!(flags(""), ["noecn", "nobytemode", "no_dq_rate_estimator"]);
    assert_eq!(
        flags(", ecn = true, bytemode = true, dq_rate_estimator = true"),
        ["ecn", "bytemode", "dq_rate_estimator"]
    );
}
