//! From captures to records.

use std::ops::ControlFlow;

use bufferscope_records::{Name, ProbeRow, Recorder, RecordsError, Sink};
use serde::Serialize;

use crate::Segment;
use crate::analysis::{Analysis, Settings, Summary};
use crate::session::{self, Choice, Follower, Session, SessionError, Source};

/// Captures could not be made into records.
#[derive(Debug, thiserror::Error)]
pub enum InspectError {
    /// They could not be read.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// The records could not be stored.
    #[error(transparent)]
    Records(#[from] RecordsError),
}

/// The results besides the records.
#[derive(Debug, Serialize)]
pub struct Inspected<T> {
    /// What was read.
    #[serde(flatten)]
    pub session: Session,
    /// The summary of TCP.
    #[serde(flatten)]
    pub tcp: Summary,
    /// The output of the records' sink.
    #[serde(skip)]
    pub output: T,
}

/// Reads captures to their ends and records their contents. Times in the records count from the first packet.
pub fn inspect<S: Sink>(
    sources: Vec<Source>,
    choice: &Choice,
    recorder: Recorder<S>,
    progress: &mut dyn FnMut(u64) -> ControlFlow<()>,
) -> Result<Inspected<S::Output>, InspectError> {
    let analysis = Analysis::new(Settings::default());
    let mut recording = Recording { recorder, analysis, pings: Vec::new() };
    let session = session::read(sources, choice, &mut recording, progress)?;
    let tcp = recording.analysis.finish(&mut recording.recorder);
    let output = recording.recorder.finish()?;
    Ok(Inspected { session, tcp, output })
}

/// Passes segments to the analysis of TCP, and pings to the recorder.
struct Recording<S: Sink> {
    recorder: Recorder<S>,
    analysis: Analysis,
    pings: Vec<Name>,
}

impl<S: Sink> Follower for Recording<S> {
    #[inline]
    fn segment(&mut self, segment: &Segment, first_ns: i64) {
        self.analysis.segment(segment, first_ns, &mut self.recorder);
    }

    fn ping(&mut self, name: &str) {
        self.pings.push(self.recorder.intern(name));
    }

    fn echo(&mut self, ping: usize, seq: u64, sent_ns: u64, rtt_ns: Option<u64>) {
        let probe = self.pings[ping];
        self.recorder.probe(ProbeRow { probe, seq, sent_ns, rtt_ns, owd_up_ns: None, owd_down_ns: None });
    }
}
