//! `bufferscope-live measure URL`: with servers that are not bufferscope's own.

use std::process::ExitCode;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use bufferscope_verdict::input::{Protocol, Responsiveness};
use hyper::Uri;
use serde_json::json;

use super::{AT_MOST_S, Begun, Draft, Loaded, MeasureArguments, Printer};
use crate::client::observe::observed;
use crate::client::others::{self, Family, Target, config::WELL_KNOWN, ndt7};
use crate::client::secure::Trust;
use crate::client::{COOL_DOWN, IDLE};
use crate::time::SECOND;

/// The longest duration of a loaded phase with the intervals of version 09, which needs eight of them for a stable result.
const LONG_AT_MOST_S: u64 = 60;
const LONG_INTERVALS_NS: i64 = 5 * SECOND as i64;

/// Runs a test with the server of a URL.
pub(super) async fn run(arguments: &MeasureArguments, url: &Uri, interrupted: &AtomicBool) -> Result<ExitCode, String> {
    if arguments.continuous {
        return Err("--continuous: only a server of bufferscope can be watched".to_owned());
    }
    if arguments.flood || arguments.kernel_send_buffer {
        return Err("--flood and --kernel-send-buffer: only with a server of bufferscope".to_owned());
    }
    let (url, target) = match url.scheme_str() {
        Some("https") => {
            let long = matches!(arguments.draft, Some(Draft::Version09));
            let interval_ns = if long { LONG_INTERVALS_NS } else { SECOND as i64 };
            (with_path(url)?, Target::Responsiveness(Responsiveness::with_interval(interval_ns)))
        }
        Some("ndt7" | "wss" | "ws") => (ndt7::base(url)?, Target::Ndt7),
        found => {
            return Err(format!(
                "found a URL that begins with {}://; allowed: https:// (responsiveness), ndt7://, wss:// and ws:// (ndt7)",
                found.unwrap_or_default()
            ));
        }
    };
    test(arguments, url, target, interrupted).await
}

fn trust(arguments: &MeasureArguments) -> Trust {
    match arguments.fingerprint {
        Some(fingerprint) => Trust::Fingerprint(fingerprint),
        None if arguments.insecure => Trust::Any,
        None => Trust::System,
    }
}

fn family(arguments: &MeasureArguments) -> Family {
    match (arguments.v4, arguments.v6) {
        (true, _) => Family::V4,
        (_, true) => Family::V6,
        _ => Family::Any,
    }
}

async fn test(
    arguments: &MeasureArguments,
    url: Uri,
    target: Target,
    interrupted: &AtomicBool,
) -> Result<ExitCode, String> {
    let at_most_s = arguments.at_most.unwrap_or(if arguments.draft.is_some() { LONG_AT_MOST_S } else { AT_MOST_S });
    let settings = others::Settings {
        url,
        target,
        trust: trust(arguments),
        family: family(arguments),
        phases: arguments.phases(&[Loaded::Download, Loaded::Upload]),
        flows: arguments.flows,
        congestion: arguments.congestion.clone(),
        interface: arguments.interface.clone(),
        at_most: Duration::from_secs(at_most_s),
        idle: IDLE,
        cool_down: COOL_DOWN,
    };
    let (protocol, responsiveness) = match target {
        Target::Responsiveness(parameters) => (Protocol::Responsiveness, Some(parameters)),
        Target::Ndt7 => (Protocol::Ndt7, None),
    };
    let parameters = json!({
        "protocol": protocol,
        "responsiveness": responsiveness,
        "congestion": settings.congestion,
        "flows": settings.flows,
        "at_most_s": at_most_s,
    });
    let begun = Begun { host: &arguments.host, phases: &settings.phases, parameters };
    let printer = Printer::new(arguments, begun);
    let measurement = others::measure(&settings, interrupted, |event| printer.event(&event))
        .await
        .map_err(|error| error.to_string())?;
    let observed = observed(&measurement);
    let verdict = bufferscope_verdict::judge(&observed);
    printer.end(&measurement, &observed, &verdict);
    Ok(if measurement.ended_early.is_none() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// A URL without a path means the one where configurations usually are.
fn with_path(url: &Uri) -> Result<Uri, String> {
    let path = url.path_and_query().map_or("/", |path| path.as_str());
    if path != "/" {
        return Ok(url.clone());
    }
    let mut parts = url.clone().into_parts();
    parts.path_and_query = Some(WELL_KNOWN.parse().map_err(|error| format!("{WELL_KNOWN}: {error}"))?);
    Uri::from_parts(parts).map_err(|error| format!("{url}: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_without_a_path_means_the_usual_one() {
        let path = |url: &str| with_path(&url.parse().unwrap()).unwrap().to_string();
        assert_eq!(path("https://example.org"), "https://example.org/.well-known/nq");
        assert_eq!(path("https://[2001:db8::1]:4043/"), "https://[2001:db8::1]:4043/.well-known/nq");
        assert_eq!(path("https://example.org/api/v1/config?a=b"), "https://example.org/api/v1/config?a=b");
    }
}
