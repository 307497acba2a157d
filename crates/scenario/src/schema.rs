//! The JSON Schema of experiment files, for editors; the checker reads it too.

#![cfg_attr(target_family = "wasm", allow(dead_code, reason = "the text is used"))]

use schemars::transform::{Transform, transform_subschemas};
use schemars::{JsonSchema, Schema, generate::SchemaSettings};
use serde_json::{Map, Value as Json};

use crate::quantity::{Bounds, SCHEMA_KEY};

/// The JSON Schema (draft 2020-12) of experiment files.
///
/// In addition to the standard's keywords, every number with a unit has the key `x-quantity`. It holds the kind of
/// quantity (`of`) and the bounds (`from`, `to`), which a pattern can't express.
///
/// ```
/// let schema = bufferscope_scenario::schema();
/// assert_eq!(schema["properties"]["sample"]["default"], "10ms");
/// ```
pub fn schema() -> Json {
    #[cfg(target_family = "wasm")]
    return as_text::WHOLE.clone();
    #[cfg(not(target_family = "wasm"))]
    schema_of::<crate::file::File>().into()
}

/// The schema of one of the file layer's types.
pub(crate) fn schema_of<T: JsonSchema>() -> Schema {
    let settings = SchemaSettings::draft2020_12().with_transform(WithoutNull).with_transform(DescribeQuantities);
    settings.into_generator().into_root_schema_for::<T>()
}

/// Removes the null that schemars allows for every `Option`. TOML has no null: an optional key is left out.
#[derive(Clone, Debug)]
struct WithoutNull;

impl Transform for WithoutNull {
    fn transform(&mut self, schema: &mut Schema) {
        transform_subschemas(self, schema);
        let Some(node) = schema.as_object_mut() else { return };
        if node.get("default").is_some_and(Json::is_null) {
            node.remove("default");
        }
        drop_null(node);
    }
}

/// Removes null from what a schema allows.
pub(crate) fn drop_null(node: &mut Map<String, Json>) {
    match node.get_mut("type") {
        Some(Json::Array(types)) => {
            types.retain(|kind| kind != "null");
            if let [only] = types.as_slice() {
                let only = only.clone();
                node.insert("type".to_owned(), only);
            }
        }
        _ => drop_null_branch(node),
    }
}

fn drop_null_branch(node: &mut Map<String, Json>) {
    let Some(Json::Array(branches)) = node.get_mut("anyOf") else { return };
    branches.retain(|branch| branch.get("type").is_none_or(|kind| kind != "null"));
    if let [Json::Object(only)] = branches.as_slice() {
        let only = only.clone();
        node.remove("anyOf");
        node.extend(only);
    }
}

/// Adds to the description of a key the units and bounds that it accepts.
#[derive(Clone, Debug)]
struct DescribeQuantities;

impl Transform for DescribeQuantities {
    fn transform(&mut self, schema: &mut Schema) {
        transform_subschemas(self, schema);
        let Some(bounds) = schema.get(SCHEMA_KEY).is_some().then(|| Bounds::from_schema(schema.as_value())).flatten()
        else {
            return;
        };
        let description =
            schema.get("description").and_then(Json::as_str).map(|d| format!("{d}\n\n")).unwrap_or_default();
        let mut what = bounds.describe();
        if let Some(first) = what.get_mut(0..1) {
            first.make_ascii_uppercase();
        }
        schema.insert("description".to_owned(), Json::from(format!("{description}{what}.")));
    }
}

/// The schema as text, and its parts. It takes a fifth of the code that makes it, which counts in a page. A test of the schema
/// keeps this text up to date.
#[cfg(any(target_family = "wasm", test))]
pub(crate) mod as_text {
    use std::fmt::{self, Display};
    use std::sync::LazyLock;

    use serde::de::{DeserializeOwned, Deserializer, Error, Visitor};
    use serde::forward_to_deserialize_any;
    use serde_json::Value as Json;

    /// The snapshot of a test: a header, and the schema.
    const TEXT: &str = include_str!("../tests/it/snapshots/it__schema__the_schema_is_this.snap");

    /// The whole schema.
    pub(crate) static WHOLE: LazyLock<Json> = LazyLock::new(|| {
        let begins = TEXT.find("\n{").expect("the schema is an object");
        serde_json::from_str(&TEXT[begins..]).expect("it was written as JSON")
    });

    /// The schema of the keys that a part of the file has.
    pub(crate) fn part<T: DeserializeOwned>() -> Json {
        let mut part = WHOLE.clone();
        let names = field_names::<T>();
        part["properties"].as_object_mut().expect("a table has keys").retain(|name, _| names.contains(&name.as_str()));
        let required = part["required"].as_array_mut().expect("some keys are required");
        required.retain(|name| name.as_str().is_some_and(|name| names.contains(&name)));
        part
    }

    /// The names of the fields of a struct.
    fn field_names<T: DeserializeOwned>() -> &'static [&'static str] {
        T::deserialize(FieldNames).err().map_or(&[], |asked| asked.0)
    }

    /// Fails to give a struct, with the names of its fields as the error.
    struct FieldNames;

    #[derive(Debug)]
    struct Asked(&'static [&'static str]);

    impl Display for Asked {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(f, "asked for {:?}", self.0)
        }
    }

    impl std::error::Error for Asked {}

    impl Error for Asked {
        fn custom<M: Display>(_: M) -> Self {
            Self(&[])
        }
    }

    impl<'de> Deserializer<'de> for FieldNames {
        type Error = Asked;

        fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Asked> {
            Err(Asked(&[]))
        }

        fn deserialize_struct<V: Visitor<'de>>(
            self,
            _: &'static str,
            fields: &'static [&'static str],
            _: V,
        ) -> Result<V::Value, Asked> {
            Err(Asked(fields))
        }

        forward_to_deserialize_any! {
            bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
            newtype_struct seq tuple tuple_struct map enum identifier ignored_any
        }
    }
}

#[cfg(test)]
mod tests {
    use serde::de::DeserializeOwned;

    use super::*;
    use crate::file::{About, File, Setup, Study};
    use crate::qdisc::Queue;

    /// Checks that the text has the schema of a part, with all definitions of that.
    fn check<T: DeserializeOwned + JsonSchema>() {
        let made = Json::from(schema_of::<T>());
        let part = as_text::part::<T>();
        assert_eq!(part["properties"], made["properties"]);
        let names = |schema: &Json| {
            let mut names: Vec<Json> = schema["required"].as_array().cloned().unwrap_or_default();
            names.sort_by_key(Json::to_string);
            names
        };
        assert_eq!(names(&part), names(&made));
        for (name, definition) in made["$defs"].as_object().into_iter().flatten() {
            assert_eq!(&part["$defs"][name], definition, "{name}");
        }
    }

    #[test]
    fn the_text_has_the_schema_of_every_part() {
        assert_eq!(*as_text::WHOLE, Json::from(schema_of::<File>()));
        check::<About>();
        check::<Setup>();
        check::<Study>();
        let made = Json::from(schema_of::<Queue>()).to_string().replace("\"#\"", "\"#/$defs/Queue\"");
        let made: Json = serde_json::from_str(&made).unwrap();
        let queue = as_text::WHOLE["$defs"]["Queue"].as_object().unwrap();
        assert!(queue.iter().all(|(key, value)| &made[key] == value));
        let besides: Vec<&String> = made.as_object().unwrap().keys().filter(|key| !queue.contains_key(*key)).collect();
        assert_eq!(besides, ["title", "$schema", "$defs"]);
    }
}
