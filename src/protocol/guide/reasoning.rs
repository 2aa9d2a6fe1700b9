//! Reasoning: one session at a time, as the guide's clients keep it.

use serde_json::{Value, json};

/// What a model thought in one go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReasoningSession {
    /// Identifies the session; all of its events carry this id.
    pub id: String,
    /// What was thought so far.
    pub content: String,
    /// Whether the session has ended.
    pub is_complete: bool,
}

/// Follows reasoning over the pieces of a stream.
#[derive(Debug, Clone, Default)]
pub struct ReasoningState {
    session: Option<ReasoningSession>,
}

impl ReasoningState {
    /// Begins a session with a new id, `reasoning-` and random digits. One that goes on is continued.
    pub fn start_reasoning(&mut self) -> &str {
        self.start_as(format!("reasoning-{}", uuid::Uuid::new_v4().simple()))
    }

    /// Begins a session under an id that is known. One that goes on is continued.
    pub fn start_as(&mut self, id: impl Into<String>) -> &str {
        let session = match self.session.take() {
            Some(session) if !session.is_complete => session,
            _ => ReasoningSession { id: id.into(), content: String::new(), is_complete: false },
        };
        &self.session.insert(session).id
    }

    /// Adds to the session that goes on.
    pub fn append(&mut self, delta: &str) {
        if let Some(session) = self.session.as_mut().filter(|session| !session.is_complete) {
            session.content.push_str(delta);
        }
    }

    /// Ends the session that goes on, and answers its id.
    pub fn end_reasoning(&mut self) -> Option<&str> {
        let session = self.session.as_mut().filter(|session| !session.is_complete)?;
        session.is_complete = true;
        Some(&session.id)
    }

    /// Whether a session goes on.
    pub fn is_reasoning(&self) -> bool {
        self.session.as_ref().is_some_and(|session| !session.is_complete)
    }

    /// The last session, whether it goes on or not.
    pub fn session(&self) -> Option<&ReasoningSession> {
        self.session.as_ref()
    }
}

/// The payload of `reasoning_start`, `reasoning_message_end` and `reasoning_end`.
pub fn id_event(id: &str) -> Value {
    json!({ "messageId": id })
}

/// The payload of `reasoning_message_start`.
pub fn message_start_event(id: &str) -> Value {
    json!({ "messageId": id, "role": "assistant" })
}

/// The payload of `reasoning_message_content`.
pub fn content_event(id: &str, delta: &str) -> Value {
    json!({ "messageId": id, "delta": delta })
}
