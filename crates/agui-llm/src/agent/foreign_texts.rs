//! Tells a call that a model wrote as text from one that it quotes.
//!
//! A page that a tool has read can contain the text of a call. A model that quotes it at the end of
//! its answer would make the call. So a written call does not run if a foreign text contains it.

use tokio::task::spawn_blocking;

use crate::{history, model::WrittenCall, written_syntax::SoughtCalls};
use agui_agent::RunContext;
use agui_protocol::Message;

/// The texts of a conversation that neither the model nor the configuration wrote. Summaries are
/// included, and so are the messages that they replace and those outside of the context window.
pub(super) struct ForeignTexts<'r> {
    pub(super) cx: &'r RunContext,
    pub(super) messages: &'r [Message],
    /// The application's context entries, and the state.
    pub(super) current: Vec<String>,
}

impl ForeignTexts<'_> {
    /// Returns whether the texts contain one of the calls. Runs on a blocking thread: the time is
    /// linear in the conversation, which can be large.
    pub(super) async fn have(&self, calls: &[WrittenCall]) -> bool {
        let own = calls.iter().map(|call| (&call.name, call));
        let written = calls
            .iter()
            .map(|call| (&call.written_name, call))
            .filter(|(name, call)| **name != call.name);
        let sought =
            own.chain(written).map(|(name, call)| (name.as_str(), call.arguments.as_str()));
        let (sought, joined) = (SoughtCalls::new(sought), self.joined());
        // In doubt, a call does not run.
        spawn_blocking(move || sought.stand_in(&joined)).await.unwrap_or(true)
    }

    /// Joins without separators: a call may be split over the results of two tools.
    fn joined(&self) -> String {
        let mut joined = self.current.concat();
        for message in self.messages {
            match message {
                Message::User(user) => joined.push_str(&history::texts(&user.content)),
                Message::Tool(result) => {
                    joined.push_str(&history::texts(&result.content));
                    joined.push_str(result.error.as_deref().unwrap_or_default());
                }
                Message::Activity(activity) => {
                    activity
                        .content
                        .values()
                        .filter_map(|value| value.as_str())
                        .for_each(|text| joined.push_str(text));
                }
                Message::System(m) if !self.cx.accepts_instructions() => {
                    joined.push_str(&m.content)
                }
                Message::Developer(m) if !self.cx.accepts_instructions() => {
                    joined.push_str(&m.content)
                }
                Message::System(_)
                | Message::Developer(_)
                | Message::Assistant(_)
                | Message::Reasoning(_) => {}
            }
        }
        joined
    }
}

#[cfg(test)]
mod tests;
