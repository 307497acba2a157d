//! The file format: JSON text sequences (RFC 7464), of which the first record describes the file and each other one is
//! an event.

use std::io::{self, Write};

use serde_json::{Value, json};

/// Begins each record.
const RECORD_SEPARATOR: u8 = 0x1e;
const NS_PER_MS: f64 = 1e6;

/// What a file says about itself.
#[derive(Clone, Copy, Debug)]
pub struct Header<'a> {
    /// What the file shows, in a few words.
    pub title: &'a str,
    /// How it was made.
    pub description: &'a str,
    /// The name of the connection.
    pub flow: &'a str,
    /// The host whose end of the connection is shown.
    pub host: &'a str,
    /// Whether that is the client.
    pub of_client: bool,
    /// The interval of the samples that the events are derived from; `None` if they were seen as they happened.
    pub sampled_ns: Option<u64>,
}

/// Writes the first record.
///
/// # Errors
/// Those of `out`.
pub fn write_header(out: &mut impl Write, header: &Header<'_>) -> io::Result<()> {
    let mut common =
        json!({ "protocol_type": ["TCP"], "time_format": "relative", "reference_time": 0, "group_id": header.flow });
    if let Some(interval_ns) = header.sampled_ns {
        common["sample_interval"] = json!(ms(interval_ns));
    }
    let kind = if header.of_client { "client" } else { "server" };
    write_record(
        out,
        &json!({
            // Readers look for these two at the beginning of the file.
            "qlog_version": "0.3",
            "qlog_format": "JSON-SEQ",
            "title": header.title,
            "description": header.description,
            "trace": {
                "title": header.title,
                "common_fields": common,
                "vantage_point": { "name": header.host, "type": kind },
            },
        }),
    )
}

/// Writes an event.
///
/// # Errors
/// Those of `out`.
pub fn write_event(out: &mut impl Write, t_ns: u64, (name, data): &(&str, Value)) -> io::Result<()> {
    write_record(out, &json!({ "time": ms(t_ns), "name": name, "data": data }))
}

fn write_record(out: &mut impl Write, record: &Value) -> io::Result<()> {
    out.write_all(&[RECORD_SEPARATOR])?;
    serde_json::to_writer(&mut *out, record)?;
    out.write_all(b"\n")
}

/// A time in milliseconds, as all times in qlog are.
pub(crate) fn ms(ns: u64) -> f64 {
    ns as f64 / NS_PER_MS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_json_between_a_separator_and_a_line_feed() {
        let mut out = Vec::new();
        write_event(&mut out, 1_234_567, &("tcp:slow_start_began", json!({ "congestion_window": 1448 }))).unwrap();
        let text =
            "\u{1e}{\"time\":1.234567,\"name\":\"tcp:slow_start_began\",\"data\":{\"congestion_window\":1448}}\n";
        assert_eq!(String::from_utf8(out).unwrap(), text);
    }

    #[test]
    fn a_file_is_recognised_by_its_first_256_bytes() {
        let header =
            Header { title: "t", description: "d", flow: "bulk/1", host: "h1", of_client: true, sampled_ns: None };
        let mut out = Vec::new();
        write_header(&mut out, &header).unwrap();
        assert!(out.starts_with(b"\x1e{\"qlog_version\":\"0.3\",\"qlog_format\":\"JSON-SEQ\","));
    }
}
