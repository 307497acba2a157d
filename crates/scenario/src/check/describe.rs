//! What a key accepts, in words.

use super::shape::{Range, Shape};
use crate::suggest::any_of;

impl Shape {
    pub(crate) fn describe(&self) -> String {
        match self {
            Self::Table(keys) => format!("a table with the keys {}", any_of(keys.names())),
            Self::Tagged { tag, variants } => {
                format!("a table with the key {tag} = {}", any_of(variants.iter().map(|(word, _)| word.as_str())))
            }
            Self::Map(_) => "a table of named values".to_owned(),
            Self::Array { items, at_least } => describe_array(items, *at_least),
            Self::Tuple(items) => {
                let items: Vec<String> = items.iter().map(Self::describe).collect();
                format!("[{}]", items.join(", "))
            }
            Self::Either(shapes) => {
                let shapes: Vec<String> = shapes.iter().map(Self::describe).collect();
                shapes.join("; or ")
            }
            Self::Choice(words) => any_of(words.iter().map(String::as_str)),
            Self::Quantity(bounds) => bounds.describe(),
            Self::Text(rule) => rule.describe().to_owned(),
            Self::Integer { min, max } => format!("a whole number from {min} to {max}"),
            Self::Number(range) => range.describe(),
            Self::Boolean => "true or false".to_owned(),
            Self::Recursive(shape) => shape.describe(),
            Self::Plain => "a string, number, true or false".to_owned(),
            Self::Anything => "any value".to_owned(),
        }
    }
}

impl Range {
    fn describe(&self) -> String {
        let above = self.above.map(|above| format!(" above {above}"));
        let max = self.max.map(|max| format!(" up to {max}"));
        format!("a number{}{}", above.unwrap_or_default(), max.unwrap_or_default())
    }
}

fn describe_array(items: &Shape, at_least: usize) -> String {
    let (several, each) = match items.itself() {
        Shape::Table(_) | Shape::Tagged { .. } => ("tables, each headed by the key in double brackets, [[ ]]", None),
        item => ("an array", Some(item.describe())),
    };
    let least = if at_least > 0 { format!(" (at least {at_least})") } else { String::new() };
    let each = each.map(|item| format!(", each item {item}")).unwrap_or_default();
    format!("{several}{least}{each}")
}
