//! Interned names: a row carries four bytes instead of a string.

use std::collections::HashMap;
use std::sync::Arc;

/// A name known to one [`Recorder`](crate::Recorder); meaningless to any other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Name(u32);

/// The names of one run.
#[derive(Debug, Default)]
pub(crate) struct Names {
    texts: Vec<Arc<str>>,
    indices: HashMap<Arc<str>, u32>,
}

impl Names {
    /// The same text always gives the same name.
    pub(crate) fn intern(&mut self, text: &str) -> Name {
        if let Some(&index) = self.indices.get(text) {
            return Name(index);
        }
        let index = u32::try_from(self.texts.len()).expect("a run has fewer than 2^32 names");
        let text: Arc<str> = text.into();
        self.texts.push(Arc::clone(&text));
        self.indices.insert(text, index);
        Name(index)
    }

    pub(crate) fn text(&self, name: Name) -> &str {
        &self.texts[name.0 as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_texts_share_a_name_and_different_ones_do_not() {
        let mut names = Names::default();
        let bulk = names.intern("bulk/1");
        let web = names.intern("web/17");
        assert_eq!(names.intern("bulk/1"), bulk);
        assert_ne!(bulk, web);
        assert_eq!((names.text(bulk), names.text(web)), ("bulk/1", "web/17"));
    }
}
