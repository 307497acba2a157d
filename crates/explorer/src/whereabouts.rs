//! Where in the text of an experiment a key is, for an editor.

use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Line and column of a problem, both from 1: of the key with this path, or of the table in which it is missing. `None` if
/// no part of the path is in the text.
pub(crate) fn locate(text: &str, path: &str) -> Option<(usize, usize)> {
    if let Some(position) = stated(path) {
        return Some(position);
    }
    let document = DeTable::parse(text).ok()?;
    let byte = find(document.get_ref(), &parts(path))?.start;
    let before = text.get(..byte)?;
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    Some((1 + before.matches('\n').count(), 1 + before[line_start..].chars().count()))
}

/// The position of an error of syntax, of which the path is `line 3, column 5`.
fn stated(path: &str) -> Option<(usize, usize)> {
    let (line, column) = path.strip_prefix("line ")?.split_once(", column ")?;
    Some((line.parse().ok()?, column.parse().ok()?))
}

/// The parts of a path. A part in quotes may have dots. `link[2]` has two parts: the second is an index, from 1.
fn parts(path: &str) -> Vec<String> {
    let (mut parts, mut part, mut quoted) = (Vec::new(), String::new(), false);
    for c in path.chars() {
        match c {
            '"' => quoted = !quoted,
            '.' | '[' if !quoted => parts.push(std::mem::take(&mut part)),
            ']' if !quoted => {}
            c => part.push(c),
        }
    }
    parts.push(part);
    parts.retain(|part| !part.is_empty());
    parts
}

/// The part of the text that has the last key of the path which exists.
fn find(table: &DeTable<'_>, path: &[String]) -> Option<Range<usize>> {
    let (first, rest) = path.split_first()?;
    let (key, value) = table.iter().find(|(key, _)| key.get_ref() == first)?;
    Some(find_in(value, rest).unwrap_or_else(|| key.span()))
}

fn find_in(value: &Spanned<DeValue<'_>>, path: &[String]) -> Option<Range<usize>> {
    match value.get_ref() {
        DeValue::Table(table) => find(table, path),
        DeValue::Array(items) => {
            let (first, rest) = path.split_first()?;
            let is_named = |item: &&Spanned<DeValue<'_>>| {
                item.get_ref().get("name").and_then(|name| name.get_ref().as_str()) == Some(first)
            };
            let numbered = || items.get(first.parse::<usize>().ok()?.checked_sub(1)?);
            let item = items.iter().find(is_named).or_else(numbered)?;
            Some(find_in(item, rest).unwrap_or_else(|| item.span()))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "title = \"é\"\n[[link]]\nname = \"line\"\n  rate = \"fast\"\nqueue = { limit = 3 }\n\n[[link]]\n\
                        ends = [\"a\", \"b\"]\n[sweep]\n\"link.line.rate\" = [1]\n";

    #[test]
    fn keys_are_found_by_name_number_and_quoted_parts() {
        for (path, position) in [
            ("title", (1, 1)),
            ("link.line.rate", (4, 3)),
            ("link.line.queue.limit", (5, 11)),
            ("link[2].ends", (8, 1)),
            ("sweep.\"link.line.rate\"", (10, 1)),
            ("line 7, column 9", (7, 9)),
        ] {
            assert_eq!(locate(TEXT, path), Some(position), "{path}");
        }
    }

    #[test]
    fn of_a_key_that_is_missing_the_table_is_found() {
        assert_eq!(locate(TEXT, "link.line.delay"), Some((2, 1)));
        assert_eq!(locate(TEXT, "sweep.seed"), Some((9, 2)));
        assert_eq!(locate(TEXT, "duration"), None);
        assert_eq!(locate(TEXT, ""), None);
        assert_eq!(locate("= [", "title"), None);
    }
}
