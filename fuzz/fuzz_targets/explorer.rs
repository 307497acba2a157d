//! Feeds what a shared link of the explorer holds to its core: the text of an experiment and, after a zero byte, the rest of the
//! request as JSON. The run is advanced for a moment.
//!
//! Whatever comes in is a description or a reason, the clock goes on to where it is asked to go, and columns are of equal length.

#![no_main]

use std::time::{Duration, Instant};

use bufferscope_explorer::{Columns, Request, Session, Step};
use libfuzzer_sys::fuzz_target;

/// A run is left after this time.
const TIME: Duration = Duration::from_millis(50);
/// Steps of a run.
const STEPS: u64 = 20;

/// Every column of the directory lies within the numbers.
fn check(columns: &Columns) {
    let directory: serde_json::Value = serde_json::from_slice(&columns.directory()).unwrap();
    let parts = directory.as_object().unwrap().values().flat_map(|part| part.as_object().unwrap().values());
    for column in parts.flat_map(|name| name.as_object().unwrap().values()) {
        let Some([kind, begins, count]) = column.as_array().map(Vec::as_slice) else { continue };
        let bits: u64 = kind.as_str().unwrap()[1..].parse().unwrap();
        let end = begins.as_u64().unwrap() + count.as_u64().unwrap() * bits / 8;
        assert!(end <= 8 * columns.words().len() as u64, "{column}");
    }
}

fuzz_target!(|bytes: &[u8]| {
    if let Err(refusal) = Session::open(bytes) {
        assert!(!serde_json::to_string(&refusal).unwrap().is_empty());
    }
    let (toml, more) = bytes.split_at(bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len()));
    let Ok(toml) = std::str::from_utf8(toml) else { return };
    let mut request = serde_json::json!({"toml": ""});
    if let Ok(serde_json::Value::Object(more)) = serde_json::from_slice(more.get(1..).unwrap_or_default()) {
        request = more.into();
    }
    request["toml"] = toml.into();
    let Ok(request) = serde_json::from_value::<Request>(request) else { return };
    let (opened, mut session) = match Session::of(request) {
        Ok(opened) => opened,
        Err(refusal) => {
            let text = serde_json::to_string(&refusal).unwrap();
            assert!(text.len() < 400_000, "{} bytes", text.len());
            return;
        }
    };
    let opened = serde_json::to_value(&opened).unwrap();
    let duration_ns = opened["duration_ns"].as_u64().expect("a duration");
    let (begun, mut columns) = (Instant::now(), Columns::default());
    for step in 1..=STEPS {
        let until_ns = (duration_ns / STEPS).saturating_mul(step).min(50_000_000 * step);
        columns.clear();
        match session.step(until_ns, &mut columns) {
            Ok(Step::GoesOn) => assert_eq!(session.now_ns(), until_ns),
            Ok(Step::AtEnd) => {
                if let Ok(summary) = session.finish(&mut columns) {
                    assert!(!serde_json::to_string(&summary).unwrap().is_empty());
                }
                check(&columns);
                return;
            }
            Err(_) => return,
        }
        check(&columns);
        if begun.elapsed() > TIME {
            return;
        }
    }
});
