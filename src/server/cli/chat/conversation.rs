//! The conversation that this client shows: messages, state and open interrupts, and the requests made of them.

use serde_json::Value;

use agui_protocol::{
    ContentPart, Interrupt, Message, MessageContent, MessageId, Messages, ResumeEntry,
    RunAgentInput, RunId, ThreadId,
};

pub(super) struct ChatConversation {
    pub(super) thread_id: ThreadId,
    pub(super) messages: Messages,
    pub(super) state: Option<Value>,
    pub(super) interrupts: Vec<Interrupt>,
    /// The newest user message that was written here, and the state before it.
    written: Option<(MessageId, Option<Value>)>,
}

impl ChatConversation {
    /// Begins an empty thread.
    pub(super) fn new() -> Self {
        let thread_id = format!("chat_{}", uuid::Uuid::new_v4().simple());
        Self::stored(thread_id.into(), Messages::default(), None, Vec::new())
    }

    /// Continues a thread of the server.
    pub(super) fn stored(
        thread_id: ThreadId,
        messages: Messages,
        state: Option<Value>,
        interrupts: Vec<Interrupt>,
    ) -> Self {
        Self { thread_id, messages, state, interrupts, written: None }
    }

    /// Returns the request with a new message of the user, which has these files.
    pub(super) fn say(&mut self, text: &str, files: Vec<ContentPart>) -> RunAgentInput {
        let id = MessageId::random();
        self.written = Some((id.clone(), self.state.clone()));
        self.messages.push(Message::user(id, content_of(text, files)));
        self.request()
    }

    /// Returns the request with another text in place of the last user message, and without what followed that message.
    /// `None` if there is no such message.
    pub(super) fn edit(&mut self, text: &str) -> Option<RunAgentInput> {
        let (position, state) = self.last_turn()?;
        let Some(Message::User(mut message)) = self.messages.get(position).cloned() else {
            return None;
        };
        self.go_back(position, state.clone());
        // A new id makes a new branch of the thread. The first message has nothing before it from which the branch
        // could begin, so it keeps its id.
        if position > 0 {
            message.id = MessageId::random();
        }
        message.content = with_text(message.content, text);
        self.written = Some((message.id.clone(), state));
        self.messages.push(Message::User(message));
        Some(self.request())
    }

    /// Returns the request for another answer to the last user message; `None` if there is no such message.
    pub(super) fn retry(&mut self) -> Option<RunAgentInput> {
        let (position, state) = self.last_turn()?;
        self.go_back(position + 1, state);
        Some(self.request())
    }

    /// Returns the request with the replies to all open interrupts.
    pub(super) fn resume(&mut self, entries: Vec<ResumeEntry>) -> RunAgentInput {
        self.interrupts.clear();
        RunAgentInput { resume: entries, ..self.request() }
    }

    /// Returns the text of the last user message.
    pub(super) fn last_user_text(&self) -> Option<String> {
        self.messages.iter().rev().find_map(|message| match message {
            Message::User(message) => Some(message.content.text().into_owned()),
            _ => None,
        })
    }

    /// Returns the position of the last user message, and the state before it as far as it is known.
    fn last_turn(&self) -> Option<(usize, Option<Value>)> {
        let position =
            self.messages.iter().rposition(|message| matches!(message, Message::User(_)))?;
        let state = match &self.written {
            Some((id, state))
                if self.messages.get(position).is_some_and(|message| message.id() == id) =>
            {
                state.clone()
            }
            _ => self.state.clone(),
        };
        Some((position, state))
    }

    fn go_back(&mut self, len: usize, state: Option<Value>) {
        self.messages.truncate(len);
        self.state = state;
        self.interrupts.clear();
    }

    fn request(&self) -> RunAgentInput {
        let mut input =
            RunAgentInput::new(self.thread_id.clone(), RunId::random(), self.messages.clone());
        input.state.clone_from(&self.state);
        input
    }
}

/// Replaces the text of a content. Images and other files are kept.
fn with_text(content: MessageContent, text: &str) -> MessageContent {
    let files = match content {
        MessageContent::Text(_) => Vec::new(),
        MessageContent::Parts(parts) => {
            parts.into_iter().filter(|part| !matches!(part, ContentPart::Text(_))).collect()
        }
    };
    content_of(text, files)
}

fn content_of(text: &str, files: Vec<ContentPart>) -> MessageContent {
    if files.is_empty() {
        text.into()
    } else {
        [vec![ContentPart::text(text)], files].concat().into()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn answered(conversation: &mut ChatConversation, id: &str, state: Value) {
        conversation.messages.push(Message::assistant(id, "answer"));
        conversation.state = Some(state);
    }

    fn texts(input: &RunAgentInput) -> Vec<String> {
        let text = |message: &Message| match message {
            Message::User(user) => user.content.text().into_owned(),
            other => other.id().to_string(),
        };
        input.messages.iter().map(text).collect()
    }

    #[test]
    fn an_edit_and_another_answer_leave_out_what_followed_and_go_back_to_the_state_before() {
        let mut conversation = ChatConversation::new();
        assert_eq!((conversation.edit("x"), conversation.retry()), (None, None));
        let first = conversation.say("one", Vec::new());
        answered(&mut conversation, "a1", json!({ "turn": 1 }));
        let second = conversation.say("two", Vec::new());
        answered(&mut conversation, "a2", json!({ "turn": 2 }));
        conversation.interrupts.push(Interrupt::new("input"));

        let edited = conversation.edit("two!").unwrap();
        assert_eq!(
            (texts(&edited), edited.state),
            (vec!["one".into(), "a1".into(), "two!".into()], Some(json!({ "turn": 1 })))
        );
        assert_ne!(edited.messages[2].id(), second.messages[2].id());
        assert!(conversation.interrupts.is_empty());
        answered(&mut conversation, "a3", json!({ "turn": 3 }));
        let again = conversation.retry().unwrap();
        assert_eq!(
            (&again.messages, &again.state),
            (&edited.messages, &Some(json!({ "turn": 1 })))
        );

        let mut conversation =
            ChatConversation { messages: first.messages.clone(), ..conversation };
        answered(&mut conversation, "a1", json!({ "turn": 1 }));
        let edited = conversation.edit("other").unwrap();
        assert_eq!(edited.messages[0].id(), first.messages[0].id());
        assert_eq!(texts(&edited), ["other"]);
    }

    #[test]
    fn files_of_an_edited_message_are_kept() {
        let file: ContentPart = serde_json::from_value(
            json!({ "type": "image", "source": { "type": "url", "value": "http://h/" } }),
        )
        .unwrap();
        let content: MessageContent = vec![ContentPart::text("old"), file.clone()].into();
        let mut conversation = ChatConversation::stored(
            "t".into(),
            vec![Message::user("m", content)].into(),
            None,
            Vec::new(),
        );
        let edited = conversation.edit("new").unwrap();
        let Message::User(message) = &edited.messages[0] else { panic!("not a user message") };
        assert_eq!(message.content, vec![ContentPart::text("new"), file].into());
    }
}
