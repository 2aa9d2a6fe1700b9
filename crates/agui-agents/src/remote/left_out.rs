//! What an endpoint refuses in a request and does not need: it is left out, and not sent again for an hour.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use indexmap::IndexMap;
use tokio::time::Instant;

use agui_base::repairs::{Partner, Repair, repaired};
use agui_protocol::{Message, RunAgentInput};

/// The time after which the whole request is sent again: endpoints are updated.
const LIFETIME: Duration = Duration::from_secs(3600);
/// Beyond this number, the owner who learned first is forgotten, which costs refused requests.
const MAX_OWNERS: usize = 1000;

/// The parts that a request goes without. Replies, state, tools and texts always go with it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct LeftOut {
    /// Reasoning messages, which the Python package knows from 0.1.11 on.
    reasoning: bool,
    /// Members that later versions have added: it refuses unknown ones before 0.1.10.
    members: bool,
}

impl LeftOut {
    /// Returns what the next request goes without, after a refusal in these words. `None` if nothing is left.
    pub(super) fn after(self, refusal: &str, input: &RunAgentInput) -> Option<Self> {
        let has_reasoning = input.messages.iter().any(is_reasoning);
        let can = Self { reasoning: !self.reasoning && has_reasoning, members: !self.members };
        let without_reasoning = Self { reasoning: true, ..self };
        let without_members = Self { members: true, ..self };
        match can {
            Self { reasoning: true, .. } if refusal.contains("reasoning") => {
                Some(without_reasoning)
            }
            Self { members: true, .. } => Some(without_members),
            Self { reasoning: true, .. } => Some(without_reasoning),
            _ => None,
        }
    }

    pub(super) fn apply(self, input: &mut RunAgentInput) {
        if self.reasoning && input.messages.iter().any(is_reasoning) {
            input.messages.to_mut().retain(|message| !is_reasoning(message));
        }
        if !self.members {
            return;
        }
        input.protocol_version = None;
        input.parent_run_id = None;
        for tool in &mut input.tools {
            tool.metadata = None;
        }
        for message in input.messages.to_mut() {
            *message.metadata_mut() = None;
            if let Some((value, kind)) = message.encrypted_value_mut() {
                (*value, *kind) = (None, None);
            }
            *message = message.clone().without_subagent();
            if let Message::Assistant(message) = message {
                for call in message.tool_calls.iter_mut().flatten() {
                    (call.metadata, call.encrypted_value, call.encrypted_value_type) =
                        (None, None, None);
                }
            }
        }
    }
}

fn is_reasoning(message: &Message) -> bool {
    matches!(message, Message::Reasoning(_))
}

/// What the requests of each owner to one endpoint go without.
#[derive(Debug, Default)]
pub(super) struct RefusedParts(Mutex<IndexMap<Arc<str>, (LeftOut, Instant)>>);

impl RefusedParts {
    pub(super) fn get(&self, owner: &str) -> LeftOut {
        let by_owner = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = by_owner.get(owner).filter(|(_, learned_at)| learned_at.elapsed() < LIFETIME);
        known.map(|(left_out, _)| *left_out).unwrap_or_default()
    }

    /// Keeps what a request that was accepted went without, if earlier ones were refused.
    pub(super) fn set(&self, owner: Arc<str>, left_out: LeftOut) {
        repaired(Partner::RemoteAgent, Repair::ParameterLeftOut);
        tracing::warn!(
            reasoning = left_out.reasoning,
            members = left_out.members,
            "the remote agent refused parts of a request, which are left out for this owner for an hour"
        );
        let mut by_owner = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        by_owner.shift_remove(&owner);
        if by_owner.len() >= MAX_OWNERS {
            by_owner.shift_remove_index(0);
        }
        by_owner.insert(owner, (left_out, Instant::now()));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn input() -> RunAgentInput {
        let call = json!({ "id": "c", "type": "function", "function": { "name": "f", "arguments": "" }, "encryptedValue": "x" });
        let input = json!({
            "threadId": "t", "runId": "r", "parentRunId": "p", "protocolVersion": "1.1",
            "messages": [
                { "id": "u", "role": "user", "content": "Hi", "metadata": { "k": 1 } },
                { "id": "h", "role": "reasoning", "content": "Hm", "encryptedValue": "x" },
                { "id": "a", "role": "assistant", "toolCalls": [call], "subagentRunId": "s" },
            ],
            "tools": [{ "name": "f", "description": "", "metadata": { "k": 1 } }],
            "resume": [{ "interruptId": "i", "status": "resolved" }],
        });
        serde_json::from_value(input).unwrap()
    }

    #[test]
    fn what_the_refusal_names_is_left_out_first_and_both_at_most() {
        let input = input();
        let reasoning = LeftOut { reasoning: true, members: false };
        let members = LeftOut { reasoning: false, members: true };
        let both = LeftOut { reasoning: true, members: true };
        let full = LeftOut::default();
        assert_eq!(full.after("unknown role: reasoning", &input), Some(reasoning));
        assert_eq!(full.after("extra_forbidden", &input), Some(members));
        assert_eq!(reasoning.after("no", &input), Some(both));
        assert_eq!(members.after("no", &input), Some(both));
        assert_eq!(both.after("reasoning", &input), None);
        let plain = RunAgentInput::new("t", "r", vec![]);
        assert_eq!(members.after("reasoning", &plain), None);
    }

    #[test]
    fn replies_and_texts_stay() {
        let mut left = input();
        LeftOut { reasoning: true, members: true }.apply(&mut left);
        let call =
            json!({ "id": "c", "type": "function", "function": { "name": "f", "arguments": "" } });
        let expected = json!({
            "threadId": "t", "runId": "r", "context": [],
            "messages": [{ "id": "u", "role": "user", "content": "Hi" }, { "id": "a", "role": "assistant", "toolCalls": [call] }],
            "tools": [{ "name": "f", "description": "" }],
            "resume": [{ "interruptId": "i", "status": "resolved" }],
        });
        assert_eq!(serde_json::to_value(left).unwrap(), expected);
    }

    #[tokio::test(start_paused = true)]
    async fn an_owner_is_remembered_for_an_hour_and_the_number_of_owners_is_bounded() {
        let (parts, left_out) =
            (RefusedParts::default(), LeftOut { reasoning: true, members: false });
        for owner in 0..=MAX_OWNERS {
            parts.set(owner.to_string().into(), left_out);
        }
        assert_eq!((parts.get("0"), parts.get("1")), (LeftOut::default(), left_out));
        tokio::time::advance(LIFETIME).await;
        assert_eq!(parts.get("1"), LeftOut::default());
    }
}
