//! Feeds arbitrary datagrams to the server's end of a page's data channel: instead of the page's, as its altered handshake, and
//! as chunks of SCTP within DTLS, which only a page with a session can send.
//!
//! The input is a list of steps: a byte that says what is done, a byte with the length of what follows, and that.

#![no_main]

use std::time::Duration;

use bufferscope_live::server::web::rtc::fuzzed::Ends;
use libfuzzer_sys::fuzz_target;

/// More steps find nothing that these do not.
const MOST_STEPS: usize = 40;

fuzz_target!(|bytes: &[u8]| {
    let (mut ends, mut rest) = (Ends::new(), bytes);
    for _ in 0..MOST_STEPS {
        let [what, length, after @ ..] = rest else { break };
        let (step, after) = after.split_at(usize::from(*length).min(after.len()));
        rest = after;
        match what % 8 {
            0 => drop(ends.take(step)),
            1 => ends.talk(usize::from(what / 8) * 8, step),
            2 => ends.write(step),
            3 => ends.wait(Duration::from_millis(100) * u32::from(*length)),
            4 => ends.send(step, true),
            _ => ends.send(step, false),
        }
        if !ends.is_open() {
            break;
        }
    }
    // What has come must not keep a channel's timers busy: a quiet channel is quiet.
    for _ in 0..3 {
        ends.wait(Duration::from_secs(60));
    }
});
