//! The reasoning of a stream, one session at a time.

use serde_json::Value;

/// The reasoning between `reasoning_start` and `reasoning_end`.
#[doc(alias = "ReasoningTracker")]
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReasoningSession {
    /// The `messageId` of all its events.
    pub id: String,
    /// The text so far.
    pub content: String,
    /// True after `reasoning_end`.
    pub is_complete: bool,
}

/// The last session of a stream.
#[derive(Debug, Clone, Default)]
pub struct ReasoningState {
    session: Option<ReasoningSession>,
}

impl ReasoningState {
    /// Begins a session with a random id, `reasoning-…`, and returns the id. An open session continues instead.
    pub fn start_reasoning(&mut self) -> &str {
        self.start_with_id(format!("reasoning-{}", uuid::Uuid::new_v4().simple()))
    }

    /// Begins a session with this id, and returns the id. An open session continues instead.
    pub fn start_with_id(&mut self, id: impl Into<String>) -> &str {
        let session = match self.session.take() {
            Some(session) if !session.is_complete => session,
            _ => ReasoningSession { id: id.into(), content: String::new(), is_complete: false },
        };
        &self.session.insert(session).id
    }

    /// Appends a delta to the open session, if there is one.
    pub fn append(&mut self, delta: &str) {
        if let Some(session) = self.session.as_mut().filter(|session| !session.is_complete) {
            session.content.push_str(delta);
        }
    }

    /// Ends the open session, if there is one, and returns its id.
    pub fn end_reasoning(&mut self) -> Option<&str> {
        let session = self.session.as_mut().filter(|session| !session.is_complete)?;
        session.is_complete = true;
        Some(&session.id)
    }

    /// Returns whether a session is open.
    pub fn is_reasoning(&self) -> bool {
        self.session.as_ref().is_some_and(|session| !session.is_complete)
    }

    /// Returns the last session, open or ended.
    pub fn session(&self) -> Option<&ReasoningSession> {
        self.session.as_ref()
    }
}

/// Returns the reasoning of LangChain's content blocks in one text; `None` if there is no reasoning.
#[doc(alias = "extract_reasoning_from_content_blocks")]
pub fn extract_reasoning(blocks: &[Value]) -> Option<String> {
    let reasoning = blocks.iter().filter(|block| block.get("type").is_some_and(|kind| kind == "reasoning"));
    let text: String = reasoning.filter_map(|block| block.get("reasoning")?.as_str()).collect();
    (!text.is_empty()).then_some(text)
}
