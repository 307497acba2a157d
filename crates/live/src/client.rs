//! `bufferscope-live measure`: the near end of a test.

pub mod prober;
