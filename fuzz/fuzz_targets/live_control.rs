//! Feeds arbitrary streams to the readers of the control connection, of tokens and of networks.
//!
//! A message that is read must be written as one that is read as the same.

#![no_main]

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use bufferscope_live::server::allow::Network;
use bufferscope_live::wire::control::{Answer, LONGEST_REQUEST, Request, receive, send};
use bufferscope_live::wire::token::Token;
use libfuzzer_sys::fuzz_target;

/// The result of a future that has all it needs.
fn now<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(result) => result,
        Poll::Pending => panic!("reading from memory waits"),
    }
}

fuzz_target!(|bytes: &[u8]| {
    let mut stream = bytes;
    while let Ok(request) = now(receive::<Request>(&mut stream, LONGEST_REQUEST)) {
        let mut written = Vec::new();
        now(send(&mut written, &request)).unwrap();
        // Escapes may make it longer.
        let read: Request = now(receive(&mut &written[..], 8 * LONGEST_REQUEST)).unwrap();
        assert_eq!(read, request);
    }
    let _ = now(receive::<Answer>(&mut &bytes[..], bytes.len()));
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let _ = serde_json::from_str::<Answer>(text);
    if let Ok(token) = text.parse::<Token>() {
        assert!(token.to_string().parse::<Token>() == Ok(token));
    }
    if let Ok(network) = text.parse::<Network>() {
        let _ = network.contains([192, 0, 2, 1].into());
    }
});
