//! What is left out of a request after a refusal that names it: parameters that the server does not take, and thinking that
//! it did not sign. A schema of the answer that is left out is told in words.

use std::collections::HashMap;

use bytes::Bytes;
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::{
    base::repairs::{Partner, Repair, repaired},
    protocol::JsonObject,
};

/// A parameter that changes how a model answers, but not what it is asked.
struct Parameter {
    name: &'static str,
    /// The parameter that says the same.
    other_name: Option<&'static str>,
}

const fn plain(name: &'static str) -> Parameter {
    Parameter { name, other_name: None }
}

const PARAMETERS: &[Parameter] = &[
    // https://github.com/griptape-ai/ComfyUI-Griptape/issues/312
    Parameter { name: "max_tokens", other_name: Some("max_completion_tokens") },
    Parameter { name: "max_completion_tokens", other_name: Some("max_tokens") },
    // https://github.com/BeehiveInnovations/pal-mcp-server/issues/78, https://github.com/altic-dev/FluidVoice/issues/285
    plain("temperature"),
    plain("top_p"),
    plain("top_k"),
    plain("frequency_penalty"),
    plain("presence_penalty"),
    plain("seed"),
    plain("random_seed"),
    // https://github.com/agno-agi/agno/issues/1066, https://github.com/microsoft/semantic-kernel/issues/10510
    plain("stream_options"),
    // https://github.com/Upsonic/Upsonic/issues/323
    plain("parallel_tool_calls"),
    plain("reasoning_effort"),
    plain("verbosity"),
    plain("service_tier"),
    plain("prompt_cache_key"),
    plain("metadata"),
    plain("store"),
    // Gemini's: https://github.com/MinLL/SkyrimNet-GamePlugin/issues/77
    plain("topP"),
    plain("topK"),
    plain("frequencyPenalty"),
    plain("presencePenalty"),
    plain("mediaResolution"),
    plain("serviceTier"),
    // Claude in clouds: https://github.com/anthropics/claude-code-action/issues/1005,
    // https://github.com/BerriAI/litellm/issues/15880, and whole: https://github.com/BerriAI/litellm/issues/21407
    plain("effort"),
    plain("output_config"),
    plain("cache_control"),
    // Tools of Claude and of chat completions: https://github.com/vllm-project/vllm/issues/27447
    plain("strict"),
];
/// The objects in which requests have some of them.
const GROUPS: &[&str] = &["generationConfig", "output_config"];
/// The lists in whose members they have others.
const LISTS: &[&str] = &["tools", "system", "messages"];
/// What refusals of a parameter say, in lower case. Those of a value, such as `must be at most 2`, do not.
const REFUSALS: &[&str] = &[
    "unsupported",
    "not supported",
    "does not support",
    "unknown",
    "unrecognized",
    "extra inputs are not permitted",
    "extra_forbidden",
    "deprecated",
    ONLY_WITH_ANOTHER,
    "cannot both be specified",
    "may only be set to",
    // https://github.com/XCNXNXNX/dsh-portable-tavern/issues/1
    "allowed for this model",
];
/// A refusal that says nothing about later requests.
const ONLY_WITH_ANOTHER: &str = "only allowed when";
/// Bounds the memory.
const MAX_MODELS: usize = 1000;

/// The parameters that a server has refused, by the model. They are remembered while the server runs.
#[derive(Default)]
pub(super) struct RefusedParameters(Mutex<HashMap<String, Vec<&'static Parameter>>>);

impl RefusedParameters {
    /// Returns a request without the parameters that were refused before.
    pub(super) fn without_known(&self, body: Bytes) -> Bytes {
        let by_model = self.0.lock();
        if by_model.is_empty() {
            return body;
        }
        let Ok(mut json) = serde_json::from_slice::<Value>(&body) else { return body };
        let Some(known) = by_model.get(model(&json)) else { return body };
        known.iter().for_each(|parameter| parameter.remove(&mut json));
        Bytes::from(json.to_string())
    }

    /// Returns the request to ask again with, or `None` if the refusal is about nothing that can be left out.
    pub(super) fn after(&self, refusal: &str, body: &Bytes) -> Option<Bytes> {
        let mut json: Value = serde_json::from_slice(body).ok()?;
        let said = refusal.to_lowercase();
        let count = || repaired(Partner::Model, Repair::ParameterLeftOut);
        if said.contains("invalid") && said.contains("signature") && said.contains("thinking") {
            if !remove_thinking(&mut json) {
                return None;
            }
            tracing::warn!("a model provider refused the signature of earlier thinking; asking again without thinking");
            count();
            return Some(Bytes::from(json.to_string()));
        }
        if !REFUSALS.iter().any(|words| said.contains(words)) {
            return None;
        }
        let parameter = named(refusal, &mut json)?;
        tracing::warn!(
            parameter = parameter.name,
            replaced_by = parameter.other_name,
            "a model provider refused a parameter; asking again without it"
        );
        count();
        if !said.contains(ONLY_WITH_ANOTHER) {
            let mut by_model = self.0.lock();
            let model = model(&json);
            if by_model.len() < MAX_MODELS || by_model.contains_key(model) {
                let known = by_model.entry(model.to_owned()).or_default();
                // Requests at the same time are refused for the same.
                if !known.iter().any(|known| known.name == parameter.name) {
                    known.push(parameter);
                }
            }
        }
        parameter.remove(&mut json);
        Some(Bytes::from(json.to_string()))
    }
}

impl Parameter {
    fn is_in(&self, json: &mut Value) -> bool {
        let mut is_in = false;
        for_each_object(json, &mut |object| is_in |= object.contains_key(self.name));
        is_in
    }

    fn remove(&self, json: &mut Value) {
        let mut removed = None;
        for_each_object(json, &mut |object| {
            if let Some(value) = object.shift_remove(self.name) {
                if let Some(other_name) = self.other_name {
                    object.insert(other_name.to_owned(), value.clone());
                }
                removed = Some(value);
            }
        });
        if let Some(schema) = removed.as_ref().and_then(|removed| removed.pointer("/format/schema")?.as_object()) {
            let block = json!({"type": "text", "text": schema_in_words(schema)});
            match json.get_mut("system") {
                Some(Value::Array(system)) => system.push(block),
                _ => json["system"] = json!([block]),
            }
        }
    }
}
/// Visits the objects of a request that may have parameters.
fn for_each_object(json: &mut Value, visit: &mut impl FnMut(&mut JsonObject)) {
    let Value::Object(request) = json else { return };
    visit(request);
    for (name, value) in request.iter_mut() {
        match value {
            Value::Object(group) if GROUPS.contains(&name.as_str()) => visit(group),
            Value::Array(members) if LISTS.contains(&name.as_str()) => {
                for member in members.iter_mut().filter_map(Value::as_object_mut) {
                    visit(member);
                    member.get_mut("function").and_then(Value::as_object_mut).into_iter().for_each(&mut *visit);
                    let blocks = member.get_mut("content").and_then(Value::as_array_mut).into_iter().flatten();
                    blocks.filter_map(Value::as_object_mut).for_each(&mut *visit);
                }
            }
            _ => {}
        }
    }
}

/// Asks for an answer that fits a schema, where the provider takes no schema.
pub(in crate::llm) fn schema_in_words(schema: &JsonObject) -> String {
    let schema = Value::Object(schema.clone());
    format!(
        "Answer with one JSON object alone, without Markdown or other text. It has to fit this JSON Schema:\n{schema}"
    )
}

/// Returns the name of the model that a request asks; empty if it is in the URL.
fn model(json: &Value) -> &str {
    json.get("model").and_then(Value::as_str).unwrap_or_default()
}

/// Returns the parameter of the request that a refusal names first, and in a path such as `output_config.effort` the last one.
/// The member `param`, if it is set, is the only name.
fn named(refusal: &str, json: &mut Value) -> Option<&'static Parameter> {
    let parsed: Option<Value> = serde_json::from_str(refusal).ok();
    let param = parsed.as_ref().and_then(|parsed| parsed.get("error").unwrap_or(parsed).get("param")?.as_str());
    let text = param.filter(|param| !param.is_empty()).unwrap_or(refusal);
    let sent = PARAMETERS.iter().filter(|parameter| place(text, parameter.name).is_some());
    let places: Vec<_> = sent.filter(|sent| sent.is_in(json)).map(|sent| (place(text, sent.name), sent)).collect();
    let first = places.iter().filter_map(|(place, _)| *place).min()?;
    let path = text[first..].find(|c| !is_letter(c) && c != '.').map_or(text.len(), |length| first + length);
    places.into_iter().filter(|(place, _)| *place < Some(path)).max_by_key(|(place, _)| *place).map(|(_, named)| named)
}

/// Returns where a text has a name as a whole word.
fn place(text: &str, name: &str) -> Option<usize> {
    let mut places = text.match_indices(name).map(|(at, _)| at);
    places.find(|at| !text[..*at].ends_with(is_letter) && !text[at + name.len()..].starts_with(is_letter))
}

fn is_letter(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// Signatures are valid at the server that made them, and for the model: <https://github.com/can1357/oh-my-pi/issues/6379>,
/// <https://github.com/vybestack/llxprt-code/issues/2335>. Returns `false` if the request has no thinking.
fn remove_thinking(json: &mut Value) -> bool {
    let is_thinking = |block: &Value| matches!(block["type"].as_str(), Some("thinking" | "redacted_thinking"));
    let mut is_changed = false;
    for message in json.get_mut("messages").and_then(Value::as_array_mut).into_iter().flatten() {
        let Some(Value::Array(blocks)) = message.get_mut("content") else { continue };
        let before = blocks.len();
        blocks.retain(|block| !is_thinking(block));
        is_changed |= blocks.len() != before;
    }
    // With a budget, calls need thinking before them.
    if json.pointer("/thinking/type").is_some_and(|kind| kind == "enabled") {
        json.as_object_mut().into_iter().for_each(|members| drop(members.shift_remove("thinking")));
    }
    is_changed
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_parameter_is_left_out_only_if_a_refusal_names_it() {
        let sent = json!({"model": "m", "max_tokens": 5, "temperature": 0.5, "stream_options": {}, "messages": []});
        let names = |refusal: &str| {
            let body = RefusedParameters::default().after(refusal, &Bytes::from(sent.to_string()))?;
            let body: Value = serde_json::from_slice(&body).unwrap();
            Some(body.as_object().unwrap().keys().cloned().collect::<Vec<_>>().join(" "))
        };
        for (refusal, left) in [
            (
                r#"{"error":{"message":"Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.","param":"max_tokens"}}"#,
                "model temperature stream_options messages max_completion_tokens",
            ),
            (
                r#"{"error":{"message":"Unsupported value: 'temperature' does not support 0.5 with this model.","param":"temperature"}}"#,
                "model max_tokens stream_options messages",
            ),
            ("`temperature` is deprecated for this model.", "model max_tokens stream_options messages"),
            (
                r#"{"message":{"detail":[{"type":"extra_forbidden","loc":["body","stream_options"],"msg":"Extra inputs are not permitted"}]}}"#,
                "model max_tokens temperature messages",
            ),
            ("invalid temperature: only 1 is allowed for this model", "model max_tokens stream_options messages"),
        ] {
            assert_eq!(names(refusal).as_deref(), Some(left), "{refusal}");
        }
        for refusal in [
            "temperature must be at most 2",
            "max_tokens: 5 > 4, which is the maximum allowed number of output tokens",
            "Unknown parameter: 'messages[0].name'",
            "Unsupported: my_temperature",
            r#"{"error":{"message":"Unsupported content, temperature is fine","param":"messages[0].content"}}"#,
            "",
        ] {
            assert_eq!(names(refusal), None, "{refusal}");
        }
    }

    #[test]
    fn a_refused_parameter_is_remembered_for_its_model() {
        let refused = RefusedParameters::default();
        let body = |model: &str| Bytes::from(json!({"model": model, "top_p": 1, "n": 1}).to_string());
        let again = refused.after("Unknown parameter: 'top_p'", &body("a")).unwrap();
        assert_eq!(again, r#"{"model":"a","n":1}"#);
        assert_eq!(refused.without_known(body("a")), again);
        assert_eq!(refused.without_known(body("b")), body("b"));
        assert_eq!(refused.after("Unknown parameter: 'top_p'", &again), None);
        let config = Bytes::from(r#"{"generationConfig":{"topK":1,"seed":2}}"#);
        let again = refused.after("Unknown name \"topK\" at 'generation_config': Cannot find field.", &config).unwrap();
        assert_eq!(again, r#"{"generationConfig":{"seed":2}}"#);
    }

    #[test]
    fn parameters_within_a_request_are_left_out_and_a_schema_is_told_in_words() {
        let schema = json!({"type": "object", "properties": {"strict": {"type": "string"}}});
        let sent = json!({
            "output_config": {"effort": "low", "format": {"type": "json_schema", "schema": schema}},
            "tools": [{"name": "a", "input_schema": schema, "strict": true, "cache_control": {"type": "ephemeral"}}],
            "messages": [{"role": "user", "content": [{"type": "text", "text": "hi", "cache_control": {"type": "ephemeral"}}]}],
        });
        let refused = RefusedParameters::default();
        let mut body = Bytes::from(sent.to_string());
        for refusal in [
            "output_config.effort: Extra inputs are not permitted",
            "tools.0.custom.cache_control.ephemeral.ttl: Extra inputs are not permitted",
            "tools.0.custom.strict: Extra inputs are not permitted",
            r#"{"error":{"type":"invalid_request_error","message":"output_config: Extra inputs are not permitted"}}"#,
        ] {
            body = refused.after(refusal, &body).unwrap();
            assert_eq!(
                refused.after(refusal, &body).map(|_| ()),
                refusal.contains(".effort").then_some(()),
                "{refusal}"
            );
        }
        let expected = json!({
            "tools": [{"name": "a", "input_schema": schema}],
            "messages": [{"role": "user", "content": [{"type": "text", "text": "hi"}]}],
            "system": [{"type": "text", "text": schema_in_words(schema.as_object().unwrap())}],
        });
        assert_eq!(serde_json::from_slice::<Value>(&body).unwrap(), expected);
        assert_eq!(refused.without_known(Bytes::from(sent.to_string())), body);
    }

    #[test]
    fn thinking_with_a_refused_signature_is_left_out() {
        let refusal = "messages.1.content.0: Invalid `signature` in `thinking` block";
        let sent = json!({"thinking": {"type": "enabled", "budget_tokens": 1024}, "messages": [
            {"role": "user", "content": [{"type": "text", "text": "a"}]},
            {"role": "assistant", "content": [{"type": "thinking", "thinking": "", "signature": "s"}, {"type": "text", "text": "b"}]},
        ]});
        let again = RefusedParameters::default().after(refusal, &Bytes::from(sent.to_string())).unwrap();
        assert!(!String::from_utf8_lossy(&again).contains("thinking"), "{again:?}");
        assert_eq!(RefusedParameters::default().after(refusal, &again), None);
    }
}
