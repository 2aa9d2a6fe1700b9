//! Requests of the Gemini API: <https://ai.google.dev/api/generate-content>.
//!
//! The contents of `user` and `model` alternate, with `user` first and last: newer models refuse a
//! request that ends with the model's own step
//! (<https://ai.google.dev/gemini-api/docs/latest-model>). Function responses are a separate
//! content right after their calls, one for each call.

use serde_json::{Value, json};

use super::{
    parts::{function_response, text, user_parts},
    signature::{PLACEHOLDER, belongs_to_text, call_signature, text_parts, thought_parts},
    thinking::thinking_config,
};
use crate::{
    Block, ModelOptions, ModelRequest, ModelStep, ToolChoice, ToolResult,
    form::{ReasoningForm, SystemForm},
    known_models::GeminiRules,
    providers::{
        attachments::Attachments,
        wire::{
            RoleMessage, RoleMessages, SetMember as _, arguments, leading_instructions,
            marked_instructions, schema, schema_in_words,
        },
    },
    transport::ProviderRequest,
};
use agui_protocol::JsonObject;
use agui_tools::ToolSpec;

pub(crate) fn body(options: &ModelOptions, request: &ModelRequest) -> ProviderRequest {
    let form = &request.form;
    let mut rules = options.known_models.gemini(request.model.as_ref().unwrap_or(&options.model));
    rules.requires_signatures |= form.reasoning == ReasoningForm::Added;
    let (leading, steps) = leading_instructions(&request.steps);
    let mut system: Vec<String> =
        request.system.iter().cloned().chain(leading.map(str::to_owned)).collect();
    let mut contents = GeminiContents {
        rules,
        list: RoleMessages::default(),
        attachments: Attachments::new(&request.steps),
        has_reasoning: form.has_reasoning(),
    };
    let first = request.steps.len() - steps.len();
    for (index, step) in steps.iter().enumerate() {
        contents.attachments.enter(first + index);
        contents.add_step(step);
    }
    contents.close();
    contents.add_current(&request.current);
    let GeminiContents { rules, mut list, attachments, .. } = contents;
    let config = generation_config(options, request, &rules, &mut system);
    system.retain(|text| !text.trim().is_empty());
    if form.system == SystemForm::InUser
        && let Some(first) = list.0.first_mut()
    {
        let instructions = std::mem::take(&mut system);
        let parts = instructions.iter().map(|part| text(&marked_instructions(part)));
        first.parts.splice(0..0, parts);
    }
    let system: Vec<_> = system.iter().map(|part| text(part)).collect();
    let list =
        list.0.into_iter().map(|content| json!({"role": content.role, "parts": content.parts}));
    let mut body = JsonObject::new();
    body.insert("contents".to_owned(), list.collect());
    body.set("systemInstruction", (!system.is_empty()).then(|| json!({"parts": system})));
    if !request.tools.is_empty() {
        body.set("tools", json!([{"functionDeclarations": function_declarations(request)}]));
        let config = function_calling_config(options, request);
        body.set("toolConfig", config.map(|config| json!({"functionCallingConfig": config})));
    }
    body.set("generationConfig", config);
    body.set("serviceTier", options.service_tier.as_deref());
    form.drop_parameters(&mut body);
    options.extend(&mut body);
    ProviderRequest {
        json: body.into(),
        skipped: attachments.skipped,
        ..ProviderRequest::default()
    }
}

/// Returns the declarations. `parametersJsonSchema` takes JSON Schema; `parameters` takes a subset
/// of OpenAPI's: <https://ai.google.dev/api/caching#FunctionDeclaration>.
fn function_declarations(request: &ModelRequest) -> Vec<Value> {
    let declaration = |spec: &ToolSpec| {
        // A description is required.
        let description = if spec.description.is_empty() { &spec.name } else { &spec.description };
        json!({"name": spec.name, "description": description, "parametersJsonSchema": schema(&spec.parameters)})
    };
    request.tools.iter().map(declaration).collect()
}

/// <https://ai.google.dev/gemini-api/docs/function-calling#function_calling_modes>
fn function_calling_config(options: &ModelOptions, request: &ModelRequest) -> Option<Value> {
    Some(match &request.tool_choice {
        // The model may call, and its calls fit their schemas.
        ToolChoice::Auto => {
            return (options.strict_tools == Some(true)).then(|| json!({"mode": "VALIDATED"}));
        }
        ToolChoice::None => json!({"mode": "NONE"}),
        ToolChoice::Required => json!({"mode": "ANY"}),
        ToolChoice::Tool(name) => json!({"mode": "ANY", "allowedFunctionNames": [name]}),
    })
}

/// Adds the schema of the answer to the instructions if the model does not take it together with tools.
fn generation_config(
    options: &ModelOptions,
    request: &ModelRequest,
    rules: &GeminiRules,
    system: &mut Vec<String>,
) -> JsonObject {
    let mut config = JsonObject::new();
    config.set("maxOutputTokens", options.max_tokens);
    if rules.sampling {
        config.set("temperature", options.temperature);
        config.set("topP", options.top_p);
        config.set("topK", options.top_k);
    }
    config.set("seed", options.seed);
    if rules.penalties {
        config.set("frequencyPenalty", options.frequency_penalty);
        config.set("presencePenalty", options.presence_penalty);
    }
    config.set("stopSequences", options.stop.clone());
    let resolution = match options.image_detail.as_deref() {
        Some("low") => Some("MEDIA_RESOLUTION_LOW"),
        Some("high") => Some("MEDIA_RESOLUTION_HIGH"),
        _ => None,
    };
    config.set("mediaResolution", resolution);
    config.set("thinkingConfig", thinking_config(options, request.thinking, rules));
    if let Some(schema) = &request.response_schema {
        let is_taken =
            ["responseJsonSchema", "responseSchema"].iter().all(|name| request.form.has(name));
        if is_taken && (request.tools.is_empty() || rules.schema_with_tools) {
            config.set("responseMimeType", "application/json");
            config.set("responseJsonSchema", (**schema).clone());
        } else {
            system.push(schema_in_words(schema));
        }
    }
    config
}

struct GeminiContents {
    rules: GeminiRules,
    list: RoleMessages,
    attachments: Attachments,
    has_reasoning: bool,
}

impl GeminiContents {
    fn add_step(&mut self, step: &ModelStep) {
        match step {
            // Instructions stay in their place: at the front they would apply to other messages.
            ModelStep::Instructions(instructions) => {
                self.list.push("user", vec![text(&marked_instructions(instructions))])
            }
            ModelStep::User(parts) => {
                let parts = user_parts(parts, &self.rules, &mut self.attachments);
                self.list.push("user", parts);
            }
            ModelStep::Assistant(blocks) => {
                self.list.push("model", model_parts(blocks, self.has_reasoning))
            }
            ModelStep::ToolResults(results) => self.add_results(results),
        }
    }

    fn add_results(&mut self, results: &[ToolResult]) {
        let (mut parts, mut all_media) = (Vec::new(), Vec::new());
        for result in results {
            let (part, media) = function_response(result, &self.rules, &mut self.attachments);
            parts.push(part);
            all_media.extend(media);
        }
        // No other parts are added to function responses, because each has to answer a call.
        self.list.0.push(RoleMessage { role: "user", is_whole: true, parts });
        self.list.push("user", all_media);
    }

    fn close(&mut self) {
        self.list.complete(text);
        if self.rules.requires_signatures {
            self.list
                .0
                .iter_mut()
                .filter(|content| content.role == "model")
                .for_each(sign_first_call);
        }
    }

    /// Adds the current instructions. After function responses, they belong to the end of the last
    /// one: <https://ai.google.dev/gemini-api/docs/whats-new-gemini-3.5#inline-instructions>.
    fn add_current(&mut self, current: &[String]) {
        let current: Vec<_> = current
            .iter()
            .filter(|text| !text.trim().is_empty())
            .map(|text| marked_instructions(text))
            .collect();
        let Some(last) = self.list.0.last_mut().filter(|_| !current.is_empty()) else { return };
        if !last.is_whole {
            last.parts.extend(current.iter().map(|instructions| text(instructions)));
            return;
        }
        let response =
            last.parts.last_mut().and_then(|part| part.pointer_mut("/functionResponse/response"));
        let output = response
            .and_then(Value::as_object_mut)
            .and_then(|response| response.values_mut().next());
        if let Some(Value::String(output)) = output {
            for instructions in current {
                output.push_str("\n\n");
                output.push_str(&instructions);
            }
        }
    }
}

/// Returns the parts of a model's step; none for a step of thoughts alone.
fn model_parts(blocks: &[Block], has_reasoning: bool) -> Vec<Value> {
    let mut parts = Vec::new();
    let mut blocks = blocks.iter().peekable();
    let mut is_thought_alone = true;
    while let Some(block) = blocks.next() {
        match block {
            Block::Reasoning(_) if !has_reasoning => {}
            Block::Reasoning(thought) => parts.extend(match artefact_of_text(block) {
                None => {
                    thought_parts(&thought.text, thought.artefact.as_deref().unwrap_or_default())
                }
                artefact => text_parts("", artefact),
            }),
            Block::Text(answer) => {
                // The artefact of a text follows it.
                let next = blocks.next_if(|next| artefact_of_text(next).is_some());
                let artefact = next.and_then(artefact_of_text).filter(|_| has_reasoning);
                let text = text_parts(answer, artefact);
                is_thought_alone &= text.is_empty();
                parts.extend(text);
            }
            Block::Call(call) => {
                is_thought_alone = false;
                let function = &call.function;
                let mut part = json!({"functionCall": {
                    "id": call.id.as_str(),
                    "name": function.name,
                    "args": arguments(&function.arguments),
                }});
                let signature = call.encrypted_value.as_deref().and_then(call_signature);
                if let Some(signature) = signature.filter(|_| has_reasoning) {
                    part["thoughtSignature"] = signature.into();
                }
                parts.push(part);
            }
        }
    }
    if is_thought_alone { Vec::new() } else { parts }
}

fn artefact_of_text(block: &Block) -> Option<&str> {
    let Block::Reasoning(block) = block else { return None };
    block.artefact.as_deref().filter(|artefact| belongs_to_text(artefact))
}

/// Signs the first call of a step: models refuse a step whose first call has no signature. The
/// documentation has a placeholder for calls that the model did not make:
/// <https://ai.google.dev/gemini-api/docs/thought-signatures#faqs>.
fn sign_first_call(content: &mut RoleMessage) {
    let first = content.parts.iter_mut().find(|part| part.get("functionCall").is_some());
    if let Some(part) = first.filter(|part| part.get("thoughtSignature").is_none()) {
        part["thoughtSignature"] = PLACEHOLDER.into();
    }
}

#[cfg(test)]
mod tests;
