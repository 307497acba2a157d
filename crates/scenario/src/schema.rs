//! The JSON Schema of experiment files, for editors; the checker reads it too.

use schemars::transform::{Transform, transform_subschemas};
use schemars::{JsonSchema, Schema, generate::SchemaSettings};
use serde_json::{Map, Value as Json};

use crate::file::File;
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
    schema_of::<File>().into()
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
