//! What a user should know about a file that is valid.

/// Notes found so far. Only the first few are kept: the others would repeat them for other keys of the file.
#[derive(Clone, Debug, Default)]
pub(crate) struct Notes {
    kept: Vec<String>,
    are_more: bool,
}

impl Notes {
    const KEPT: usize = 10;
    /// The line that replaces the notes beyond the limit.
    const MORE: &str = "and more of the same kind";

    /// Adds a note, once.
    pub(crate) fn add(&mut self, note: String) {
        if self.kept.contains(&note) {
            return;
        }
        if note == Self::MORE || self.kept.len() >= Self::KEPT {
            self.are_more = true;
        } else {
            self.kept.push(note);
        }
    }

    /// The notes, one per line, without line ends.
    pub(crate) fn into_lines(self) -> Vec<String> {
        let Self { kept: mut lines, are_more } = self;
        lines.extend(are_more.then(|| Self::MORE.to_owned()));
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(notes: impl IntoIterator<Item = String>) -> Vec<String> {
        let mut taken = Notes::default();
        notes.into_iter().for_each(|note| taken.add(note));
        taken.into_lines()
    }

    #[test]
    fn ten_are_kept_each_once() {
        let ten: Vec<String> = (0..10).map(|number| number.to_string()).collect();
        assert_eq!(lines([ten.clone(), ten.clone()].concat()), ten);
        let of_many = lines((0..500).map(|number| number.to_string()));
        assert_eq!((of_many.len(), of_many.last().map(String::as_str)), (11, Some(Notes::MORE)));
        assert_eq!(lines(of_many.clone()), of_many, "lines are notes again");
    }
}
