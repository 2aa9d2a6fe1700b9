//! Text messages.

use super::{Guard, entries::TextDetails, violation::Violation};
use agui_protocol::{
    EventType,
    event::{TextMessageContent, TextMessageEnd, TextMessageStart},
};

const KIND: &str = "message";

impl Guard {
    pub(crate) fn text_start(&mut self, event: &TextMessageStart) -> Result<bool, Violation> {
        let kind = EventType::TextMessageStart;
        let (id, owner) = (&event.message_id, &event.subagent_run_id);
        let role = event.role.unwrap_or_default();
        match self.texts.check_start(kind, KIND, id, owner)? {
            Some(closed) => {
                if closed.details.role != role {
                    return Err(Violation::new(
                        kind,
                        format!("message {id:?} is reopened with another role"),
                    ));
                }
                if event.name.is_some() && closed.details.name != event.name {
                    return Err(Violation::new(
                        kind,
                        format!("message {id:?} is reopened with another name"),
                    ));
                }
            }
            None => {
                let known = self.check_message_id(kind, id, role.into(), owner)?;
                if known.is_some_and(|known| {
                    !known.made_by_call
                        && event.name.is_some()
                        && known.name != event.name.as_deref()
                }) {
                    return Err(Violation::new(
                        kind,
                        format!("message {id:?} is known under another name"),
                    ));
                }
            }
        }
        self.texts.open(id, owner, || TextDetails { role, name: event.name.clone() });
        Ok(true)
    }

    pub(crate) fn text_content(&mut self, event: &TextMessageContent) -> Result<bool, Violation> {
        let kind = EventType::TextMessageContent;
        self.texts.check_continues(kind, KIND, &event.message_id, &event.subagent_run_id)?;
        // Clients of versions before 1.0 reject an empty delta.
        Ok(!event.delta.is_empty() || !event.base.is_empty())
    }

    pub(crate) fn text_end(&mut self, event: &TextMessageEnd) -> Result<bool, Violation> {
        self.texts.close(EventType::TextMessageEnd, KIND, &event.message_id, &event.subagent_run_id)
    }
}
