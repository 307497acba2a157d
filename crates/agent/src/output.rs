//! Output. A separate thread encodes and writes, so that neither a slow reader nor a large batch delays the traffic.

use std::io::{self, Write};
use std::sync::mpsc::{Sender, channel};
use std::thread::{JoinHandle, spawn};

use arrow_array::RecordBatch;
use bufferscope_records::frame::{self, FrameKind};
use bufferscope_records::{Batch, RecordsError, Sink, Table, ipc};
use serde::Serialize;

/// The progress of the run.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Progress {
    pub(crate) now_ns: u64,
    pub(crate) duration_ns: u64,
}

enum Message {
    Progress(Progress),
    Batch(Table, RecordBatch),
    Packets(Vec<u8>),
}

/// The thread that writes.
pub(crate) struct Output<W> {
    thread: JoinHandle<io::Result<W>>,
    sender: Sender<Message>,
}

impl<W: Write + Send + 'static> Output<W> {
    /// Starts the thread. With `at_end`, it writes no batch before [`finish`](Self::finish).
    pub(crate) fn start(out: W, at_end: bool) -> Self {
        let (sender, receiver) = channel();
        let thread = spawn(move || if at_end { write_at_end(out, receiver) } else { write_all(out, receiver) });
        Self { thread, sender }
    }

    /// Reports the progress of the run. Returns `false` if the output has no reader any more.
    pub(crate) fn progress(&self, progress: Progress) -> bool {
        self.sender.send(Message::Progress(progress)).is_ok()
    }

    /// Passes captured packets on.
    pub(crate) fn packets(&self, payload: Vec<u8>) {
        // If the output has no reader any more, progress reports it.
        let _ = self.sender.send(Message::Packets(payload));
    }

    /// A sink for the batches of a recorder.
    pub(crate) fn sink(&self) -> BatchSender {
        BatchSender(self.sender.clone())
    }

    /// Waits until everything is written, and returns the writer. All sinks must have been dropped.
    pub(crate) fn finish(self) -> io::Result<W> {
        drop(self.sender);
        self.thread.join().map_err(|_| io::Error::other("the writing thread panicked"))?
    }
}

/// Passes batches to the thread that writes.
#[derive(Clone, Debug)]
pub(crate) struct BatchSender(Sender<Message>);

impl Sink for BatchSender {
    type Output = ();

    fn write(&mut self, table: Table, batch: &Batch<'_>) -> Result<(), RecordsError> {
        self.0.send(Message::Batch(table, batch.to_arrow())).map_err(|_| RecordsError::Closed)
    }

    fn finish(self) -> Result<(), RecordsError> {
        Ok(())
    }
}

fn write_at_end<W: Write>(mut out: W, messages: impl IntoIterator<Item = Message>) -> io::Result<W> {
    let mut kept = Vec::new();
    for message in messages {
        match message {
            Message::Progress(_) => out = write_all(out, [message])?,
            Message::Batch(..) | Message::Packets(_) => kept.push(message),
        }
    }
    write_all(out, kept)
}

fn write_all<W: Write>(mut out: W, messages: impl IntoIterator<Item = Message>) -> io::Result<W> {
    for message in messages {
        match message {
            Message::Progress(progress) => write_json(&mut out, FrameKind::Progress, &progress)?,
            Message::Batch(table, batch) => {
                let stream = ipc::encode(table, &batch).map_err(io::Error::other)?;
                frame::write_batch(&mut out, table, &stream)?;
            }
            Message::Packets(payload) => frame::write(&mut out, FrameKind::Packets, &[&payload])?,
        }
    }
    Ok(out)
}

/// Writes a frame whose payload is JSON.
pub(crate) fn write_json(out: &mut impl Write, kind: FrameKind, value: &impl Serialize) -> io::Result<()> {
    frame::write(out, kind, &[&serde_json::to_vec(value)?])
}
