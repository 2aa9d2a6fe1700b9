//! The parameters that a provider may refuse: their places in a request, and the reaction to a
//! refusal.

use serde_json::Value;

use crate::{form::GROUPS, known_models::TokenLimit};
use agui_protocol::JsonObject;

/// A parameter of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Parameter {
    pub(super) name: &'static str,
    pub(super) if_refused: IfRefused,
    /// True for a parameter of tools and of parts of messages. Others are members of the request
    /// itself, or of one of its [`GROUPS`].
    pub(super) is_in_lists: bool,
    /// True if the name is a word of other refusals, too. Only a path names the parameter.
    pub(super) is_common_word: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum IfRefused {
    /// The parameter is left out: it influences the answer, but is not a part of the question.
    LeaveOut,
    /// Another parameter with the same meaning replaces it.
    Rename(TokenLimit),
    /// The parameter stays, and the refusal is shown: storage and data collection, safety, the use
    /// of tools, the largest answer.
    Keep,
}

const fn optional(name: &'static str) -> Parameter {
    Parameter { name, if_refused: IfRefused::LeaveOut, is_in_lists: false, is_common_word: false }
}

const fn in_lists(name: &'static str) -> Parameter {
    Parameter { is_in_lists: true, ..optional(name) }
}

const fn common_word(name: &'static str) -> Parameter {
    Parameter { is_common_word: true, ..optional(name) }
}

const fn renamed(name: &'static str, other: TokenLimit) -> Parameter {
    Parameter { if_refused: IfRefused::Rename(other), ..optional(name) }
}

const fn kept(name: &'static str) -> Parameter {
    Parameter { if_refused: IfRefused::Keep, ..optional(name) }
}

pub(super) const PARAMETERS: &[Parameter] = &[
    // https://github.com/griptape-ai/ComfyUI-Griptape/issues/312, https://github.com/1Panel-dev/MaxKB/issues/2912
    renamed("max_tokens", TokenLimit::MaxCompletionTokens),
    renamed("max_completion_tokens", TokenLimit::MaxTokens),
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
    // A schema of the answer is told in words then.
    optional("response_format"),
    optional("responseJsonSchema"),
    common_word("format"),
    // Of the Responses API, for verified organizations only.
    common_word("summary"),
    in_lists("cache_control"),
    // Tools of Claude and of chat completions: https://github.com/vllm-project/vllm/issues/27447
    in_lists("strict"),
    kept("store"),
    kept("metadata"),
    kept("safety_identifier"),
    kept("safetySettings"),
    kept("tool_choice"),
    kept("toolConfig"),
    kept("max_output_tokens"),
    kept("maxOutputTokens"),
];
/// The lists of a request whose members have others.
const LISTS: &[&str] = &["tools", "system", "messages"];

impl Parameter {
    pub(super) fn is_in(&self, json: &mut Value) -> bool {
        let mut is_in = false;
        self.for_each_object(json, &mut |object| is_in |= object.contains_key(self.name));
        is_in
    }

    pub(super) fn remove(&self, json: &mut Value) {
        self.for_each_object(json, &mut |object| drop(object.shift_remove(self.name)));
    }

    /// Visits the objects of a request that may have the parameter.
    fn for_each_object(&self, json: &mut Value, visit: &mut impl FnMut(&mut JsonObject)) {
        let Value::Object(request) = json else { return };
        visit(request);
        for (name, value) in request.iter_mut() {
            match value {
                Value::Object(group) if GROUPS.contains(&name.as_str()) => visit(group),
                Value::Array(members) if self.is_in_lists && LISTS.contains(&name.as_str()) => {
                    for member in members.iter_mut().filter_map(Value::as_object_mut) {
                        visit(member);
                        member
                            .get_mut("function")
                            .and_then(Value::as_object_mut)
                            .into_iter()
                            .for_each(&mut *visit);
                        let blocks = member
                            .get_mut("content")
                            .and_then(Value::as_array_mut)
                            .into_iter()
                            .flatten();
                        blocks.filter_map(Value::as_object_mut).for_each(&mut *visit);
                    }
                }
                _ => {}
            }
        }
    }
}
