//! Interned names: a row carries eight bytes instead of a string.

use std::collections::HashMap;
use std::num::NonZeroU32;
use std::sync::Arc;
#[cfg(feature = "parquet")]
use std::sync::atomic::{AtomicU64, Ordering};

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

    /// A number that no other name of the recorder has.
    #[cfg(feature = "parquet")]
    pub(crate) fn key(self) -> u64 {
        u64::from(self.text) << 32 | u64::from(self.number.map_or(0, NonZeroU32::get))
    }
}

/// The texts of one run's names.
#[derive(Debug, Default)]
pub(crate) struct Names {
    #[cfg(feature = "parquet")]
    id: Id,
    texts: Vec<Arc<str>>,
    indices: HashMap<Arc<str>, u32>,
}

/// Differs from that of any other names of this process.
#[cfg(feature = "parquet")]
#[derive(Debug)]
struct Id(u64);

#[cfg(feature = "parquet")]
impl Default for Id {
    fn default() -> Self {
        /// Ids begin with 1.
        static LAST: AtomicU64 = AtomicU64::new(0);
        Self(LAST.fetch_add(1, Ordering::Relaxed) + 1)
    }
}

impl Names {
    /// Tells these names from those of any other recorder of this process, with which they share no number.
    #[cfg(feature = "parquet")]
    pub(crate) fn id(&self) -> u64 {
        self.id.0
    }

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
