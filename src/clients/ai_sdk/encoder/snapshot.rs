//! Snapshots of messages. The page has a message of its own from the last user's message on, and of a
//! snapshot it gets what it lacks there.

use std::collections::HashSet;

use serde_json::json;

use super::{AiSdkEncoder, Step, chunk::write};
use crate::clients::ai_sdk::part::has_failed;
use agui_protocol::{AssistantMessage, JsonObject, Message, MessageId};

impl AiSdkEncoder {
    /// Adds what a snapshot has of the page's message, and the page lacks.
    pub(super) fn snapshot(&mut self, messages: &[Message], out: &mut Vec<u8>) {
        let is_users = |message: &Message| matches!(message, Message::User(_));
        let Some(asking) = messages.iter().rposition(is_users) else { return };
        let (earlier, own) = messages.split_at(asking);
        let has_result = |message: &Message| match message {
            Message::Tool(result) => Some(result.tool_call_id.clone()),
            _ => None,
        };
        let answered: HashSet<_> = earlier.iter().filter_map(has_result).collect();
        let calls = earlier.iter().flat_map(Message::tool_calls);
        let open = calls.filter(|call| !answered.contains(&call.id));
        self.earlier_calls = open.map(|call| (call.id.clone(), call.function.clone())).collect();
        if std::mem::take(&mut self.is_continued) {
            self.retract(own, out);
        }
        own.iter().for_each(|message| self.restate(message, out));
    }

    /// Removes the parts of the last step, if it has one that the run has retracted.
    fn retract(&mut self, kept: &[Message], out: &mut Vec<u8>) {
        let kept: HashSet<_> = kept.iter().map(Message::id).collect();
        if self.step.number == 0 || self.step.messages.iter().all(|id| kept.contains(id)) {
            return;
        }
        write(&json!({ "type": "reset-step" }), out);
        let step = Step { number: self.step.number, is_open: true, ..Step::default() };
        let Step { messages, calls, .. } = std::mem::replace(&mut self.step, step);
        for message in &messages {
            self.messages.remove(message);
            self.activities.remove(message);
        }
        for call in &calls {
            self.calls.remove(call);
            self.outputs.remove(call);
        }
    }

    fn restate(&mut self, message: &Message, out: &mut Vec<u8>) {
        let id = message.id();
        match message {
            Message::Reasoning(reasoning) if !self.messages.contains(id) => {
                self.whole("reasoning", id, &reasoning.content, None, out);
            }
            Message::Assistant(AssistantMessage { content, metadata, .. }) => {
                let calls = message.tool_calls();
                let is_shown = self.messages.contains(id)
                    || calls.iter().any(|call| self.calls.contains_key(&call.id));
                if let Some(text) = content.as_deref().filter(|text| !is_shown && !text.is_empty())
                {
                    self.whole("text", id, text, metadata.as_deref(), out);
                }
                for call in calls {
                    if !self.calls.contains_key(&call.id) {
                        self.begin_call(id, &call.id, call.function.clone(), out);
                        self.input(&call.id, Some(id), out);
                    }
                }
            }
            Message::Tool(result) if !self.outputs.contains(&result.tool_call_id) => {
                // Another page can have approved before what this one declines.
                self.declined.remove(&result.tool_call_id);
                let failed = result.error.is_some() || has_failed(result.metadata.as_deref());
                self.output(&result.tool_call_id, &result.content, failed, out);
            }
            Message::Activity(activity) if !self.messages.contains(id) => {
                self.activity(id, &activity.activity_type, &activity.content, out);
            }
            _ => {}
        }
    }

    fn whole(
        &mut self,
        kind: &str,
        id: &MessageId,
        text: &str,
        metadata: Option<&JsonObject>,
        out: &mut Vec<u8>,
    ) {
        self.begin_message(kind, id, out);
        self.delta(kind, id, text, out);
        self.end_message(kind, id, metadata, out);
    }
}
