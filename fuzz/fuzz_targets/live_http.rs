//! Feeds what a stranger sends on one connection to a server that has a test for it: HTTP/1.1 or HTTP/2, the page's requests and
//! WebSockets, and the requests of other people's programs.
//!
//! The first byte chooses the protocol, and all others are sent. The connection must end, whatever was sent, and answers over HTTP/1.1
//! have whole heads, known statuses and the page's policy.

#![no_main]

use bufferscope_live::server::fuzzed::{Http, http, statuses};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Some((how, bytes)) = bytes.split_first() else { return };
    let how = match how {
        b'2' => Http::Two,
        b's' => Http::Secure,
        _ => Http::Clear,
    };
    // Timeouts are over as soon as nothing else is left to do.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    let answers = runtime.block_on(http(bytes, how)).unwrap();
    if how != Http::Two {
        statuses(&answers);
    }
});
