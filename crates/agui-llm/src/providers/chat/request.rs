//! Requests of chat completions.

use serde_json::{Value, json};

use super::{messages::messages, thinking};
use crate::{
    ModelOptions, ModelRequest, ToolChoice,
    known_models::{OpenAiRules, Profile, StructuredOutputs, TokenLimit, ToolChoiceForm},
    providers::{
        strict_schema::allows_strict,
        wire::{SetMember as _, schema},
    },
    transport::ProviderRequest,
};
use agui_protocol::JsonObject;
use agui_tools::ToolSpec;

/// The body of a request, and the attachments that it cannot contain.
pub(crate) fn body(
    options: &ModelOptions,
    profile: &Profile,
    request: &ModelRequest,
) -> ProviderRequest {
    let model = request.model.as_ref().unwrap_or(&options.model);
    let rules = profile.has_openai_models.then(|| options.known_models.openai(model)).flatten();
    let profile = &*request.form.profile(profile);
    ChatRequest { options, profile, request, model, rules: rules.as_ref() }.body()
}

struct ChatRequest<'r> {
    options: &'r ModelOptions,
    profile: &'r Profile,
    request: &'r ModelRequest,
    model: &'r str,
    rules: Option<&'r OpenAiRules>,
}

impl ChatRequest<'_> {
    fn body(&self) -> ProviderRequest {
        let Self { options, profile, request, model, rules } = *self;
        let tools = self.offered_tools();
        let (messages, skipped) = messages(options, profile, request, !tools.is_empty());
        let mut body = JsonObject::new();
        body.set("model", model);
        body.insert("messages".to_owned(), messages.into());
        body.set("stream", true);
        body.set("stream_options", profile.stream_options.then(|| json!({"include_usage": true})));
        self.add_tools(&mut body, &tools);
        body.extend(thinking::members(profile, options, request.thinking, model, rules));
        body.set(
            "reasoning_effort",
            rules.filter(|_| !tools.is_empty()).and_then(OpenAiRules::effort_with_tools_on_chat),
        );
        self.add_sampling(&mut body);
        self.add_answer(&mut body);
        request.form.drop_parameters(&mut body);
        options.extend(&mut body);
        ProviderRequest { json: body.into(), skipped, ..ProviderRequest::default() }
    }

    /// Returns the tools for the model. If the server cannot restrict the model's choice, forbidden
    /// tools are left out.
    fn offered_tools(&self) -> Vec<&ToolSpec> {
        let is_offered =
            |tool: &&ToolSpec| match (&self.request.tool_choice, self.profile.tool_choice_form) {
                (ToolChoice::None, ToolChoiceForm::Auto) => false,
                (ToolChoice::Tool(name), ToolChoiceForm::Auto | ToolChoiceForm::Words) => {
                    tool.name == *name
                }
                _ => true,
            };
        self.request.tools.iter().filter(is_offered).collect()
    }

    /// Adds the tools and their options. Servers refuse the options without tools.
    fn add_tools(&self, body: &mut JsonObject, tools: &[&ToolSpec]) {
        if tools.is_empty() {
            return;
        }
        let is_strict = self.options.strict_tools == Some(true) && self.profile.strict;
        body.set("tools", tools.iter().map(|spec| tool(spec, is_strict)).collect::<Value>());
        let choice = match (&self.request.tool_choice, self.profile.tool_choice_form) {
            (ToolChoice::Auto, _) | (_, ToolChoiceForm::Auto) => Value::Null,
            (ToolChoice::None, _) => "none".into(),
            (ToolChoice::Required, _) | (ToolChoice::Tool(_), ToolChoiceForm::Words) => {
                "required".into()
            }
            (ToolChoice::Tool(name), ToolChoiceForm::Named) => {
                json!({"type": "function", "function": {"name": name}})
            }
        };
        body.set("tool_choice", choice);
        let takes_parallel = self.rules.is_none_or(OpenAiRules::takes_parallel_calls_on_chat);
        body.set(
            "parallel_tool_calls",
            self.options.parallel_tool_calls.filter(|_| takes_parallel),
        );
    }

    /// Adds the options of sampling. The body already has the effort.
    fn add_sampling(&self, body: &mut JsonObject) {
        let Self { options, profile, rules, .. } = *self;
        let effort = body.get("reasoning_effort").and_then(Value::as_str);
        if rules.is_none_or(|rules| rules.takes_sampling(effort)) {
            body.set("temperature", options.temperature);
            body.set("top_p", options.top_p);
        }
        if profile.takes_stop(self.model) && rules.is_none_or(|rules| !rules.reasons) {
            body.set("frequency_penalty", options.frequency_penalty);
            body.set("presence_penalty", options.presence_penalty);
            body.set("stop", options.stop.clone());
        }
        body.set("top_k", options.top_k);
        body.set(&profile.seed_member, options.seed);
    }

    /// Adds the options about the answer and about the provider's service.
    fn add_answer(&self, body: &mut JsonObject) {
        let Self { options, profile, .. } = *self;
        let limit = match profile.token_limit {
            TokenLimit::MaxTokens => "max_tokens",
            TokenLimit::MaxCompletionTokens => "max_completion_tokens",
        };
        body.set(limit, options.max_tokens);
        let schema = self.request.response_schema.as_deref();
        body.set(
            "response_format",
            schema.and_then(|schema| response_format(&schema.clone().into(), profile)),
        );
        let has_verbosity = self.rules.is_none_or(|rules| rules.has_verbosity);
        body.set("verbosity", options.verbosity.as_deref().filter(|_| has_verbosity));
        body.set("service_tier", options.service_tier.as_deref());
        body.set("prompt_cache_key", options.cache_key.as_deref());
        body.set("metadata", json!(options.metadata));
        // OpenAI takes metadata only for stored answers:
        // https://community.openai.com/t/metadata-parameter-in-chat-completion-api-reference-documentation-needs-to-be-updated/1119240
        body.set(
            "store",
            (!options.metadata.is_empty() && profile.has_openai_models).then_some(true),
        );
    }
}

fn tool(tool: &ToolSpec, is_strict_wanted: bool) -> Value {
    let parameters = schema(&tool.parameters);
    let is_strict = is_strict_wanted && allows_strict(&parameters);
    let mut function =
        json!({"name": tool.name, "description": tool.description, "parameters": parameters});
    if is_strict {
        function["strict"] = true.into();
    }
    json!({"type": "function", "function": function})
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
