//! Requests of the Responses API.

use serde_json::{Value, json};

use super::input;
use crate::{
    llm::{
        ModelOptions, ModelRequest, Thinking, ToolChoice,
        known_models::OpenAiRules,
        providers::attachments::Attachments,
        providers::openai::{effort::effort, strict_schema::allows_strict},
        providers::request_body::RequestBody,
        providers::wire::schema,
    },
    protocol::JsonObject,
    tools::ToolSpec,
};

/// The name of the schema of an answer. The API requires one.
const SCHEMA_NAME: &str = "answer";

pub(super) fn body(options: &ModelOptions, request: &ModelRequest) -> RequestBody {
    let mut attachments = Attachments::new(&request.turns);
    let model = request.model.as_deref().unwrap_or(&options.model);
    let rules = options.known_models.openai(model);
    let rules = rules.as_ref();
    // The API stores the response unless it is told not to.
    let mut body = json!({
        "model": model,
        "input": input::items(options, request, rules.is_some_and(|rules| rules.has_phases), &mut attachments),
        "stream": true,
        "store": false,
    });
    if !request.system.is_empty() {
        body["instructions"] = request.system.join("\n\n").into();
    }
    if !request.tools.is_empty() {
        let is_strict = options.strict_tools == Some(true);
        body["tools"] = request.tools.iter().map(|spec| tool(spec, is_strict)).collect();
        match &request.tool_choice {
            ToolChoice::Auto => {}
            ToolChoice::None => body["tool_choice"] = "none".into(),
            ToolChoice::Required => body["tool_choice"] = "required".into(),
            ToolChoice::Tool(name) => body["tool_choice"] = json!({"type": "function", "name": name}),
        }
        if let Some(parallel) = options.parallel_tool_calls {
            body["parallel_tool_calls"] = parallel.into();
        }
    }
    add_reasoning(&mut body, options, request, rules);
    let has_verbosity = rules.is_none_or(|rules| rules.has_verbosity);
    if let Some(verbosity) = options.verbosity.as_deref().filter(|_| has_verbosity) {
        body["text"]["verbosity"] = verbosity.into();
    }
    if let Some(schema) = &request.response_schema {
        body["text"]["format"] = text_format(schema);
    }
    if let Some(limit) = options.max_tokens {
        body["max_output_tokens"] = limit.into();
    }
    if let Some(tier) = &options.service_tier {
        body["service_tier"] = tier.as_str().into();
    }
    if let Some(key) = &options.cache_key {
        body["prompt_cache_key"] = key.as_str().into();
    }
    if !options.metadata.is_empty() {
        body["metadata"] =
            options.metadata.iter().map(|(key, value)| (key.clone(), Value::from(value.as_str()))).collect();
    }
    extend(&mut body, options);
    RequestBody { json: body, skipped: attachments.into_skipped() }
}

/// A tool is strict by default in this API, so each one says whether it is. The API refuses a strict tool whose schema
/// has optional members: <https://developers.openai.com/api/docs/guides/function-calling>, "Strict mode".
fn tool(tool: &ToolSpec, is_strict: bool) -> Value {
    let parameters = schema(&tool.parameters);
    let strict = is_strict && allows_strict(&parameters);
    json!({
        "type": "function",
        "name": tool.name,
        "description": tool.description,
        "parameters": parameters,
        "strict": strict,
    })
}

/// Adds the effort and the sampling. Known models get those that they take.
fn add_reasoning(body: &mut Value, options: &ModelOptions, request: &ModelRequest, rules: Option<&OpenAiRules>) {
    let thinks = options.thinking_of(request.thinking).map(|thinking| thinking != Thinking::Off);
    let wanted = effort(rules, options.reasoning_effort.as_deref(), thinks);
    let effort = wanted.and_then(|effort| rules.map_or(Some(effort), |rules| rules.nearest_effort(effort)));
    let reasons = rules.map_or(effort.is_some(), |rules| rules.reasons);
    if let Some(effort) = effort {
        body["reasoning"] = json!({"effort": effort});
        // Summaries are for reasoning that was asked for. The service gives them to verified organisations only.
        if effort != "none" && reasons && thinks != Some(false) {
            body["reasoning"]["summary"] = "auto".into();
        }
    }
    if reasons {
        // Without this, reasoning cannot be sent back, because the service has not stored it.
        body["include"] = json!(["reasoning.encrypted_content"]);
    }
    if rules.is_none_or(|rules| rules.takes_sampling(effort)) {
        if let Some(temperature) = options.temperature {
            body["temperature"] = temperature.into();
        }
        if let Some(top_p) = options.top_p {
            body["top_p"] = top_p.into();
        }
    }
}

fn text_format(schema: &JsonObject) -> Value {
    let schema = Value::from(schema.clone());
    let strict = allows_strict(&schema);
    json!({"type": "json_schema", "name": SCHEMA_NAME, "schema": schema, "strict": strict})
}

/// Merges `extra_body`. Its `tools` (the provider's own) and `include` are added to those of the request.
fn extend(body: &mut Value, options: &ModelOptions) {
    let own = ["tools", "include"].map(|name| (name, body[name].as_array().cloned().unwrap_or_default()));
    options.extend(body);
    for (name, mut list) in own {
        if let Some(Value::Array(more)) = options.extra_body.get(name) {
            list.extend(more.iter().cloned());
            body[name] = list.into();
        }
    }
    // `summary = false` removes the summary, also from a request that has none.
    if body["reasoning"]["summary"] == false {
        body["reasoning"].as_object_mut().into_iter().for_each(|members| drop(members.remove("summary")));
    }
    // `store = false` in `extra_body` has removed the member, and the API would store the response without it.
    if body.get("store").is_none() {
        body["store"] = false.into();
    }
}

#[cfg(test)]
mod tests;
