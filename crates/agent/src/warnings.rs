//! Warnings for readers of the results.

use std::collections::BTreeSet;

/// Further kinds of warnings are only counted, so that the warnings do not become a log.
const MOST: usize = 50;

/// Warnings in the order of their first appearance, each once.
#[derive(Debug, Default)]
pub(crate) struct Warnings {
    texts: Vec<String>,
    seen: BTreeSet<String>,
    more: u64,
}

impl Warnings {
    pub(crate) fn add(&mut self, text: impl Into<String>) {
        let text = text.into();
        if self.seen.contains(&text) {
            return;
        }
        if self.texts.len() == MOST {
            self.more += 1;
            return;
        }
        self.seen.insert(text.clone());
        self.texts.push(text);
    }

    pub(crate) fn into_texts(mut self) -> Vec<String> {
        if self.more > 0 {
            self.texts.push(format!("... and {} more", self.more));
        }
        self.texts
    }
}
