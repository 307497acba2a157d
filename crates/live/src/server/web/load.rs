//! The load of a browser: the body of an answer, and that of a request.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Body, Incoming};
use tokio::time::Sleep;

use crate::load::{LONGEST_SLEEP, Shared, pool};

/// What is sent at once.
pub(super) const PIECE_BYTES: usize = 64 * 1024;
/// The longest body of one upload; the page sends one after the other.
pub(super) const LONGEST_UPLOAD: u64 = 64 * 1024 * 1024;

/// Random bytes until the load stops.
pub(super) struct Download {
    shared: Arc<Shared>,
    offset: usize,
    sleep: Option<Pin<Box<Sleep>>>,
}

impl Download {
    pub(super) fn new(shared: Arc<Shared>, index: u16) -> Self {
        // Connections do not send the same bytes at the same time.
        Self { shared, offset: usize::from(index) * PIECE_BYTES / 4 % (pool().len() - PIECE_BYTES), sleep: None }
    }

    /// The next piece, of at most so many bytes; `None` when the load stops.
    pub(super) fn poll(&mut self, context: &mut Context<'_>, most: usize) -> Poll<Option<Bytes>> {
        loop {
            if self.shared.stops() {
                return Poll::Ready(None);
            }
            if let Some(sleep) = &mut self.sleep {
                std::task::ready!(sleep.as_mut().poll(context));
                self.sleep = None;
            }
            let Some(wait) = self.shared.pace.as_ref().and_then(|pace| pace.wait()) else { break };
            self.sleep = Some(Box::pin(tokio::time::sleep(wait.min(LONGEST_SLEEP))));
        }
        let bytes = most.min(PIECE_BYTES);
        let piece = &pool()[self.offset..self.offset + bytes];
        self.offset = (self.offset + bytes) % (pool().len() - PIECE_BYTES);
        self.shared.has_sent(bytes as u64);
        Poll::Ready(Some(Bytes::from_static(piece)))
    }
}

/// How an upload ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Uploaded {
    /// It was received.
    Whole,
    /// It is too long.
    TooLong,
    /// The load was asked to stop, or the connection failed.
    Cut,
}

/// Receives a body, counts its bytes and drops them.
pub(super) async fn receive(mut body: Incoming, shared: &Shared) -> Uploaded {
    let mut left = LONGEST_UPLOAD;
    while let Some(frame) = std::future::poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await {
        let Ok(frame) = frame else { return Uploaded::Cut };
        let bytes = frame.data_ref().map_or(0, |data| data.len() as u64);
        shared.has_received(bytes);
        match left.checked_sub(bytes) {
            Some(rest) => left = rest,
            None => return Uploaded::TooLong,
        }
        if shared.stops() {
            return Uploaded::Cut;
        }
    }
    Uploaded::Whole
}

/// Receives a body of at most `most` bytes; `None` if it is longer, or the connection fails. Memory grows only as bytes
/// arrive.
pub(super) async fn collect(mut body: Incoming, most: usize) -> Option<Vec<u8>> {
    let mut whole = Vec::new();
    while let Some(frame) = std::future::poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await {
        if let Ok(data) = frame.ok()?.into_data() {
            (whole.len() + data.len() <= most).then_some(())?;
            whole.extend_from_slice(&data);
        }
    }
    Some(whole)
}
