//! bufferscope.

pub mod packet;
pub mod tcp;
