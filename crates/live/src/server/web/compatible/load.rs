//! The load of other people's programs: bodies of a given length.

use std::pin::Pin;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Body, Incoming};

use super::Refused;
use super::other_tests::Flow;
use crate::server::web::content::Cut;
use crate::server::web::load::Download;

/// So many random bytes; the answer breaks off if a limit or the end of the test comes first.
pub(in crate::server::web) struct Exact {
    load: Download,
    left: u64,
    flow: Flow,
}

impl Exact {
    pub(super) fn new(flow: Flow, bytes: u64) -> Self {
        let load = Download::new(std::sync::Arc::clone(&flow.other.down), 0);
        Self { load, left: bytes, flow }
    }

    /// What is left of it.
    pub(in crate::server::web) fn left(&self) -> u64 {
        self.left
    }

    /// The next piece.
    pub(in crate::server::web) fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Bytes, Cut>>> {
        if self.left == 0 {
            return Poll::Ready(None);
        }
        let piece = self.flow.caller.piece().load(Ordering::Relaxed);
        let most = usize::try_from(self.left).unwrap_or(usize::MAX).min(piece);
        let Some(bytes) = std::task::ready!(self.load.poll(context, most)) else { return Poll::Ready(Some(Err(Cut))) };
        self.left -= bytes.len() as u64;
        self.flow.caller.moves();
        Poll::Ready(Some(Ok(bytes)))
    }
}

/// Receives a body of any length, counts its bytes and drops them; returns how many they were.
pub(super) async fn receive(mut body: Incoming, flow: &Flow) -> Result<u64, Refused> {
    let cut = |reason: &str| Refused::new(hyper::StatusCode::BAD_REQUEST, reason);
    let mut received = 0;
    while let Some(frame) = std::future::poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await {
        let frame = frame.map_err(|_| cut("the body broke off"))?;
        let bytes = frame.data_ref().map_or(0, |data| data.len() as u64);
        flow.other.up.has_received(bytes);
        received += bytes;
        flow.caller.moves();
        if flow.other.up.stops() {
            return Err(Refused::limited("a limit of the server for a test is reached".to_owned(), super::BUSY));
        }
    }
    Ok(received)
}
