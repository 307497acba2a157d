//! Interned names: a row carries eight bytes instead of a string.

use std::collections::HashMap;
use std::num::NonZeroU32;
use std::sync::Arc;

/// A name known to one [`Recorder`](crate::Recorder); meaningless to any other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Name {
    text: u32,
    number: Option<NonZeroU32>,
}

impl Name {
    /// `<name>/<number>`: one of many things with that name, numbered from 1. Such a name is not stored, so a run may
    /// have millions of them one after the other.
    pub fn numbered(self, number: u32) -> Self {
        Self { number: NonZeroU32::new(number), ..self }
    }
}

/// The texts of one run's names.
#[derive(Debug, Default)]
pub(crate) struct Names {
    texts: Vec<Arc<str>>,
    indices: HashMap<Arc<str>, u32>,
}

impl Names {
    /// The same text always gives the same name.
    pub(crate) fn intern(&mut self, text: &str) -> Name {
        if let Some(&index) = self.indices.get(text) {
            return Name { text: index, number: None };
        }
        let index = u32::try_from(self.texts.len()).expect("a run has fewer than 2^32 names");
        let text: Arc<str> = text.into();
        self.texts.push(Arc::clone(&text));
        self.indices.insert(text, index);
        Name { text: index, number: None }
    }

    /// Appends the text of a name. This does not use `write!`, which is slower: every sample of a flow has a name.
    pub(crate) fn write(&self, name: Name, out: &mut String) {
        out.push_str(&self.texts[name.text as usize]);
        if let Some(number) = name.number {
            out.push('/');
            out.push_str(itoa::Buffer::new().format(number.get()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(names: &Names, name: Name) -> String {
        let mut text = String::new();
        names.write(name, &mut text);
        text
    }

    #[test]
    fn numbered_names_are_distinct_and_not_kept() {
        let mut names = Names::default();
        let web = names.intern("web");
        assert_eq!([1, 17].map(|number| text(&names, web.numbered(number))), ["web/1", "web/17"]);
        assert_eq!(names.texts.len(), 1);
    }

    #[test]
    fn equal_texts_share_a_name_and_different_ones_do_not() {
        let mut names = Names::default();
        let bulk = names.intern("bulk/1");
        let web = names.intern("web/17");
        assert_eq!(names.intern("bulk/1"), bulk);
        assert_ne!(bulk, web);
        assert_eq!([bulk, web].map(|name| text(&names, name)), ["bulk/1", "web/17"]);
    }
}
