//! What is left out of a request after a refusal that names it: parameters that the server does not take, and thinking that
//! it did not sign. A schema of the answer that is left out is told in words.
//!
//! What helped is remembered for the owner of the request.

use bytes::Bytes;
use reqwest::Url;
use serde_json::{Value, json};

use super::{
    ProviderRequest,
    refusal_names::{Named, named},
};
use crate::{
    base::repairs::{Partner, Repair, repaired},
    llm::{
        CallTrace,
        learned::{Learned, Scope},
    },
    protocol::JsonObject,
    store::ThreadKey,
};

/// A parameter of a request.
#[derive(Debug, Clone)]
pub(super) struct Parameter {
    pub(super) name: &'static str,
    pub(super) if_refused: IfRefused,
    /// Whether tools and parts of messages can have it. Others stand in the request itself, or in one of its [`GROUPS`].
    pub(super) is_of_lists: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum IfRefused {
    /// It changes how a model answers, but not what it is asked.
    LeaveOut,
    /// Another parameter says the same.
    Rename(&'static str),
    /// It stays, and the refusal is shown: what may be kept or collected, safety, the use of tools, the largest answer.
    Keep,
}

const fn optional(name: &'static str) -> Parameter {
    Parameter { name, if_refused: IfRefused::LeaveOut, is_of_lists: false }
}

const fn of_lists(name: &'static str) -> Parameter {
    Parameter { is_of_lists: true, ..optional(name) }
}

const fn renamed(name: &'static str, other: &'static str) -> Parameter {
    Parameter { if_refused: IfRefused::Rename(other), ..optional(name) }
}

const fn kept(name: &'static str) -> Parameter {
    Parameter { if_refused: IfRefused::Keep, ..optional(name) }
}

pub(super) const PARAMETERS: &[Parameter] = &[
    // https://github.com/griptape-ai/ComfyUI-Griptape/issues/312, https://github.com/1Panel-dev/MaxKB/issues/2912
    renamed("max_tokens", "max_completion_tokens"),
    renamed("max_completion_tokens", "max_tokens"),
    // https://github.com/BeehiveInnovations/pal-mcp-server/issues/78, https://github.com/altic-dev/FluidVoice/issues/285
    optional("temperature"),
    optional("top_p"),
    optional("top_k"),
    optional("frequency_penalty"),
    optional("presence_penalty"),
    optional("seed"),
    optional("random_seed"),
    // https://github.com/agno-agi/agno/issues/1066, https://github.com/microsoft/semantic-kernel/issues/10510
    optional("stream_options"),
    // https://github.com/Upsonic/Upsonic/issues/323
    optional("parallel_tool_calls"),
    optional("reasoning_effort"),
    optional("verbosity"),
    optional("service_tier"),
    optional("prompt_cache_key"),
    // Gemini's: https://github.com/MinLL/SkyrimNet-GamePlugin/issues/77
    optional("topP"),
    optional("topK"),
    optional("frequencyPenalty"),
    optional("presencePenalty"),
    optional("mediaResolution"),
    optional("serviceTier"),
    // Claude in clouds: https://github.com/anthropics/claude-code-action/issues/1005,
    // https://github.com/BerriAI/litellm/issues/15880, and whole: https://github.com/BerriAI/litellm/issues/21407
    optional("effort"),
    optional("output_config"),
    of_lists("cache_control"),
    // Tools of Claude and of chat completions: https://github.com/vllm-project/vllm/issues/27447
    of_lists("strict"),
    kept("store"),
    kept("metadata"),
    kept("safety_identifier"),
    kept("safetySettings"),
    kept("tool_choice"),
    kept("toolConfig"),
    kept("max_output_tokens"),
    kept("maxOutputTokens"),
];
/// The objects in which requests have some of them.
pub(super) const GROUPS: &[&str] = &["generationConfig", "output_config"];
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

/// The parameters that models refuse, for the owner whose request was answered without them.
pub(super) struct RefusedParameters(Learned<Vec<&'static Parameter>>);

/// A request, in the form in which it is sent next.
pub(super) struct RequestForm {
    pub(super) body: Bytes,
    thread: Option<ThreadKey>,
    /// The URL and the model, of which either may name the model.
    model: (String, String),
    /// What refusals of this request named.
    left_out: Vec<&'static Parameter>,
    was_in_doubt: bool,
    /// What is remembered if the model answers.
    to_remember: Vec<&'static Parameter>,
}

impl Default for RefusedParameters {
    fn default() -> Self {
        Self(Learned::by(Scope::Owner))
    }
}

impl RefusedParameters {
    /// Returns a request without the parameters that were refused before.
    pub(super) fn first_form(&self, request: &ProviderRequest, url: &Url) -> RequestForm {
        let ProviderRequest { json, thread, .. } = request;
        let name = json.get("model").and_then(Value::as_str).unwrap_or_default();
        let model = (url.as_str().to_owned(), name.to_owned());
        let known = self.0.get(thread.as_ref(), &model).unwrap_or_default();
        let body = if known.is_empty() {
            json.to_string()
        } else {
            let mut json = json.clone();
            known.iter().for_each(|parameter| parameter.remove(&mut json));
            json.to_string()
        };
        let (thread, body) = (thread.clone(), Bytes::from(body));
        RequestForm { body, thread, model, left_out: Vec::new(), was_in_doubt: false, to_remember: Vec::new() }
    }

    /// Remembers what was left out of a request that the model answers.
    pub(super) fn answered(&self, form: &mut RequestForm) {
        if form.to_remember.is_empty() {
            return;
        }
        let mut known = self.0.get(form.thread.as_ref(), &form.model).unwrap_or_default();
        for parameter in form.to_remember.drain(..) {
            // Requests at the same time are refused for the same.
            if !known.iter().any(|known| known.name == parameter.name) {
                known.push(parameter);
            }
        }
        self.0.set(form.thread.as_ref(), &form.model, known);
    }
}

impl RequestForm {
    /// Leaves out what a refusal names, and returns `true`; `false` if the refusal is about nothing that can be left out, or
    /// if the request was sent in as many forms as it may be.
    pub(super) fn change(&mut self, refusal: &str, trace: &CallTrace) -> bool {
        let Ok(mut json) = serde_json::from_slice::<Value>(&self.body) else { return false };
        let said = refusal.to_lowercase();
        let is_about_thinking = ["invalid", "signature", "thinking"].iter().all(|word| said.contains(word));
        let is_about_parameter = !is_about_thinking && REFUSALS.iter().any(|words| said.contains(words));
        let named = is_about_parameter.then(|| named(refusal, &mut json)).flatten();
        let named = named.filter(|named| self.is_new(named));
        let is_changed = named.is_some() || is_about_thinking && remove_thinking(&mut json);
        if !is_changed || !trace.count_changed_request() {
            return false;
        }
        repaired(Partner::Model, Repair::ParameterLeftOut);
        if let Some(Named { parameter, without, is_in_doubt }) = named {
            tracing::warn!(
                parameter = parameter.name,
                replaced_by = parameter.other_name(),
                is_in_doubt,
                "a model provider refused a parameter; asking again without it"
            );
            json = without;
            self.left_out.push(parameter);
            self.was_in_doubt |= is_in_doubt;
            let is_lasting = !is_in_doubt && !said.contains(ONLY_WITH_ANOTHER);
            self.to_remember.extend(is_lasting.then_some(parameter));
        } else {
            tracing::warn!("a model provider refused the signature of earlier thinking; asking again without thinking");
        }
        self.body = Bytes::from(json.to_string());
        true
    }

    /// Two names of one limit would replace each other without an end, and one guess is enough.
    fn is_new(&self, named: &Named) -> bool {
        let name = named.parameter.name;
        let was_left_out = self.left_out.iter().any(|other| other.name == name || other.other_name() == Some(name));
        !was_left_out && !(named.is_in_doubt && self.was_in_doubt)
    }
}

impl Parameter {
    pub(super) fn is_in(&self, json: &mut Value) -> bool {
        let mut is_in = false;
        self.for_each_object(json, &mut |object| is_in |= object.contains_key(self.name));
        is_in
    }

    fn other_name(&self) -> Option<&'static str> {
        match self.if_refused {
            IfRefused::Rename(other) => Some(other),
            IfRefused::LeaveOut | IfRefused::Keep => None,
        }
    }

    pub(super) fn remove(&self, json: &mut Value) {
        let mut removed = None;
        self.for_each_object(json, &mut |object| {
            if let Some(value) = object.shift_remove(self.name) {
                if let Some(other) = self.other_name() {
                    object.insert(other.to_owned(), value.clone());
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

    /// Visits the objects of a request that may have the parameter.
    fn for_each_object(&self, json: &mut Value, visit: &mut impl FnMut(&mut JsonObject)) {
        let Value::Object(request) = json else { return };
        visit(request);
        for (name, value) in request.iter_mut() {
            match value {
                Value::Object(group) if GROUPS.contains(&name.as_str()) => visit(group),
                Value::Array(members) if self.is_of_lists && LISTS.contains(&name.as_str()) => {
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
}

/// Asks for an answer that fits a schema, where the provider takes no schema.
pub(in crate::llm) fn schema_in_words(schema: &JsonObject) -> String {
    let schema = Value::Object(schema.clone());
    format!(
        "Answer with one JSON object alone, without Markdown or other text. It has to fit this JSON Schema:\n{schema}"
    )
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
mod tests;
