//! bufferscope.
