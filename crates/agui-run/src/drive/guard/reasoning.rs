//! Reasoning spans, reasoning messages, and encrypted values.

use super::{
    Guard,
    items::check_owner,
    violation::{Owner, Violation},
};
use crate::drive::progress::EventSink;
use agui_protocol::{
    Event, EventType, MessageId, Role,
    event::{
        EncryptedValueSubtype, ReasoningEncryptedValue, ReasoningEnd, ReasoningMessageContent,
        ReasoningMessageEnd, ReasoningMessageStart, ReasoningStart,
    },
};

const SPAN: &str = "reasoning span";
const MESSAGE: &str = "reasoning message";

impl Guard {
    pub(crate) fn reasoning_start(
        &mut self,
        event: &ReasoningStart,
        out: &mut impl EventSink,
    ) -> Result<(), Violation> {
        let (id, owner) = (&event.message_id, &event.subagent_run_id);
        self.reasoning_spans.check_start(EventType::ReasoningStart, SPAN, id, owner)?;
        let owner = self.reasoning_owner(EventType::ReasoningStart, id, owner)?;
        self.reasoning_spans.open(id, &owner, || ());
        out.emit(&Event::from(event.clone()).attributed_to(owner));
        Ok(())
    }

    pub(crate) fn reasoning_end(&mut self, event: &ReasoningEnd) -> Result<bool, Violation> {
        self.reasoning_spans.close(
            EventType::ReasoningEnd,
            SPAN,
            &event.message_id,
            &event.subagent_run_id,
        )
    }

    pub(crate) fn reasoning_message_start(
        &mut self,
        event: &ReasoningMessageStart,
        out: &mut impl EventSink,
    ) -> Result<(), Violation> {
        let kind = EventType::ReasoningMessageStart;
        let (id, owner) = (&event.message_id, &event.subagent_run_id);
        if self.reasoning_messages.check_start(kind, MESSAGE, id, owner)?.is_none() {
            self.check_message_id(kind, id, Role::Reasoning, owner)?;
        }
        let owner = self.reasoning_owner(kind, id, owner)?;
        self.reasoning_messages.open(id, &owner, || ());
        out.emit(&Event::from(event.clone()).attributed_to(owner));
        Ok(())
    }

    pub(crate) fn reasoning_message_content(
        &mut self,
        event: &ReasoningMessageContent,
    ) -> Result<bool, Violation> {
        let kind = EventType::ReasoningMessageContent;
        self.reasoning_messages.check_continues(
            kind,
            MESSAGE,
            &event.message_id,
            &event.subagent_run_id,
        )?;
        Ok(!event.delta.is_empty() || !event.base.is_empty())
    }

    pub(crate) fn reasoning_message_end(
        &mut self,
        event: &ReasoningMessageEnd,
    ) -> Result<bool, Violation> {
        self.reasoning_messages.close(
            EventType::ReasoningMessageEnd,
            MESSAGE,
            &event.message_id,
            &event.subagent_run_id,
        )
    }

    /// Returns the owner of a span or message. If both share an id, they have the owner of the
    /// first one. A start event without an owner is sent with it, because not every client reads
    /// the span.
    fn reasoning_owner(
        &self,
        event: EventType,
        id: &MessageId,
        subagent: &Owner,
    ) -> Result<Owner, Violation> {
        let span = self.reasoning_spans.get(id).map(|span| span.owner.clone());
        let message = || self.known(id).filter(|known| known.role == Role::Reasoning);
        match span.or_else(|| message().map(|known| known.owner)) {
            Some(owner) => check_owner(event, MESSAGE, id, &owner, subagent).map(|()| owner),
            None => Ok(subagent.clone()),
        }
    }

    pub(crate) fn encrypted_value(
        &mut self,
        event: &ReasoningEncryptedValue,
    ) -> Result<bool, Violation> {
        let id = event.entity_id.as_str();
        let owner = match event.subtype {
            EncryptedValueSubtype::ToolCall => self
                .calls
                .get(id)
                .map(|call| call.owner.clone())
                .or_else(|| self.history.call_owner(id)),
            EncryptedValueSubtype::Message => {
                let span = || self.reasoning_spans.get(id).map(|span| span.owner.clone());
                self.known(id).map(|known| known.owner).or_else(span)
            }
        };
        if let Some(owner) = owner {
            check_owner(
                EventType::ReasoningEncryptedValue,
                "the encrypted value's entity",
                &id,
                &owner,
                &event.subagent_run_id,
            )?;
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use agui_protocol::{Message, RunAgentInput, SubagentRunId};

    #[test]
    fn reasoning_with_the_id_of_an_earlier_message_belongs_to_its_owner() {
        let earlier: Message =
            serde_json::from_str(r#"{"role":"reasoning","id":"a","content":""}"#).unwrap();
        let mut guard = Guard::new(&RunAgentInput::new("t", "r", vec![earlier]));
        let start = |owner: Option<SubagentRunId>| {
            Event::from(ReasoningStart::new("a")).attributed_to(owner)
        };
        guard.admit(start(Some("s".into())), &mut Vec::new()).unwrap_err();
        guard.admit(start(None), &mut Vec::new()).unwrap();
    }
}
