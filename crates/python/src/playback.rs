//! The playback of a video.

use bufferscope_programs::Playback;
use pyo3::prelude::*;

/// When each segment of a video is played, in order, if they arrive at these times. Those at the end that have to wait
/// for further ones are missing.
#[pyfunction]
pub(crate) fn playback(arrivals_ns: Vec<u64>, segment_ns: u64, startup_ns: u64, resume_ns: u64) -> Vec<u64> {
    Playback::new(segment_ns, startup_ns, resume_ns).times(arrivals_ns)
}
