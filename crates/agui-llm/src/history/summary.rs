//! The stored form of a summary: an activity of the branch, which names the messages that the summary stands for.
//!
//! Applications that do not know the type of an activity do not show it. A branch without those messages does not use the
//! summary: an activity comes after them, and their number and their texts have to be the same.

use serde_json::Value;
use sha2::{Digest as _, Sha256};

use agui_base::text::hex;
use agui_protocol::{
    ActivityMessage, Event, JsonObject, Message, MessageId, event::ActivitySnapshot,
    own_names::CONTEXT_SUMMARY,
};

const SUMMARY: &str = "summary";
const FIRST: &str = "firstMessageId";
const LAST: &str = "lastMessageId";
const DIGEST: &str = "digest";
/// Only the newest summaries are read: a client may send any number, and each one is compared with
/// its messages.
const MAX_CANDIDATES: usize = 4;

/// A summary that the conversation has, and the positions of the messages that it stands for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct StoredSummary<'m> {
    pub(crate) text: &'m str,
    pub(crate) first: usize,
    pub(crate) last: usize,
}

impl<'m> StoredSummary<'m> {
    /// Returns the newest summary whose messages are in the conversation.
    pub(crate) fn newest(messages: &'m [Message]) -> Option<Self> {
        let is_candidate = |position: &usize| is_summary(&messages[*position]);
        let mut candidates = (0..messages.len()).rev().filter(is_candidate).take(MAX_CANDIDATES);
        candidates.find_map(|position| Self::read(messages, position))
    }

    /// Returns whether the model gets the summary in the place of the message at a position. Instructions stay.
    pub(crate) fn replaces(&self, position: usize, message: &Message) -> bool {
        (self.first..=self.last).contains(&position) && !message.is_instruction()
    }

    fn read(messages: &'m [Message], position: usize) -> Option<Self> {
        let activity = activity(&messages[position])?;
        let member = |name: &str| activity.content.get(name).and_then(Value::as_str);
        let before = &messages[..position];
        let find = |id: &str| before.iter().position(|message| **message.id() == *id);
        let (first, last) = (find(member(FIRST)?)?, find(member(LAST)?)?);
        let text = member(SUMMARY).filter(|text| !text.trim().is_empty())?;
        (first <= last && member(DIGEST)? == digest(&before[first..=last])).then_some(Self {
            text,
            first,
            last,
        })
    }
}

/// Returns whether a message has the form of a stored summary.
pub(crate) fn is_summary(message: &Message) -> bool {
    activity(message).is_some()
}

fn activity(message: &Message) -> Option<&ActivityMessage> {
    let Message::Activity(activity) = message else { return None };
    (activity.activity_type == CONTEXT_SUMMARY && activity.subagent_run_id.is_none())
        .then_some(activity)
}

/// Makes the activity of a summary of `messages`, and the event that stores it.
pub(crate) fn stored(text: String, messages: &[Message]) -> Option<(Message, Event)> {
    let (first, last) = (messages.first()?.id(), messages.last()?.id());
    let id = MessageId::random();
    let content = JsonObject::from_iter([
        (SUMMARY.to_owned(), text.into()),
        (FIRST.to_owned(), first.as_str().into()),
        (LAST.to_owned(), last.as_str().into()),
        (DIGEST.to_owned(), digest(messages).into()),
    ]);
    let event = ActivitySnapshot::new(id.clone(), CONTEXT_SUMMARY, content.clone());
    Some((Message::Activity(ActivityMessage::new(id, CONTEXT_SUMMARY, content)), event.into()))
}

/// Leaves out what a client may change or not send back without changing the conversation: instructions, activities,
/// reasoning, and a subagent's messages.
fn digest(messages: &[Message]) -> String {
    let mut hash = Sha256::new();
    let mut add = |text: &str| {
        hash.update((text.len() as u64).to_le_bytes());
        hash.update(text);
    };
    for message in messages.iter().filter(|message| message.subagent_run_id().is_none()) {
        match message {
            Message::User(user) => add(&user.content.text()),
            Message::Assistant(assistant) => add(assistant.content.as_deref().unwrap_or_default()),
            Message::Tool(tool) => add(&tool.content.text()),
            _ => continue,
        }
        add(message.id());
        message.tool_calls().iter().for_each(|call| add(&call.id));
    }
    hex(&hash.finalize()[..16])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn conversation() -> Vec<Message> {
        let talk = [("u1", "one"), ("u2", "two"), ("u3", "three")];
        talk.into_iter()
            .flat_map(|(id, text)| {
                [Message::user(id, text), Message::assistant(format!("a-{id}"), text)]
            })
            .collect()
    }

    fn with_summary() -> Vec<Message> {
        let mut messages = conversation();
        let (message, _) = stored("They counted.".to_owned(), &messages[..4]).unwrap();
        messages.push(message);
        messages
    }

    #[test]
    fn a_summary_is_found_with_its_messages() {
        let messages = with_summary();
        assert_eq!(
            StoredSummary::newest(&messages),
            Some(StoredSummary { text: "They counted.", first: 0, last: 3 })
        );
        assert_eq!(StoredSummary::newest(&conversation()), None);
    }

    #[test]
    fn the_event_stores_the_same_message() {
        let messages = conversation();
        let (message, event) = stored("s".to_owned(), &messages[..4]).unwrap();
        let mut transcript = messages;
        let Event::ActivitySnapshot(event) = event else { panic!("{event:?}") };
        let (Message::Activity(activity), id) = (&message, &event.message_id) else {
            panic!("{message:?}")
        };
        assert_eq!((&activity.id, &activity.content), (id, &event.content));
        transcript.push(message);
        assert!(StoredSummary::newest(&transcript).is_some());
    }

    #[test]
    fn a_branch_with_other_messages_does_not_use_a_summary() {
        let mut edited = with_summary();
        edited[2] = Message::user("u2", "deux");
        let mut shorter = with_summary();
        shorter.remove(1);
        let mut without_last = with_summary();
        without_last.remove(3);
        let mut before_its_messages = with_summary();
        before_its_messages.rotate_right(1);
        let mut inserted = with_summary();
        inserted.insert(2, Message::user("new", "new"));
        for messages in [edited, shorter, without_last, before_its_messages, inserted] {
            assert_eq!(StoredSummary::newest(&messages), None, "{messages:?}");
        }
    }

    #[test]
    fn only_the_newest_summaries_are_compared_with_their_messages() {
        let mut messages = with_summary();
        let Some(Message::Activity(valid)) = messages.last().cloned() else { panic!() };
        let forged = |n: usize| {
            let mut activity = valid.clone();
            activity.id = format!("forged-{n}").into();
            activity.content.insert(DIGEST.to_owned(), "0".into());
            Message::Activity(activity)
        };
        messages.extend((1..MAX_CANDIDATES).map(forged));
        assert!(StoredSummary::newest(&messages).is_some());
        messages.push(forged(MAX_CANDIDATES));
        assert_eq!(StoredSummary::newest(&messages), None);
    }

    #[test]
    fn of_several_summaries_the_newest_valid_one_counts() {
        let mut messages = with_summary();
        let (newer, _) = stored("They counted to three.".to_owned(), &messages[..6]).unwrap();
        messages.push(newer);
        assert_eq!(StoredSummary::newest(&messages).map(|it| it.last), Some(5));
        messages[4] = Message::user("u3", "trois");
        assert_eq!(StoredSummary::newest(&messages).map(|it| it.last), Some(3));
    }
}
