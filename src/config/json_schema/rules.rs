//! Rules between options, which the option structs check after reading.

use serde_json::{Value, json};

use crate::{
    config::{AgentConfig, AgentKind, SANDBOX},
    tools::sandbox::TOOL_NAMES,
};

const KINDS: [AgentKind; 5] =
    [AgentKind::Echo, AgentKind::Script, AgentKind::Llm, AgentKind::Remote, AgentKind::Replay];

pub(super) fn add(schema: &mut Value) {
    let sections = &mut schema["properties"];
    sections["agents"]["propertyNames"] = json!({ "pattern": "^[A-Za-z0-9_.-]+$" });
    let agent = &mut sections["agents"]["additionalProperties"];
    agent["allOf"] = KINDS.into_iter().map(of_kind).chain(of_providers()).collect();
    agent["dependencies"] = json!({ "fault_after": ["fault"] });

    let key = &mut sections["auth"]["properties"]["api_keys"]["items"];
    key["oneOf"] = json!([{ "required": ["env"] }, { "required": ["sha256"] }]);

    let name = "^[A-Za-z0-9_-]{1,64}$";
    sections["tools"]["propertyNames"] = json!({ "pattern": name, "not": { "const": SANDBOX } });
    sections["sandbox"]["properties"]["approval_of"]["propertyNames"] = json!({ "enum": TOOL_NAMES });

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

/// Returns the options that agents of a kind need, and those that they do not have.
fn of_kind(kind: AgentKind) -> Value {
    let all = AgentConfig::default();
    let others = all.all_options_of_kinds().filter(|(_, _, kinds)| !kinds.contains(&kind));
    let others: serde_json::Map<_, _> = others.map(|(name, ..)| (name.to_owned(), json!(false))).collect();
    let required: &[&str] = match kind {
        AgentKind::Echo => &[],
        AgentKind::Script => &["script"],
        AgentKind::Llm => &["provider", "model"],
        AgentKind::Remote => &["url"],
        AgentKind::Replay => &["dir"],
    };
    json!({
        "if": { "properties": { "kind": { "const": kind.as_str() } }, "required": ["kind"] },
        "then": { "required": required, "properties": others },
    })
}

/// Returns the rules for options that depend on the provider.
fn of_providers() -> impl Iterator<Item = Value> {
    let is = |option: &str, value: &str| json!({ "properties": { option: { "const": value } }, "required": [option] });
    let has_recordings = json!({ "allOf": [{ "required": ["dir"] }, is("kind", "llm")] });
    [
        json!({ "if": { "required": ["api"] }, "then": is("provider", "openai") }),
        json!({ "if": has_recordings, "then": is("provider", "replay") }),
        json!({ "if": is("provider", "replay"), "then": { "required": ["dir"] } }),
    ]
    .into_iter()
}
