//! The schema that editors get and the loader agree: on the keys, on the defaults, on the examples.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use bufferscope_scenario::{Document, Expectation, Experiment, ExperimentError, Point, schema};
use serde_json::Value as Json;
use toml::Value;

/// A file in which every key occurs.
const EVERY_KEY: &str = include_str!("every_key.toml");

/// The path to a value in a document.
type Location = Vec<Step>;

#[derive(Clone, Debug)]
enum Step {
    Key(String),
    Item(usize),
}

/// A table or key of [`EVERY_KEY`] with what the schema says about it.
struct Found {
    location: Location,
    /// JSON pointer into the schema.
    pointer: String,
}

/// Walks a document along the schema.
struct Walk {
    schema: Json,
    keys: Vec<Found>,
    tables: Vec<Found>,
}

impl Walk {
    fn new() -> Self {
        let mut walk = Self { schema: schema(), keys: Vec::new(), tables: Vec::new() };
        walk.visit("", &every_key(), &mut Vec::new());
        walk
    }

    fn node(&self, pointer: &str) -> &Json {
        self.schema.pointer(pointer).unwrap()
    }

    fn visit(&mut self, pointer: &str, value: &Value, location: &mut Location) {
        let node = self.node(pointer).clone();
        if let Some(reference) = node.get("$ref").and_then(Json::as_str) {
            return self.visit(reference.strip_prefix('#').unwrap(), value, location);
        }
        if let Some(branches) = node.get("oneOf").or(node.get("anyOf")).and_then(Json::as_array) {
            let keyword = if node.get("oneOf").is_some() { "oneOf" } else { "anyOf" };
            let fits = |branch: &Json| {
                let reference = branch.get("$ref").and_then(Json::as_str);
                branch_fits(reference.map_or(branch, |reference| self.node(&reference[1..])), value)
            };
            let Some(index) = branches.iter().position(fits) else {
                panic!("{location:?} fits no branch of {pointer}")
            };
            return self.visit(&format!("{pointer}/{keyword}/{index}"), value, location);
        }
        match value {
            Value::Table(table) if node.get("properties").is_some() => {
                self.tables.push(Found { location: location.clone(), pointer: pointer.to_owned() });
                for (key, value) in table {
                    let pointer = format!("{pointer}/properties/{key}");
                    location.push(Step::Key(key.clone()));
                    self.keys.push(Found { location: location.clone(), pointer: pointer.clone() });
                    self.visit(&pointer, value, location);
                    location.pop();
                }
            }
            Value::Table(table) if node["additionalProperties"].is_object() => {
                for (key, value) in table {
                    location.push(Step::Key(key.clone()));
                    self.visit(&format!("{pointer}/additionalProperties"), value, location);
                    location.pop();
                }
            }
            Value::Array(items) if node["items"].is_object() => {
                for (i, item) in items.iter().enumerate() {
                    location.push(Step::Item(i));
                    self.visit(&format!("{pointer}/items"), item, location);
                    location.pop();
                }
            }
            _ => {}
        }
    }
}

/// Whether the value is of the branch's kind; the tag decides if there is one.
fn branch_fits(branch: &Json, value: &Value) -> bool {
    if let Some(word) = branch.get("const") {
        return value.as_str() == word.as_str();
    }
    if let Some(branches) = branch.get("oneOf").and_then(Json::as_array) {
        return branches.iter().any(|branch| branch_fits(branch, value));
    }
    if let Some(kinds) = branch["type"].as_array() {
        return kinds.iter().filter_map(Json::as_str).any(|kind| is_of_kind(kind, value));
    }
    let tag = branch
        .get("properties")
        .and_then(Json::as_object)
        .and_then(|properties| properties.iter().find_map(|(key, node)| Some((key, node.get("const")?.as_str()?))));
    if let Some((key, word)) = tag {
        return value.get(key).and_then(Value::as_str) == Some(word);
    }
    branch["type"].as_str().is_some_and(|kind| is_of_kind(kind, value))
}

fn is_of_kind(kind: &str, value: &Value) -> bool {
    match kind {
        "object" => value.is_table(),
        "array" => value.is_array(),
        "string" => value.is_str(),
        "integer" => value.is_integer(),
        "number" => value.is_integer() || value.is_float(),
        "boolean" => value.is_bool(),
        _ => false,
    }
}

fn every_key() -> Value {
    static PARSED: LazyLock<Value> = LazyLock::new(|| Value::Table(EVERY_KEY.parse().unwrap()));
    PARSED.clone()
}

/// JSON pointers of all keys of all tables of known keys.
fn all_keys(node: &Json, pointer: &str, keys: &mut BTreeSet<String>) {
    match node {
        Json::Object(members) => {
            for (name, member) in members {
                let here = format!("{pointer}/{name}");
                if name == "properties" {
                    keys.extend(member.as_object().unwrap().keys().map(|key| format!("{here}/{key}")));
                }
                all_keys(member, &here, keys);
            }
        }
        Json::Array(items) => {
            items.iter().enumerate().for_each(|(i, item)| all_keys(item, &format!("{pointer}/{i}"), keys))
        }
        _ => {}
    }
}

fn at<'v>(document: &'v mut Value, location: &[Step]) -> &'v mut Value {
    location.iter().fold(document, |value, step| match step {
        Step::Key(key) => &mut value[key.as_str()],
        Step::Item(i) => &mut value[*i],
    })
}

/// The document in which a key is varied: [`EVERY_KEY`], with its population only for the keys of the population and of
/// the expectations, which name its groups. A population is checked at every point with every extreme value that it can
/// draw, so a document with one takes ten times as long to load.
fn document_for(location: &[Step]) -> Value {
    const WITH_GROUPS: [&str; 2] = ["population", "expect"];
    let mut document = every_key();
    if !matches!(location.first(), Some(Step::Key(key)) if WITH_GROUPS.contains(&key.as_str())) {
        let tables = document.as_table_mut().unwrap();
        WITH_GROUPS.iter().for_each(|key| drop(tables.remove(*key)));
    }
    document
}

fn with(location: &[Step], value: Value) -> Value {
    let mut document = document_for(location);
    *at(&mut document, location) = value;
    document
}

fn without(location: &[Step]) -> Value {
    let mut document = document_for(location);
    let (Some(Step::Key(key)), table) = (location.last(), &location[..location.len() - 1]) else { panic!("no key") };
    at(&mut document, table).as_table_mut().unwrap().remove(key);
    document
}

/// Everything an experiment consists of.
type Loaded = (Document, Vec<Point>, Vec<Expectation>);

fn load(document: &Value) -> Result<Loaded, ExperimentError> {
    let text = toml::to_string(document).unwrap();
    // Every file that it names is a trace of one opportunity per millisecond.
    let read = |_: &str| Ok(b"1\n".to_vec());
    let loaded = Experiment::from_bytes_and_files(text.as_bytes(), "every_key.toml", &[], &read)?;
    Ok((loaded.document().clone(), loaded.points().to_vec(), loaded.expectations().to_vec()))
}

#[test]
fn every_key_is_in_the_file_of_every_key_which_loads() {
    let (_, points, _) = load(&every_key()).unwrap();
    assert_eq!(points.len(), 4);
    let mut in_schema = BTreeSet::new();
    all_keys(&schema(), "", &mut in_schema);
    let in_file: BTreeSet<String> = Walk::new().keys.into_iter().map(|key| key.pointer).collect();
    assert_eq!(in_file, in_schema);
}

#[test]
fn a_key_that_the_schema_does_not_have_is_refused_in_every_table() {
    let walk = Walk::new();
    assert!(walk.tables.len() > 10, "only {} tables", walk.tables.len());
    for table in walk.tables {
        assert_eq!(walk.schema.pointer(&table.pointer).unwrap()["additionalProperties"], Json::Bool(false));
        let mut document = every_key();
        at(&mut document, &table.location).as_table_mut().unwrap().insert("nonsense".to_owned(), Value::from(1));
        let error = load(&document).unwrap_err();
        assert!(error.to_string().contains("nonsense: found an unknown key; allowed: "), "{error}");
    }
}

#[test]
fn a_required_key_can_not_be_left_out() {
    let walk = Walk::new();
    // One control needs a window, and no other has one; `on` and `off` require each other, and so do `peakrate` and
    // `mtu`. A token bucket has either a limit or a latency. Of an sfq, the keys of RED need `redflowlimit`.
    let by_another_key = |key: &&Found| {
        let name = key.pointer.rsplit('/').next().unwrap();
        let table = at(&mut every_key(), &key.location[..key.location.len() - 1]).clone();
        let has_bucket = table.get("qdisc").and_then(Value::as_str) == Some("tbf");
        ["window", "on", "off", "peakrate", "mtu", "redflowlimit", "trace", "walk", "preset"].contains(&name)
            || has_bucket && ["limit", "latency"].contains(&name)
    };
    for key in walk.keys.iter().filter(|key| !by_another_key(key)) {
        let (table, name) = key.pointer.rsplit_once("/properties/").unwrap();
        let required = walk.node(table).get("required").and_then(Json::as_array);
        let is_required = required.is_some_and(|names| names.iter().any(|n| n == name));
        let refused =
            load(&without(&key.location)).is_err_and(|error| error.to_string().contains(": missing; required: "));
        assert_eq!(refused, is_required, "{}", key.pointer);
    }
}

/// A document without a key loads like a document with the default that the schema gives for that key.
#[test]
fn the_defaults_in_the_schema_are_those_in_effect() {
    let walk = Walk::new();
    let mut checked = 0;
    for key in &walk.keys {
        let Some(default) = walk.node(&key.pointer).get("default") else { continue };
        let default = Value::try_from(default).unwrap();
        let left_out = load(&without(&key.location));
        assert!(left_out == load(&with(&key.location, default.clone())), "{:?} = {default}", key.location);
        // A population is drawn once, so `repeat` has its default in the file.
        if key.pointer == "/properties/repeat" {
            assert!(left_out != load(&with(&key.location, Value::from(3))), "{:?} changes nothing", key.location);
        } else {
            assert!(left_out != load(&document_for(&key.location)), "{:?} changes nothing", key.location);
        }
        checked += 1;
    }
    assert!(checked > 25, "only {checked} defaults");
}

#[test]
fn the_examples_in_the_schema_are_accepted() {
    let walk = Walk::new();
    for key in &walk.keys {
        let examples = walk.node(&key.pointer).get("examples").and_then(Json::as_array);
        for example in examples.into_iter().flatten() {
            let document = with(&key.location, Value::try_from(example).unwrap());
            let Err(error) = load(&document) else { continue };
            // An example may not suit the rest of the file, but must be right by itself.
            let clashes = [
                "this name",
                "which is also from",
                "a node that a link names",
                "the name of a link",
                "a link of this network",
                "a second link",
                "is not swept",
                "of at least",
                "of wifi.",
            ];
            let is_clash = clashes.iter().any(|clash| error.to_string().contains(clash));
            assert!(is_clash || error.problems()[0].path.starts_with("sweep"), "{example}: {error}");
        }
    }
}

/// The whole schema, so that a change of the file format is seen in review.
#[test]
fn the_schema_is_this() {
    insta::assert_snapshot!(serde_json::to_string_pretty(&schema()).unwrap());
}
