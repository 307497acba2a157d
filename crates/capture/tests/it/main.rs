//! Captures as files, one module a subject. They are one program, because each program of tests links everything that
//! it uses once more.

mod common;
mod copies;
mod decoding;
mod files;
mod garbage;
mod quic;
mod sessions;
