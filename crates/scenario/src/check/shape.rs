//! The schema in the form that the checker uses.
//!
//! It understands exactly the constructs that the structs of the file layer produce. Anything else is a mistake in
//! those structs and causes a panic. The first test that loads a file finds such a mistake.

use std::sync::LazyLock;

use schemars::JsonSchema;
use serde_json::{Map, Value as Json};

use crate::file::{About, Setup, Study};
use crate::qdisc::Queue;
use crate::quantity::{Bounds, SCHEMA_KEY};
use crate::text::TextRule;

/// The shapes of a whole file and of its parts.
pub(crate) static FILE: LazyLock<Shape> = LazyLock::new(|| Shape::of(&crate::schema()));
pub(crate) static ABOUT: LazyLock<Shape> = LazyLock::new(|| Shape::of(&source::part::<About>()));
pub(crate) static SETUP: LazyLock<Shape> = LazyLock::new(|| Shape::of(&source::part::<Setup>()));
pub(crate) static STUDY: LazyLock<Shape> = LazyLock::new(|| Shape::of(&source::part::<Study>()));
/// The shape of a queueing discipline, which contains itself: a discipline may hold others.
static QUEUE: LazyLock<Shape> = LazyLock::new(source::queue);

/// Where the schema of a part comes from: from its struct.
#[cfg(not(target_family = "wasm"))]
mod source {
    use super::{Json, JsonSchema, Queue, Shape};
    use crate::schema::schema_of;

    pub(super) fn part<T: JsonSchema>() -> Json {
        schema_of::<T>().into()
    }

    pub(super) fn queue() -> Shape {
        Shape::of(&part::<Queue>())
    }
}

/// Where the schema of a part comes from: from the text of the whole.
#[cfg(target_family = "wasm")]
mod source {
    use super::{JsonSchema, Queue, Reader, Shape};
    use crate::schema::as_text::WHOLE;
    pub(super) use crate::schema::as_text::part;

    pub(super) fn queue() -> Shape {
        let definitions = WHOLE["$defs"].as_object().expect("the schema has definitions");
        Reader { definitions }.shape(&definitions[Queue::schema_name().as_ref()])
    }
}

/// The values that a key accepts.
#[derive(Debug)]
pub(crate) enum Shape {
    Table(Keys),
    /// A table whose key `tag` says which keys it has.
    Tagged {
        tag: String,
        variants: Vec<(String, Keys)>,
    },
    /// A table with arbitrary keys.
    Map(Box<Shape>),
    Array {
        items: Box<Shape>,
        at_least: usize,
    },
    Tuple(Vec<Shape>),
    Either(Vec<Shape>),
    Choice(Vec<String>),
    Quantity(Bounds),
    Text(TextRule),
    Integer {
        min: i64,
        max: i64,
    },
    Number(Range),
    Boolean,
    /// A reference to a shape that contains itself.
    Recursive(&'static LazyLock<Self>),
    /// A string, number or boolean.
    Plain,
    Anything,
}

/// The keys of a table.
#[derive(Debug)]
pub(crate) struct Keys(pub(crate) Vec<Key>);

/// One key.
#[derive(Debug)]
pub(crate) struct Key {
    pub(crate) name: String,
    pub(crate) required: bool,
    pub(crate) shape: Shape,
}

/// Bounds of a number without unit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Range {
    pub(crate) above: Option<f64>,
    pub(crate) max: Option<f64>,
}

impl Shape {
    fn of(schema: &Json) -> Self {
        let empty = Map::new();
        let definitions = schema.get("$defs").and_then(Json::as_object).unwrap_or(&empty);
        Reader { definitions }.shape(schema)
    }

    /// The names of the keys, if the shape is a table with known keys.
    pub(crate) fn key_names(&self) -> impl Iterator<Item = &str> {
        let keys = match self {
            Self::Table(keys) => keys.0.as_slice(),
            _ => &[],
        };
        keys.iter().map(|key| key.name.as_str())
    }

    /// Resolves a recursive shape to the shape that it refers to.
    pub(super) fn itself(&self) -> &Self {
        match self {
            Self::Recursive(shape) => shape,
            shape => shape,
        }
    }
}

impl Keys {
    pub(crate) fn get(&self, name: &str) -> Option<&Key> {
        self.0.iter().find(|key| key.name == name)
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|key| key.name.as_str())
    }
}

struct Reader<'a> {
    definitions: &'a Map<String, Json>,
}

impl Reader<'_> {
    fn shape(&self, node: &Json) -> Shape {
        if node == &Json::Bool(true) {
            return Shape::Anything;
        }
        if node.get(SCHEMA_KEY).is_some() {
            let bounds = Bounds::from_schema(node);
            return Shape::Quantity(bounds.unwrap_or_else(|| panic!("quantity of an unknown kind: {node}")));
        }
        if let Some(Json::String(reference)) = node.get("$ref") {
            let name = reference.rsplit('/').next().unwrap_or_default();
            // The schema of the discipline itself refers to its root.
            if name == Queue::schema_name() || reference == "#" {
                return Shape::Recursive(&QUEUE);
            }
            return self.shape(&self.definitions[name]);
        }
        if let Some(Json::Array(branches)) = node.get("anyOf") {
            return Shape::Either(branches.iter().map(|branch| self.shape(branch)).collect());
        }
        if let Some(Json::Array(branches)) = node.get("oneOf") {
            return self.choice(branches);
        }
        if let Some(Json::Array(words)) = node.get("enum") {
            return Shape::Choice(words.iter().filter_map(Json::as_str).map(str::to_owned).collect());
        }
        self.typed(node)
    }

    fn typed(&self, node: &Json) -> Shape {
        match node.get("type") {
            Some(Json::Array(_)) => Shape::Plain,
            Some(Json::String(kind)) => match kind.as_str() {
                "object" => self.table(node),
                "array" => self.array(node),
                "string" => Shape::Text(text_rule(node)),
                "integer" => integer(node),
                "number" => {
                    Shape::Number(Range { above: number(node, "exclusiveMinimum"), max: number(node, "maximum") })
                }
                "boolean" => Shape::Boolean,
                _ => panic!("unknown type: {node}"),
            },
            _ => panic!("not understood: {node}"),
        }
    }

    fn choice(&self, branches: &[Json]) -> Shape {
        let words: Vec<&str> = branches.iter().filter_map(|branch| branch.get("const")?.as_str()).collect();
        if words.len() == branches.len() {
            return Shape::Choice(words.into_iter().map(str::to_owned).collect());
        }
        let variants: Option<Vec<(&str, String, Keys)>> = branches.iter().map(|branch| self.variant(branch)).collect();
        let variants = variants.unwrap_or_else(|| panic!("neither words nor tagged tables: {branches:?}"));
        let tag = variants.first().map(|(tag, ..)| (*tag).to_owned()).unwrap_or_default();
        Shape::Tagged { tag, variants: variants.into_iter().map(|(_, word, keys)| (word, keys)).collect() }
    }

    /// One of several tables that a tag distinguishes: the tag's key, its value, and the keys of the table.
    fn variant<'n>(&self, branch: &'n Json) -> Option<(&'n str, String, Keys)> {
        let properties = branch.get("properties")?.as_object()?;
        let (tag, word) = properties.iter().find_map(|(key, node)| Some((key, node.get("const")?.as_str()?)))?;
        Some((tag, word.to_owned(), self.keys(branch, Some(tag))))
    }

    fn table(&self, node: &Json) -> Shape {
        match node.get("additionalProperties") {
            Some(Json::Bool(false)) => Shape::Table(self.keys(node, None)),
            Some(values) => Shape::Map(Box::new(self.shape(values))),
            None => panic!("a table whose keys are not declared: {node}"),
        }
    }

    fn keys(&self, node: &Json, tag: Option<&str>) -> Keys {
        let required = node.get("required").and_then(Json::as_array);
        let is_required = |name: &str| required.is_some_and(|names| names.iter().any(|n| n == name));
        let properties = node.get("properties").and_then(Json::as_object);
        let key = |(name, node): (&String, &Json)| {
            let shape = if tag == Some(name) { Shape::Anything } else { self.shape(node) };
            Key { name: name.clone(), required: is_required(name), shape }
        };
        Keys(properties.into_iter().flatten().map(key).collect())
    }

    fn array(&self, node: &Json) -> Shape {
        if let Some(Json::Array(items)) = node.get("prefixItems") {
            return Shape::Tuple(items.iter().map(|item| self.shape(item)).collect());
        }
        let item = || self.shape(&node["items"]);
        let count = |key: &str| node.get(key).and_then(Json::as_u64).and_then(|n| usize::try_from(n).ok());
        match (count("minItems"), count("maxItems")) {
            (Some(min), Some(max)) if min == max => Shape::Tuple((0..min).map(|_| item()).collect()),
            (min, None) => Shape::Array { items: Box::new(item()), at_least: min.unwrap_or(0) },
            _ => panic!("an array of a length that is neither fixed nor unlimited: {node}"),
        }
    }
}

fn text_rule(node: &Json) -> TextRule {
    let format = node.get("format").and_then(Json::as_str).unwrap_or_default();
    TextRule::from_format(format).unwrap_or_else(|| panic!("a string without a rule for its contents: {node}"))
}

fn integer(node: &Json) -> Shape {
    let bound = |key: &str| node.get(key).and_then(Json::as_i64);
    let (Some(min), Some(max)) = (bound("minimum"), bound("maximum")) else {
        panic!("an integer without bounds: {node}");
    };
    Shape::Integer { min, max }
}

fn number(node: &Json, key: &str) -> Option<f64> {
    node.get(key).and_then(Json::as_f64)
}
