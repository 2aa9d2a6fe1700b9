//! What a refused request has that another form can change.

use serde_json::Value;

use super::media::has_media;
use crate::{
    model::{Block, ModelRequest, ModelStep},
    refusal::ProviderRefusal,
    window::{estimate, trim},
};

/// The window of a model of which nothing is known, in tokens: the smallest default of local servers.
const ASSUMED_WINDOW: u64 = 4096;
/// The lists of a request's conversation.
const CONVERSATIONS: &[&str] = &["messages", "input", "contents"];
/// The members that have reasoning, of messages and of their parts and calls.
const REASONING_MEMBERS: &[&str] =
    &["reasoning_content", "reasoning", "reasoning_details", "thoughtSignature", "extra_content"];
const REASONING_TYPES: &[&str] = &["thinking", "redacted_thinking", "reasoning"];

/// A refused request, as far as the policy depends on it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct RequestFacts {
    /// True if earlier reasoning, or a signature, was sent.
    pub(super) reasoning: bool,
    pub(super) earlier_media: bool,
    pub(super) new_media: bool,
    /// True if there are instructions.
    pub(super) instructions: bool,
    /// True if instructions stand elsewhere than in one first message.
    pub(super) spread_instructions: bool,
    pub(super) developer_role: bool,
    pub(super) null_content: bool,
    pub(super) repeated_role: bool,
    pub(super) user_after_results: bool,
    /// The estimated tokens of the request.
    pub(super) tokens: u64,
    /// The tokens of the steps that may be left out; 0 if the configuration forbids it.
    pub(super) removable: u64,
    /// True if the request fills half of the window.
    pub(super) is_long: bool,
}

impl RequestFacts {
    /// `first_new` is the first step after the last answer, and `window` the model's tokens, if they are known.
    pub(super) fn new(
        request: &mut ModelRequest,
        first_new: usize,
        refusal: &ProviderRefusal,
        window: Option<u64>,
        may_trim: bool,
    ) -> Self {
        let tokens = estimate::request_tokens(request);
        let removable = if may_trim { trim::removable(&request.steps) } else { 0 };
        let (earlier, new) = request.steps.split_at_mut(first_new);
        let own = Self {
            earlier_media: has_media(earlier),
            new_media: has_media(new),
            tokens,
            removable,
            is_long: tokens > window.unwrap_or(ASSUMED_WINDOW) / 2,
            ..Self::default()
        };
        match &refusal.sent {
            Value::Null => Self { reasoning: has_reasoning(&request.steps), ..own },
            sent => own.of_sent(sent),
        }
    }

    fn of_sent(self, sent: &Value) -> Self {
        let list = CONVERSATIONS.iter().find_map(|name| sent.get(name)?.as_array());
        let messages = list.map(Vec::as_slice).unwrap_or_default();
        let role = |message: &Value| message["role"].as_str().unwrap_or_default().to_owned();
        let roles: Vec<_> = messages.iter().map(role).collect();
        let is_instruction = |role: &&String| matches!(role.as_str(), "system" | "developer");
        let count = roles.iter().filter(is_instruction).count();
        let is_first = roles.first().as_ref().is_some_and(is_instruction);
        let has_member = |names: &[&str]| {
            names.iter().any(|name| sent.get(name).is_some_and(|it| !it.is_null()))
        };
        let rest: Vec<_> = roles.iter().filter(|role| !is_instruction(role)).collect();
        let follows = |a: &str, b: &str| roles.windows(2).any(|pair| pair[0] == a && pair[1] == b);
        let is_chat = sent.get("messages").is_some();
        Self {
            reasoning: messages.iter().any(is_reasoned),
            instructions: count > 0 || has_member(&["system", "instructions", "systemInstruction"]),
            // The Responses API has a member of its own for them.
            spread_instructions: count > 1 || count == 1 && (!is_first || !is_chat),
            developer_role: roles.iter().any(|role| role == "developer"),
            null_content: is_chat
                && messages.iter().any(|message| message.get("content") == Some(&Value::Null)),
            repeated_role: follows("user", "user")
                || follows("assistant", "assistant")
                || is_chat && rest.first().is_some_and(|role| *role == "assistant"),
            user_after_results: is_chat && follows("tool", "user"),
            ..self
        }
    }
}

fn is_reasoned(message: &Value) -> bool {
    let has = |object: &Value| {
        REASONING_MEMBERS.iter().any(|name| object.get(name).is_some())
            || object["type"].as_str().is_some_and(|kind| REASONING_TYPES.contains(&kind))
    };
    let mut inner = ["content", "parts", "tool_calls"]
        .iter()
        .filter_map(|name| message.get(name)?.as_array())
        .flatten();
    has(message) || inner.any(has)
}

fn has_reasoning(steps: &[ModelStep]) -> bool {
    steps.iter().any(|step| match step {
        ModelStep::Assistant(blocks) => blocks.iter().any(|block| match block {
            Block::Reasoning(_) => true,
            Block::Call(call) => call.encrypted_value.is_some(),
            Block::Text(_) => false,
        }),
        _ => false,
    })
}
