//! Makes the JSON Schema of the configuration from the option structs.
//!
//! A rule between options, which a struct cannot have, is in [`add_rules`].

use std::borrow::Cow;

use indexmap::IndexSet;
use schemars::{JsonSchema, Schema, SchemaGenerator, generate::SchemaSettings};
use serde_json::{Map, Value, json};

use super::default_file_tests::{DEFAULT_FILE, default_file, read};
use crate::server::options::{
    Config, SANDBOX,
    agent_table::options_of,
    agents::{
        ApiOptions, CommonOptions, KindName, LlmOptions, ProviderClientConfig, ProviderName,
        ProviderOptions, RecordingsFolder, ScriptConfig,
    },
    option_names::named_values,
};
use agui_agents::{RemoteOptions, host::ReplayOptions};
use agui_llm::{ModelOptions, host::AgentOptions};
use agui_sandbox::host::TOOL_NAMES;

/// The values of `config/default.toml` that are examples.
const NO_DEFAULTS: &[&str] = &["default_agent", "named_events.chat", "named_events.agent"];

/// Returns the texts of `config/default.toml` and `config/schema.json`.
pub(super) fn generate() -> [String; 2] {
    let committed = read(DEFAULT_FILE);
    let file = default_file(&schema_without_texts(&committed), &committed);
    let mut schema = schema_without_texts(&file);
    describe(&mut schema);
    let mut text = serde_json::to_string_pretty(&schema).unwrap();
    text.push('\n');
    [file, text]
}

/// Returns the schema, before [`describe`].
fn schema_without_texts(defaults: &str) -> Value {
    // Without references, because editors ignore the description beside one.
    let settings = SchemaSettings::draft07()
        .with(|settings| settings.inline_subschemas = true)
        .for_deserialize();
    let mut schema = settings.into_generator().into_root_schema_for::<Config>().to_value();
    schema["title"] = json!("The configuration of agui-server");
    tidy(&mut schema);
    let defaults: toml::Table = toml::from_str(defaults).unwrap();
    set_defaults(&mut schema, &json!(defaults), "");
    add_rules(&mut schema);
    schema
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
        // Lists and tables are empty by default.
        Some(Value::Array(items)) if items.is_empty() => {}
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
                described.extend(
                    alternative["description"].as_str().map(|text| format!("- `{value}`: {text}")),
                );
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

/// Sets the defaults of a table: those of its struct or, where these are not JSON, in another unit or not the server's, those of
/// `config/default.toml`, which a test compares with the structs.
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
        let is_converted = ["_hours", "_days", "_mb"].iter().any(|unit| name.ends_with(unit))
            || path.starts_with("retention.");
        let of_struct = members.remove("default").filter(|_| !is_converted);
        let is_default =
            !members.contains_key("properties") && !NO_DEFAULTS.contains(&path.as_str());
        let default = of_struct.or_else(|| defaults.get(name).cloned());
        if let Some(default) = default.filter(|_| is_default) {
            members.insert("default".to_owned(), default);
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

fn add_rules(schema: &mut Value) {
    let sections = &mut schema["properties"];
    sections["agents"]["propertyNames"] = json!({ "pattern": "^[A-Za-z0-9_.-]+$" });
    let agent = &mut sections["agents"]["additionalProperties"];
    let all: Vec<String> = agent["properties"].as_object().unwrap().keys().cloned().collect();
    agent["allOf"] = rules_of_agents(&all);
    agent["dependencies"] = json!({ "fault_after": ["fault"] });

    let key = &mut sections["auth"]["properties"]["api_keys"]["items"];
    key["oneOf"] = json!([{ "required": ["env"] }, { "required": ["sha256"] }]);

    let name = "^[A-Za-z0-9_-]{1,64}$";
    sections["tools"]["propertyNames"] = json!({ "pattern": name, "not": { "const": SANDBOX } });
    sections["sandbox"]["properties"]["approval_of"]["propertyNames"] =
        json!({ "enum": TOOL_NAMES });

    sections["mcp"]["propertyNames"] = json!({ "pattern": name });
    let server = &mut sections["mcp"]["additionalProperties"];
    let empty = json!({ "maxProperties": 0 });
    server["allOf"] = json!([
        { "anyOf": [{ "required": ["command"] }, { "required": ["url"] }] },
        {
            "if": { "required": ["command"] },
            "then": { "properties": { "url": false, "headers": empty, "headers_from": empty, "oauth": false } },
        },
        {
            "if": { "required": ["url"] },
            "then": { "properties": { "env": empty, "env_from": { "maxItems": 0 } } },
        },
    ]);
    server["properties"]["command"]["minItems"] = json!(1);
    server["properties"]["prefix"]["pattern"] = json!("^[A-Za-z0-9_-]{0,64}$");
    // Empty by default, and then refused.
    let oauth = &mut server["properties"]["oauth"];
    oauth["required"].as_array_mut().unwrap().push(json!("client_secret_env"));
    oauth["properties"]["client_secret_env"].as_object_mut().unwrap().remove("default");
}

/// Returns the options that agents of a kind or with a provider need, and those that they do not have.
fn rules_of_agents(all: &[String]) -> Value {
    let rule = |option: &str, name: &str, required: &[&str], known: IndexSet<&str>| {
        let others = all.iter().filter(|option| !known.contains(option.as_str()));
        let others: Map<_, _> = others.map(|name| (name.clone(), json!(false))).collect();
        json!({
            "if": { "properties": { option: { "const": name } }, "required": [option] },
            "then": { "required": required, "properties": others },
        })
    };
    let kinds = named_values().map(|(name, kind)| {
        let required: &[&str] = match kind {
            KindName::Echo => &[],
            KindName::Script => &["script"],
            KindName::Llm => &["provider", "model"],
            KindName::Remote => &["url"],
            KindName::Replay => &["dir"],
        };
        rule("kind", name, required, options_of(kind, None))
    });
    let providers = named_values().map(|(name, provider)| {
        let required: &[&str] = if provider == ProviderName::Playback { &["dir"] } else { &[] };
        rule("provider", name, required, options_of(KindName::Llm, Some(provider)))
    });
    kinds.chain(providers).collect()
}

/// The options of all kinds of agents. The rules keep only the options of one kind.
pub(in crate::server::options) struct AnyAgent;

impl JsonSchema for AnyAgent {
    fn schema_name() -> Cow<'static, str> {
        "AnyAgent".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut options = Map::new();
        for part in [
            CommonOptions::json_schema(generator),
            ScriptConfig::json_schema(generator),
            ProviderOptions::json_schema(generator),
            ApiOptions::json_schema(generator),
            ModelOptions::json_schema(generator),
            ProviderClientConfig::json_schema(generator),
            LlmOptions::json_schema(generator),
            AgentOptions::json_schema(generator),
            RecordingsFolder::json_schema(generator),
            ReplayOptions::json_schema(generator),
            RemoteOptions::json_schema(generator),
        ] {
            for (name, option) in part.to_value()["properties"].as_object().unwrap() {
                options.entry(name).or_insert(option.clone());
            }
        }
        let schema = json!({
            "description": "An agent. An option that is not set has the default of the agent's kind.",
            "type": "object",
            "properties": options,
            "required": ["kind"],
            "additionalProperties": false,
        });
        schema.try_into().unwrap()
    }
}

/// Returns the schema as a value.
pub(super) fn schema() -> Value {
    let [_, schema] = generate();
    serde_json::from_str(&schema).unwrap()
}
