//! Feeds arbitrary files and overrides to the experiment loader.
//!
//! Whatever comes in, it must return: an experiment with at least one point, or an error of a few lines. The first line of the
//! input, if it starts with `--set `, is an override. What follows a zero byte is the content of every file that the experiment names. Finds more with
//! `cargo +nightly fuzz run experiment_toml -- -dict=fuzz/dictionaries/experiment_toml.dict`.

#![no_main]

use bufferscope_scenario::Experiment;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let (overrides, file) = split(bytes);
    let (file, trace) = file.split_at(file.iter().position(|byte| *byte == 0).unwrap_or(file.len()));
    let read = |_: &str| Ok(trace.get(1..).unwrap_or_default().to_vec());
    match Experiment::from_bytes_and_files(file, "fuzz.toml", &overrides, &read) {
        Ok(experiment) => {
            assert!(!experiment.points().is_empty());
            let points = experiment.points().len();
            let comparisons = experiment.expectations().iter().flat_map(|expectation| &expectation.comparisons);
            for comparison in comparisons {
                assert!(comparison.point < points && comparison.relative_to.is_none_or(|point| point < points));
            }
        }
        Err(error) => {
            let message = error.to_string();
            let lines: Vec<&str> = message.split('\n').collect();
            assert!(lines.len() <= 51, "{} lines", lines.len());
            for line in lines {
                let is_sound = line.starts_with("fuzz.toml: ") && !line.contains(char::is_control);
                assert!(is_sound && line.len() < 4000, "a line of {} bytes: {line:?}", line.len());
            }
            assert!(!message.contains("can't be read"), "passed the check but not serde: {message}");
        }
    }
});

fn split(bytes: &[u8]) -> (Vec<String>, &[u8]) {
    let Some(rest) = bytes.strip_prefix(b"--set ") else { return (Vec::new(), bytes) };
    let end = rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len());
    let (line, file) = rest.split_at(end);
    (vec![String::from_utf8_lossy(line).into_owned()], file)
}
