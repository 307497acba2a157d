//! Experiment files as a user writes them, one module a subject. They are one program, because each program of tests
//! links everything that it uses once more.

mod bad_input;
mod common;
mod experiment;
mod hostile;
mod load_tests;
mod notes;
mod overrides;
mod population;
mod properties;
mod schema;
