//! Whole tests between two ends, and what clients and servers may not do, one module a subject. They are one program,
//! because each program of tests links everything that it uses once more. `local.rs` looks at its own process, and is another.

mod abuse;
mod certificates;
mod common;
mod compatible;
mod faults;
mod floods;
mod handover;
mod monitors;
mod ndt7;
mod responsiveness;
mod rtc;
mod status;
mod tests;
mod web;
mod web_abuse;
