//! "Did you mean ...?": the closest of the allowed words.

/// The allowed word that is closest to `found`, if it is so close that it was probably meant.
pub(crate) fn closest<'a>(found: &str, allowed: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    const LONGEST: usize = 64;
    if found.is_empty() || found.len() > LONGEST {
        return None;
    }
    let lower = found.to_ascii_lowercase();
    // Any letter is one error away from any other, so a single letter must be exact.
    let is_likely = |word: &&str| found.chars().nth(1).is_some() || word.starts_with(&lower);
    let distance = |word: &'a str| (strsim::damerau_levenshtein(&lower, &word.to_ascii_lowercase()), word);
    let (distance, word) = allowed.into_iter().filter(is_likely).map(distance).min_by_key(|(distance, _)| *distance)?;
    let tolerance = (found.chars().count().max(word.chars().count()) / 3).max(1);
    (distance <= tolerance).then_some(word)
}

/// The question that suggests a word found by [`closest`].
pub(crate) fn did_you_mean(word: &str) -> String {
    format!("did you mean {word}?")
}

/// `a, b, c or d`.
pub(crate) fn any_of<'a>(words: impl IntoIterator<Item = &'a str>) -> String {
    let words: Vec<&str> = words.into_iter().collect();
    match words.split_last() {
        None => "nothing".to_owned(),
        Some((only, [])) => (*only).to_owned(),
        Some((last, rest)) => format!("{} or {last}", rest.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_typing_error_finds_the_word_that_was_meant() {
        let allowed = ["rate", "delay", "overhead", "queue"];
        assert_eq!(closest("rat", allowed), Some("rate"));
        assert_eq!(closest("m", ["s", "ms"]), Some("ms"));
        assert_eq!(closest("QUEUE", allowed), Some("queue"));
        assert_eq!(closest("dealy", allowed), Some("delay"), "swapped neighbours count as one error");
    }

    #[test]
    fn an_unrelated_word_finds_nothing() {
        assert_eq!(closest("colour", ["rate", "delay"]), None);
        assert_eq!(closest("x", ["rate"]), None);
        assert_eq!(closest("p", ["s", "ns"]), None);
        assert_eq!(closest("", ["a"]), None);
        assert_eq!(closest("rate", []), None);
    }

    #[test]
    fn lists_read_as_english() {
        assert_eq!(any_of(["a"]), "a");
        assert_eq!(any_of(["a", "b", "c"]), "a, b or c");
    }
}
