//! The bodies of answers.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};

use super::compatible::Exact;
use super::load::{Download, PIECE_BYTES};

/// What an answer has behind its head.
pub(super) enum Content {
    /// These bytes, or none.
    Whole(Option<Bytes>),
    /// Load, until it is asked to stop.
    Load(Box<Download>),
    /// So many bytes of load.
    Exact(Box<Exact>),
}

/// The body of an answer ends before the length that its head promised.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the load was stopped")]
pub(super) struct Cut;

impl From<&'static str> for Content {
    fn from(text: &'static str) -> Self {
        Self::Whole(Some(Bytes::from_static(text.as_bytes())))
    }
}

impl Body for Content {
    type Data = Bytes;
    type Error = Cut;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Cut>>> {
        match &mut *self {
            Self::Whole(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Self::Load(load) => load.poll(context, PIECE_BYTES).map(|piece| piece.map(|bytes| Ok(Frame::data(bytes)))),
            Self::Exact(load) => load.poll(context).map(|piece| piece.map(|bytes| bytes.map(Frame::data))),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Whole(bytes) => bytes.is_none(),
            Self::Load(_) => false,
            Self::Exact(load) => load.left() == 0,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64)),
            Self::Load(_) => SizeHint::default(),
            Self::Exact(load) => SizeHint::with_exact(load.left()),
        }
    }
}
