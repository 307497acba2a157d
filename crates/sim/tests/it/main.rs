//! Runs of the simulator as a whole, one module a subject. They are one program, because each program of tests links
//! everything that it uses once more.

mod bbr;
mod common;
mod controls;
mod datagrams;
mod determinism;
mod dualpi2;
mod examples;
mod fair_queues;
mod footprint;
mod fq_pie;
mod impairments;
mod links;
mod marks;
mod matrix;
mod netalyzr;
mod packetdrill;
mod pie;
mod ping;
mod programs;
mod progress;
mod properties;
mod recording;
mod rings;
mod small_queue;
mod stacked;
mod stepping;
mod streams;
mod token_bucket;
mod trace;
mod video;
mod wifi;
