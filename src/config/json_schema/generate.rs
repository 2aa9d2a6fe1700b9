//! Makes the JSON Schema of the configuration from the option structs.

use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use super::rules;
use crate::config::Config;

pub(super) const DEFAULTS: &str = include_str!("../../../config/default.toml");

/// The values of `config/default.toml` that are examples.
const NO_DEFAULTS: &[&str] = &["default_agent", "named_events.chat", "named_events.agent"];

/// Returns the text of `config/schema.json`.
pub(super) fn generate() -> String {
    // Without references, because editors ignore the description beside one.
    let settings = SchemaSettings::draft07().with(|settings| settings.inline_subschemas = true).for_deserialize();
    let mut schema = settings.into_generator().into_root_schema_for::<Config>().to_value();
    schema["title"] = json!("The configuration of agui-server");
    tidy(&mut schema);
    let defaults: toml::Table = toml::from_str(DEFAULTS).unwrap();
    set_defaults(&mut schema, &json!(defaults), "");
    rules::add(&mut schema);
    describe(&mut schema);
    let mut text = serde_json::to_string_pretty(&schema).unwrap();
    text.push('\n');
    text
}

/// Calls a function for each schema directly in a schema.
fn for_each_subschema(schema: &mut Map<String, Value>, f: impl FnMut(&mut Value)) {
    let mut inner = Vec::new();
    for (keyword, value) in schema.iter_mut() {
        match (keyword.as_str(), value) {
            ("properties", Value::Object(properties)) => inner.extend(properties.values_mut()),
            ("anyOf" | "oneOf" | "allOf", Value::Array(schemas)) => inner.extend(schemas),
            ("additionalProperties" | "items", schema) => inner.push(schema),
            _ => {}
        }
    }
    inner.into_iter().for_each(f);
}

/// Removes what TOML does not have, and what editors do not show.
fn tidy(schema: &mut Value) {
    let Some(members) = schema.as_object_mut() else { return };
    for_each_subschema(members, tidy);
    without_null(members);
    merge_constants(members);
    match members.remove("format").as_ref().and_then(Value::as_str) {
        Some("uint8" | "uint16" | "uint" | "uint64" | "int64" | "double") | None => {}
        Some("uint32") => drop(members.insert("maximum".to_owned(), json!(u32::MAX))),
        Some(other) => panic!("what are the limits of {other}?"),
    }
    match members.remove("default") {
        None | Some(Value::Null) => {}
        // A `Duration`.
        Some(Value::Object(parts)) if parts.contains_key("secs") => {
            members.insert("default".to_owned(), parts["secs"].clone());
        }
        Some(default) => drop(members.insert("default".to_owned(), default)),
    }
    if let Some(description) = members.get_mut("description") {
        *description = json!(description.as_str().unwrap().replace('\n', " "));
    }
}

/// TOML has no null: an option is left out.
fn without_null(schema: &mut Map<String, Value>) {
    if let Some(Value::Array(types)) = schema.get_mut("type") {
        types.retain(|name| name != "null");
        if let [only] = &types[..] {
            schema["type"] = only.clone();
        }
    }
    if let Some(Value::Array(values)) = schema.get_mut("enum") {
        values.retain(|value| !value.is_null());
    }
    let Some(Value::Array(alternatives)) = schema.get_mut("anyOf") else { return };
    alternatives.retain(|alternative| alternative["type"] != "null");
    if let [Value::Object(only)] = &alternatives[..] {
        let only = only.clone();
        schema.remove("anyOf");
        for (keyword, value) in only {
            schema.entry(keyword).or_insert(value);
        }
    }
}

/// Makes one `enum` of alternative texts, and a list of their descriptions, so that an error lists all values.
fn merge_constants(schema: &mut Map<String, Value>) {
    let Some(Value::Array(alternatives)) = schema.get("oneOf") else { return };
    let (mut values, mut described) = (Vec::new(), Vec::new());
    for alternative in alternatives {
        match (alternative.get("const"), alternative.get("enum")) {
            (Some(value), _) => {
                values.push(value.clone());
                described.extend(alternative["description"].as_str().map(|text| format!("- `{value}`: {text}")));
            }
            (None, Some(Value::Array(more))) => values.extend(more.clone()),
            _ => return,
        }
    }
    schema.remove("oneOf");
    schema.insert("type".to_owned(), json!("string"));
    schema.insert("enum".to_owned(), json!(values));
    schema.insert("x-values".to_owned(), json!(described.join("\n")));
}

/// Sets the defaults of a table from `config/default.toml`, which a test compares with the structs.
fn set_defaults(table: &mut Value, defaults: &Value, path: &str) {
    let Some(options) = table["properties"].as_object_mut() else { return };
    for (name, option) in options {
        let path = format!("{path}{name}");
        if option.get("properties").is_some() {
            set_defaults(option, &defaults[name], &format!("{path}."));
        } else if option["type"] == "object" && defaults[name] != json!({}) {
            // A table of agents, tools or servers.
            continue;
        }
        let Some(members) = option.as_object_mut() else { continue };
        members.remove("default");
        let is_default = !members.contains_key("properties") && !NO_DEFAULTS.contains(&path.as_str());
        if let Some(default) = defaults.get(name).filter(|_| is_default) {
            members.insert("default".to_owned(), default.clone());
        }
    }
}

/// Adds the unit, the default and the values to the descriptions, which is all that editors show.
fn describe(schema: &mut Value) {
    let Some(members) = schema.as_object_mut() else { return };
    for_each_subschema(members, describe);
    let (unit, values) = (members.remove("x-unit"), members.remove("x-values"));
    let unit = unit.map(|unit| format!(" {}", unit.as_str().unwrap()));
    let default = members.get("default").filter(|default| **default != json!({}));
    let default = default.map(|default| format!(" Default: `{default}`."));
    let values = values.map(|values| format!("\n\n{}", values.as_str().unwrap()));
    let more: String = [unit, default, values].into_iter().flatten().collect();
    if !more.is_empty() {
        let text = members.get("description").and_then(Value::as_str).unwrap_or_default();
        let text = format!("{text}{more}").trim().to_owned();
        members.insert("description".to_owned(), json!(text));
    }
}
