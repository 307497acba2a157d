//! The rules of the verdict, one by one, on observations without noise whose numbers are worked out by hand.

mod build;
mod ends;
mod numbers;
mod outcomes;
mod places;
mod words;
