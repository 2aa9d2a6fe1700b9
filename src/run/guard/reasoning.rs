//! Reasoning spans and reasoning messages, and the artefacts that belong to them.

use super::{Guard, Owner, Violation, items::agree};
use crate::protocol::{
    EventType, MessageId, Role,
    event::{
        EncryptedValueSubtype, ReasoningEncryptedValue, ReasoningEnd, ReasoningMessageContent, ReasoningMessageEnd,
        ReasoningMessageStart, ReasoningStart,
    },
};

const SPAN: &str = "reasoning span";
const MESSAGE: &str = "reasoning message";

impl Guard {
    pub(super) fn span_start(&mut self, event: &ReasoningStart) -> Result<bool, Violation> {
        let (id, owner) = (&event.message_id, &event.subagent_run_id);
        self.spans.check_start(EventType::ReasoningStart, SPAN, id, owner)?;
        let owner = self.reasoning_owner(EventType::ReasoningStart, id, owner)?;
        self.spans.open(id, &owner, || ());
        Ok(true)
    }

    pub(super) fn span_end(&mut self, event: &ReasoningEnd) -> Result<bool, Violation> {
        self.spans.close(EventType::ReasoningEnd, SPAN, &event.message_id, &event.subagent_run_id)
    }

    pub(super) fn thought_start(&mut self, event: &ReasoningMessageStart) -> Result<bool, Violation> {
        let kind = EventType::ReasoningMessageStart;
        let (id, owner) = (&event.message_id, &event.subagent_run_id);
        if self.thoughts.check_start(kind, MESSAGE, id, owner)?.is_none() {
            self.claim(kind, id, Role::Reasoning, owner)?;
        }
        let owner = self.reasoning_owner(kind, id, owner)?;
        self.thoughts.open(id, &owner, || ());
        Ok(true)
    }

    pub(super) fn thought_content(&mut self, event: &ReasoningMessageContent) -> Result<bool, Violation> {
        let kind = EventType::ReasoningMessageContent;
        self.thoughts.check_continues(kind, MESSAGE, &event.message_id, &event.subagent_run_id)?;
        Ok(!event.delta.is_empty() || !event.base.is_empty())
    }

    pub(super) fn thought_end(&mut self, event: &ReasoningMessageEnd) -> Result<bool, Violation> {
        self.thoughts.close(EventType::ReasoningMessageEnd, MESSAGE, &event.message_id, &event.subagent_run_id)
    }

    /// A span and a message may share an id, and then they share an owner: the first one's.
    fn reasoning_owner(&self, event: EventType, id: &MessageId, tag: &Owner) -> Result<Owner, Violation> {
        let earlier = self.spans.get(id).or_else(|| self.thoughts.get(id));
        match earlier {
            Some(item) => agree(event, MESSAGE, id, &item.owner, tag).map(|()| item.owner.clone()),
            None => Ok(tag.clone()),
        }
    }

    pub(super) fn encrypted_value(&mut self, event: &ReasoningEncryptedValue) -> Result<bool, Violation> {
        let id = event.entity_id.as_str();
        let owner = match event.subtype {
            EncryptedValueSubtype::ToolCall => self.calls.get(id).map(|call| &call.owner),
            EncryptedValueSubtype::Message => {
                let text = self.texts.get(id).map(|text| &text.owner);
                let minted = || self.minted.get(id).map(|(_, owner)| owner);
                let thought = || self.spans.get(id).or_else(|| self.thoughts.get(id)).map(|item| &item.owner);
                text.or_else(minted).or_else(thought)
            }
        };
        if let Some(owner) = owner {
            agree(EventType::ReasoningEncryptedValue, "the artefact's owner", &id, owner, &event.subagent_run_id)?;
        }
        Ok(true)
    }
}
