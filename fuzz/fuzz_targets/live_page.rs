//! Whatever a browser sends as a message of a page's control connection, or as the samples of a test, is read or refused; samples
//! that are read have a verdict.

#![no_main]

use std::collections::HashMap;
use std::sync::OnceLock;

use bufferscope_live::local::EndFacts;
use bufferscope_live::records::{ArrivalRow, ServerRecords};
use bufferscope_live::server::web::control::Ask;
use bufferscope_live::server::web::samples::{Page, Samples, judged};
use bufferscope_live::wire::SessionId;
use bufferscope_live::wire::control::{SessionLimits, Welcome};
use libfuzzer_sys::fuzz_target;

const BEGAN_NS: u64 = 1_700_000_000_000_000_000;

fn page() -> &'static Page {
    static PAGE: OnceLock<Page> = OnceLock::new();
    PAGE.get_or_init(|| Page {
        name: "192.0.2.7:47300".to_owned(),
        welcome: Welcome {
            version: String::new(),
            session: SessionId(1),
            key: String::new(),
            seen_as: String::new(),
            limits: SessionLimits { seconds: 180, flows: 8, bytes: 1, rate_bps: None },
            end: EndFacts::default(),
            shares: false,
            monitor: false,
        },
        began_ns: BEGAN_NS,
        held_ns: HashMap::new(),
    })
}

fuzz_target!(|bytes: &[u8]| {
    if let Ok(samples) = Samples::parse(bytes) {
        let arrivals = (0..300).map(|seq| ArrivalRow { seq, arrived_ns: BEGAN_NS + seq * 25_000_000 }).collect();
        let found = judged(&samples, ServerRecords { arrivals, ..ServerRecords::default() }, page());
        assert!(found["events"][1]["verdict"]["sentences"].is_array());
    }
    if let Ok(text) = std::str::from_utf8(bytes) {
        let _ = Ask::parse(text);
    }
});
