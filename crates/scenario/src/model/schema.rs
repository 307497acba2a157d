//! The JSON Schema of scenarios, from which the types of the Python package are made.

use schemars::transform::{Transform, transform_subschemas};
use schemars::{Schema, generate::SchemaSettings};
use serde_json::Value as Json;

use super::Scenario;
use crate::schema::drop_null;

/// The JSON Schema (draft 2020-12) of the JSON to which a [`Scenario`] serialises.
///
/// A key that is not required is left out where it would have its default; it is never null.
///
/// ```
/// let schema = bufferscope_scenario::scenario_schema();
/// assert_eq!(schema["properties"]["duration_ns"]["type"], "integer");
/// ```
pub fn scenario_schema() -> Json {
    let settings = SchemaSettings::draft2020_12().for_serialize().with_transform(OptionalIsNotNull);
    settings.into_generator().into_root_schema_for::<Scenario>().into()
}

/// Removes the null that schemars allows for every `Option` from the keys that are left out instead
/// (`skip_serializing_if = "Option::is_none"`).
#[derive(Clone, Debug)]
struct OptionalIsNotNull;

impl Transform for OptionalIsNotNull {
    fn transform(&mut self, schema: &mut Schema) {
        transform_subschemas(self, schema);
        let required = schema.get("required").and_then(Json::as_array).cloned().unwrap_or_default();
        let Some(properties) = schema.get_mut("properties").and_then(Json::as_object_mut) else { return };
        for (key, property) in properties {
            if let Some(property) = property.as_object_mut().filter(|_| !required.iter().any(|name| name == key)) {
                drop_null(property);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Kind, Qdisc};

    /// What a definition says of one of its keys: whether it is always there, and its schema.
    fn key<'a>(schema: &'a Json, definition: &str, key: &str) -> (bool, &'a Json) {
        let table = &schema["$defs"][definition];
        let required = table["required"].as_array().is_some_and(|names| names.iter().any(|name| name == key));
        (required, &table["properties"][key])
    }

    #[test]
    fn a_key_is_null_or_left_out_as_it_is_written() {
        let schema = scenario_schema();
        let (is_required, rate) = key(&schema, "PortSettings", "rate");
        assert!(is_required, "a port without a rate has null");
        assert_eq!(rate["type"], serde_json::json!(["array", "null"]));
        let (is_required, boost) = key(&schema, "PortSettings", "boost");
        assert!(!is_required, "a port without a boost has no such key");
        assert_eq!(boost["$ref"], "#/$defs/Boost");
        let (is_required, port) = key(&schema, "Traffic", "port");
        assert!(!is_required);
        assert_eq!(port["type"], "integer");
    }

    /// The variants of a tagged definition: the value of the tag, and the name of the parameters' definition.
    fn variants<'a>(schema: &'a Json, definition: &str, tag: &str) -> Vec<(&'a str, &'a str)> {
        let variants = schema["$defs"][definition]["oneOf"].as_array().unwrap().iter();
        let named = variants.map(|variant| {
            let parameters = variant["$ref"].as_str().unwrap().strip_prefix("#/$defs/").unwrap();
            (variant["properties"][tag]["const"].as_str().unwrap(), parameters)
        });
        named.collect()
    }

    #[test]
    fn a_variant_refers_to_its_parameters() {
        let schema = scenario_schema();
        let disciplines = variants(&schema, "Qdisc", "qdisc");
        assert!(disciplines.iter().map(|(name, _)| *name).eq(Qdisc::KINDS.iter().map(|kind| kind.name)));
        assert!(disciplines.contains(&("fq_codel", "FqCodel")));
        assert!(variants(&schema, "Traffic", "kind").contains(&("tcp", "TcpTraffic")));
        assert_eq!(key(&schema, "FqCodel", "limit_packets").1["type"], "integer");
        assert_eq!(key(&schema, "Traffic", "name").1["type"], "string");
    }

    /// Whether a definition, or one to which it refers, refers to a discipline.
    fn contains_a_discipline(schema: &Json, definition: &str) -> bool {
        let text = schema["$defs"][definition].to_string();
        let mut referred = text.split("\"#/$defs/").skip(1).filter_map(|rest| rest.split('"').next());
        referred.any(|name| name == "Qdisc" || contains_a_discipline(schema, name))
    }

    #[test]
    fn a_discipline_says_that_it_contains_others_if_its_parameters_do() {
        let schema = scenario_schema();
        for (name, parameters) in variants(&schema, "Qdisc", "qdisc") {
            let says = Kind::named(name).unwrap().contains_others;
            assert_eq!(contains_a_discipline(&schema, parameters), says, "{name}");
        }
    }
}
