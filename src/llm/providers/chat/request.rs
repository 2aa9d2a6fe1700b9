//! Requests of chat completions.

use serde_json::{Map, Value, json};

use super::{
    messages::{InWords, messages},
    thinking,
};
use crate::{
    llm::{
        ModelOptions, ModelRequest, Thinking, ToolChoice,
        known_models::{OpenAiRules, Profile, StructuredOutputs, TokenLimit, ToolChoiceForm},
        providers::openai::strict_schema::allows_strict,
        providers::request_body::RequestBody,
        providers::wire::{forced_call_in_words, schema, schema_in_words},
    },
    tools::ToolSpec,
};

/// The body of a request, and the attachments that it cannot contain.
pub(super) fn body(options: &ModelOptions, profile: &Profile, request: &ModelRequest) -> RequestBody {
    let model = request.model.as_ref().unwrap_or(&options.model);
    let tools = offered_tools(profile, request);
    let takes_schema = profile.structured_outputs == StructuredOutputs::JsonSchema;
    let can_force = profile.tool_choice_form != ToolChoiceForm::Auto;
    let in_words = InWords {
        schema: request.response_schema.as_deref().filter(|_| !takes_schema).map(schema_in_words),
        forced_call: Some(&request.tool_choice)
            .filter(|_| !can_force && !tools.is_empty())
            .and_then(forced_call_in_words),
    };
    let is_thinking_off = options.thinking_of(request.thinking) == Some(Thinking::Off);
    let (messages, skipped) = messages(profile, options, request, &in_words, is_thinking_off);
    let mut body = Map::new();
    let mut set = |member: &str, value: Value| drop(body.insert(member.to_owned(), value));
    set("model", model.as_str().into());
    set("messages", messages.into());
    set("stream", true.into());
    if profile.stream_options {
        set("stream_options", json!({"include_usage": true}));
    }
    let rules = profile.has_openai_models.then(|| options.known_models.openai(model)).flatten();
    let has_tools = !tools.is_empty();
    if has_tools {
        add_tools(&mut body, &tools, options, profile, request, rules.as_ref());
    }
    body.extend(thinking::members(profile, options, request.thinking, model));
    if let Some(only) = rules.as_ref().filter(|_| has_tools).and_then(OpenAiRules::effort_with_tools_on_chat) {
        body.insert("reasoning_effort".to_owned(), only.into());
    }
    add_sampling(&mut body, options, profile, model, rules.as_ref());
    add_answer(&mut body, options, profile, request, rules.as_ref());
    let mut json = body.into();
    options.extend(&mut json);
    RequestBody { json, skipped }
}

/// Returns the tools for the model. Where the server cannot be told which ones the model may call, others are left out.
fn offered_tools<'r>(profile: &Profile, request: &'r ModelRequest) -> Vec<&'r ToolSpec> {
    let is_offered = |tool: &&ToolSpec| match (&request.tool_choice, profile.tool_choice_form) {
        (ToolChoice::None, ToolChoiceForm::Auto) => false,
        (ToolChoice::Tool(name), ToolChoiceForm::Auto | ToolChoiceForm::Words) => tool.name == *name,
        _ => true,
    };
    request.tools.iter().filter(is_offered).collect()
}

/// Adds the tools, of which there is at least one, and the options about them: without tools, servers refuse these.
fn add_tools(
    body: &mut Map<String, Value>,
    tools: &[&ToolSpec],
    options: &ModelOptions,
    profile: &Profile,
    request: &ModelRequest,
    rules: Option<&OpenAiRules>,
) {
    let is_strict = options.strict_tools == Some(true) && profile.strict;
    body.insert("tools".to_owned(), tools.iter().map(|spec| tool(spec, is_strict)).collect());
    let choice = match (&request.tool_choice, profile.tool_choice_form) {
        (ToolChoice::Auto, _) | (_, ToolChoiceForm::Auto) => None,
        (ToolChoice::None, _) => Some("none".into()),
        (ToolChoice::Required, _) | (ToolChoice::Tool(_), ToolChoiceForm::Words) => Some("required".into()),
        (ToolChoice::Tool(name), ToolChoiceForm::Named) => {
            Some(json!({"type": "function", "function": {"name": name}}))
        }
    };
    if let Some(choice) = choice {
        body.insert("tool_choice".to_owned(), choice);
    }
    let takes_parallel = rules.is_none_or(OpenAiRules::takes_parallel_calls_on_chat);
    if let Some(is_parallel) = options.parallel_tool_calls.filter(|_| takes_parallel) {
        body.insert("parallel_tool_calls".to_owned(), is_parallel.into());
    }
}

fn tool(tool: &ToolSpec, is_strict_wanted: bool) -> Value {
    let parameters = schema(&tool.parameters);
    let is_strict = is_strict_wanted && allows_strict(&parameters);
    let mut function = json!({"name": tool.name, "description": tool.description, "parameters": parameters});
    if is_strict {
        function["strict"] = true.into();
    }
    json!({"type": "function", "function": function})
}

/// Adds the options of sampling. The body has the effort.
fn add_sampling(
    body: &mut Map<String, Value>,
    options: &ModelOptions,
    profile: &Profile,
    model: &str,
    rules: Option<&OpenAiRules>,
) {
    let effort = body.get("reasoning_effort").and_then(Value::as_str);
    let takes_sampling = rules.is_none_or(|rules| rules.takes_sampling(effort));
    let mut set = |member: &str, value: Option<Value>| {
        value.into_iter().for_each(|value| drop(body.insert(member.to_owned(), value)));
    };
    if takes_sampling {
        set("temperature", options.temperature.map(Value::from));
        set("top_p", options.top_p.map(Value::from));
    }
    if profile.takes_stop(model) && rules.is_none_or(|rules| !rules.reasons) {
        set("frequency_penalty", options.frequency_penalty.map(Value::from));
        set("presence_penalty", options.presence_penalty.map(Value::from));
        set("stop", Some(Value::from(options.stop.clone())).filter(|_| !options.stop.is_empty()));
    }
    set("top_k", options.top_k.map(Value::from));
    set(&profile.seed_member, options.seed.map(Value::from));
}

/// Adds the options about the answer and about the provider's service.
fn add_answer(
    body: &mut Map<String, Value>,
    options: &ModelOptions,
    profile: &Profile,
    request: &ModelRequest,
    rules: Option<&OpenAiRules>,
) {
    let mut set = |member: &str, value: Option<Value>| {
        value.into_iter().for_each(|value| drop(body.insert(member.to_owned(), value)));
    };
    let limit = match profile.token_limit {
        TokenLimit::MaxTokens => "max_tokens",
        TokenLimit::MaxCompletionTokens => "max_completion_tokens",
    };
    set(limit, options.max_tokens.map(Value::from));
    if let Some(schema) = &request.response_schema {
        set("response_format", response_format(&Value::Object((**schema).clone()), profile));
    }
    set(
        "verbosity",
        options.verbosity.as_deref().filter(|_| rules.is_none_or(|rules| rules.has_verbosity)).map(Value::from),
    );
    set("service_tier", options.service_tier.as_deref().map(Value::from));
    set("prompt_cache_key", options.cache_key.as_deref().map(Value::from));
    if !options.metadata.is_empty() {
        set("metadata", Some(options.metadata.iter().map(|(name, value)| (name.clone(), value.clone())).collect()));
        // OpenAI takes metadata of stored answers only:
        // https://community.openai.com/t/metadata-parameter-in-chat-completion-api-reference-documentation-needs-to-be-updated/1119240
        set("store", Some(true.into()).filter(|_| profile.has_openai_models));
    }
}

fn response_format(schema: &Value, profile: &Profile) -> Option<Value> {
    match profile.structured_outputs {
        StructuredOutputs::JsonSchema => {
            let mut format = json!({"name": "answer", "schema": schema});
            if profile.strict && allows_strict(schema) {
                format["strict"] = true.into();
            }
            Some(json!({"type": "json_schema", "json_schema": format}))
        }
        StructuredOutputs::JsonObject => Some(json!({"type": "json_object"})),
        StructuredOutputs::None => None,
    }
}

#[cfg(test)]
pub(super) mod tests;
