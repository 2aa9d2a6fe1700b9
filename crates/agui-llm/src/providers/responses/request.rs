//! Requests of the Responses API.

use serde_json::{Value, json};

use super::input;
use crate::{
    ModelOptions, ModelRequest, ModelStep, Thinking, ToolChoice,
    form::SystemForm,
    known_models::OpenAiRules,
    providers::{
        attachments::Attachments,
        openai_effort::effort,
        strict_schema::allows_strict,
        wire::{SetMember as _, schema, schema_in_words},
    },
    transport::ProviderRequest,
};
use agui_protocol::JsonObject;
use agui_tools::ToolSpec;

/// The name of the schema of an answer. The API requires one.
const SCHEMA_NAME: &str = "answer";

pub(crate) fn body(options: &ModelOptions, request: &ModelRequest) -> ProviderRequest {
    let mut attachments = Attachments::new(&request.steps);
    let model = request.model.as_deref().unwrap_or(&options.model);
    let rules = options.known_models.openai(model);
    let rules = rules.as_ref();
    let has_phases = rules.is_some_and(|rules| rules.has_phases);
    let mut body = JsonObject::new();
    body.set("model", model);
    let joins = request.form.system != SystemForm::Usual;
    body.set("input", input::items(options, request, has_phases, &mut attachments));
    body.set("stream", true);
    // The API stores responses by default.
    body.set("store", false);
    let schema = request.response_schema.as_deref();
    let described = schema.filter(|_| !request.form.has("format")).map(schema_in_words);
    let later = request.steps.iter().filter_map(|step| match step {
        ModelStep::Instructions(text) => Some(text),
        _ => None,
    });
    let instructions: Vec<&str> = (request.system.iter().chain(&described))
        .chain(later.chain(&request.current).filter(|_| joins))
        .map(String::as_str)
        .collect();
    let in_user = request.form.system == SystemForm::InUser;
    body.set(
        "instructions",
        (!instructions.is_empty() && !in_user).then(|| instructions.join("\n\n")),
    );
    if !request.tools.is_empty() {
        let is_strict = options.strict_tools == Some(true);
        body.set(
            "tools",
            request
                .tools
                .iter()
                .map(|spec| tool(spec, is_strict, request.form.has("strict")))
                .collect::<Value>(),
        );
        let choice = match &request.tool_choice {
            ToolChoice::Auto => Value::Null,
            ToolChoice::None => "none".into(),
            ToolChoice::Required => "required".into(),
            ToolChoice::Tool(name) => json!({"type": "function", "name": name}),
        };
        body.set("tool_choice", choice);
        body.set("parallel_tool_calls", options.parallel_tool_calls);
    }
    add_reasoning(&mut body, options, request, rules);
    let has_verbosity = rules.is_none_or(|rules| rules.has_verbosity);
    let mut text = JsonObject::new();
    text.set("verbosity", options.verbosity.as_deref().filter(|_| has_verbosity));
    text.set("format", request.response_schema.as_deref().map(text_format));
    body.set("text", text);
    body.set("max_output_tokens", options.max_tokens);
    body.set("service_tier", options.service_tier.as_deref());
    body.set("prompt_cache_key", options.cache_key.as_deref());
    body.set("metadata", json!(options.metadata));
    request.form.drop_parameters(&mut body);
    let json = extended(body, options);
    ProviderRequest { json, skipped: attachments.skipped, ..ProviderRequest::default() }
}

/// Returns a tool with an explicit `strict`, which is true by default. The API refuses a strict
/// tool whose schema has optional members:
/// <https://developers.openai.com/api/docs/guides/function-calling>, "Strict mode".
fn tool(tool: &ToolSpec, is_strict: bool, has_strict: bool) -> Value {
    let parameters = schema(&tool.parameters);
    let strict = is_strict && allows_strict(&parameters);
    let mut tool = json!({
        "type": "function",
        "name": tool.name,
        "description": tool.description,
        "parameters": parameters,
    });
    if has_strict {
        tool["strict"] = strict.into();
    }
    tool
}

/// Adds the effort and the sampling. Known models get only the options that they take.
fn add_reasoning(
    body: &mut JsonObject,
    options: &ModelOptions,
    request: &ModelRequest,
    rules: Option<&OpenAiRules>,
) {
    let effort = effort(rules, options, request.thinking);
    let reasons = rules.map_or(effort.is_some(), |rules| rules.reasons);
    // Summaries are requested only with reasoning. The service sends them to verified organizations
    // only.
    let is_off = options.thinking_of(request.thinking) == Some(Thinking::Off);
    let has_summary = effort.is_some_and(|effort| effort != "none") && reasons && !is_off;
    let mut reasoning = JsonObject::new();
    reasoning.set("effort", effort);
    reasoning.set("summary", has_summary.then_some("auto"));
    body.set("reasoning", reasoning);
    // Without this, reasoning cannot be sent back, because the service has not stored it.
    body.set("include", reasons.then(|| json!(["reasoning.encrypted_content"])));
    if rules.is_none_or(|rules| rules.takes_sampling(effort)) {
        body.set("temperature", options.temperature);
        body.set("top_p", options.top_p);
    }
}

fn text_format(schema: &JsonObject) -> Value {
    let schema = Value::from(schema.clone());
    let strict = allows_strict(&schema);
    json!({"type": "json_schema", "name": SCHEMA_NAME, "schema": schema, "strict": strict})
}

/// Returns the body with `extra_body`. Both lists `include` are joined.
fn extended(mut body: JsonObject, options: &ModelOptions) -> Value {
    let mut include = body.get("include").and_then(Value::as_array).cloned().unwrap_or_default();
    options.extend(&mut body);
    let mut body = Value::Object(body);
    if let Some(Value::Array(more)) = options.extra_body.get("include") {
        include.extend(more.iter().cloned());
        body["include"] = include.into();
    }
    // `summary = false` removes the summary, also from a request that has none.
    if body["reasoning"]["summary"] == false {
        body["reasoning"]
            .as_object_mut()
            .into_iter()
            .for_each(|members| drop(members.remove("summary")));
    }
    // `store = false` in `extra_body` has removed the member, and the API would store the response without it.
    if body.get("store").is_none() {
        body["store"] = false.into();
    }
    body
}

#[cfg(test)]
mod tests;
