//! Statements about every text and every scenario.

use crate::common::LAB;
use bufferscope_scenario::testing::{arbitrary_scenario_to_load, experiment_text};
use bufferscope_scenario::{Experiment, ExperimentError};
use proptest::prelude::*;
use proptest::sample::{Index, select};

/// Whether the message has only lines that nothing can forge, not too many of them, and none a page long.
fn is_readable(error: &ExperimentError) -> bool {
    let message = error.to_string();
    let mut lines = message.split('\n');
    let is_sound = |line: &str| line.starts_with("any.toml: ") && !line.contains(char::is_control) && line.len() < 2000;
    lines.clone().count() <= 51 && lines.all(is_sound)
}

fn check(bytes: &[u8], overrides: &[String]) -> Result<(), TestCaseError> {
    if let Err(error) = Experiment::from_bytes(bytes, "any.toml", overrides) {
        prop_assert!(is_readable(&error), "{error}");
        prop_assert!(!error.to_string().contains("can't be read"), "passed the check but not serde: {error}");
    }
    Ok(())
}

/// Values that keys are likely to mishandle.
fn odd_value() -> impl Strategy<Value = String> {
    let words = [
        "0",
        "-1",
        "1",
        "9223372036854775807",
        "-9223372036854775808",
        "0.0",
        "1.5",
        "nan",
        "inf",
        "-inf",
        "true",
        "\"\"",
        "\"10mbit\"",
        "\"5ms\"",
        "\"100p\"",
        "\"150kb\"",
        "\"h1\"",
        "\"red\"",
        "\"tcp\"",
        "[]",
        "{}",
        "[[]]",
        "[\"0s\", \"1mbit\"]",
        "[[\"0s\", \"1mbit\"]]",
        "{ qdisc = \"codel\" }",
        "{ name = \"h1\" }",
        "1979-05-27",
        "\"\\u0000\"",
        "\"18446744073709551616b\"",
    ];
    prop_oneof![select(words.to_vec()).prop_map(str::to_owned), "\\PC{0,12}"]
}

proptest! {
    #[test]
    fn any_bytes_are_refused_in_one_line(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        check(&bytes, &[])?;
    }

    #[test]
    fn any_text_is_refused_in_one_line(text in "\\PC*") {
        check(text.as_bytes(), &[])?;
    }

    /// The lab's file with one line replaced, and with one byte replaced: almost right is where mistakes hide.
    #[test]
    fn a_damaged_file_is_loaded_or_refused_in_one_line(
        line in any::<Index>(), value in odd_value(), at in any::<Index>(), byte in any::<u8>(),
    ) {
        let mut lines: Vec<String> = LAB.lines().map(str::to_owned).collect();
        let line = line.get_mut(&mut lines);
        if let Some((key, _)) = line.clone().split_once(" = ") {
            *line = format!("{key} = {value}");
        }
        check(lines.join("\n").as_bytes(), &[])?;
        let mut bytes = LAB.as_bytes().to_vec();
        *at.get_mut(&mut bytes) = byte;
        check(&bytes, &[])?;
    }

    #[test]
    fn any_override_is_applied_or_refused_in_one_line(
        path in select(vec![
            "title", "duration", "sample", "sample.flows", "record", "figures", "link", "link.bottleneck", "link.bottleneck.rate", "link.bottleneck.ends",
            "link.bottleneck.queue", "link.bottleneck.queue.qdisc", "link.bottleneck.forward.queue", "link.bottleneck.reverse",
            "host.h1.tcp", "host.h1.tcp.rmem_max", "traffic.bulk.kind", "traffic.bulk.from", "traffic.ping.interval",
            "sweep.link.bottleneck.queue.limit", "sweep.\"traffic.bulk.flows\"", "expect", "sweep", "x",
        ]),
        value in odd_value(),
    ) {
        check(LAB.as_bytes(), &[format!("{path}={value}")])?;
        check(LAB.as_bytes(), &[value])?;
    }

    /// The strategy makes valid scenarios, and nothing is lost when they are written to a file and loaded again.
    #[test]
    fn a_scenario_written_to_a_file_is_loaded_as_it_was(scenario in arbitrary_scenario_to_load()) {
        let text = experiment_text(&scenario);
        let loaded = Experiment::parse(&text, "any.toml", &[]);
        let loaded = loaded.map_err(|error| TestCaseError::fail(format!("{error}\n{text}")))?;
        prop_assert_eq!(&loaded.points()[0].scenario, &scenario);
    }

    /// The result of loading depends on the text alone, not on the order of a hash map.
    #[test]
    fn the_same_text_gives_the_same_scenario(scenario in arbitrary_scenario_to_load()) {
        let text = experiment_text(&scenario);
        let load = || serde_json::to_string(Experiment::parse(&text, "any.toml", &[]).unwrap().points()).unwrap();
        prop_assert_eq!(load(), load());
    }
}
