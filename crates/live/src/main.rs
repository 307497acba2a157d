//! `bufferscope-live`: see the library.

fn main() {}
