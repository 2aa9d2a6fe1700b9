//! The messages of a conversation, as a list with copy on write: the agent, the run's recorder and the thread's branch
//! share one list.

use std::{
    collections::HashMap,
    fmt,
    ops::Deref,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU32, Ordering},
    },
};

use serde::{Deserialize, Serialize};

use super::{Message, MessageId, ToolCall, ToolCallId};

/// Messages in order. Cloning copies a reference; a change copies the list only if it is shared.
///
/// ```
/// use agui_protocol::{Message, Messages};
///
/// let mut messages = Messages::from(vec![Message::user("m1", "Hello")]);
/// let before = messages.clone();
/// messages.push(Message::assistant("m2", "Hi!"));
/// assert_eq!((before.len(), messages.len()), (1, 2));
/// assert_eq!(messages.position("m2"), Some(1));
/// ```
#[derive(Clone, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Messages(Arc<Inner>);

#[derive(Default, Serialize, Deserialize)]
#[serde(transparent)]
struct Inner {
    list: Vec<Message>,
    #[serde(skip)]
    lookups: AtomicU32,
    #[serde(skip)]
    index: OnceLock<MessageIndex<usize>>,
}

/// The place in a list at which each id first occurs. A call has the place of its message, and its position in it.
#[derive(Debug, Clone, Default)]
pub struct MessageIndex<P> {
    /// The place of the first message with an id.
    pub messages: HashMap<MessageId, P>,
    /// The place of the message that made a call, and the call's position in its `tool_calls`.
    pub calls: HashMap<ToolCallId, (P, usize)>,
}

/// Number of lookups that scan the list before an index is built for the following ones.
const SCANS_BEFORE_INDEX: u32 = 16;

impl Messages {
    /// Returns the position of the message with this id.
    pub fn position(&self, id: &str) -> Option<usize> {
        match self.index() {
            Some(index) => index.messages.get(id).copied(),
            None => self.iter().position(|message| **message.id() == *id),
        }
    }

    /// Returns the position of the assistant message that made a tool call.
    pub fn call_position(&self, id: &str) -> Option<usize> {
        self.call_place(id).map(|(position, _)| position)
    }

    /// Returns the position of the assistant message that made a tool call, and the call's position
    /// in it.
    #[doc(hidden)]
    pub fn call_place(&self, id: &str) -> Option<(usize, usize)> {
        match self.index() {
            Some(index) => index.calls.get(id).copied(),
            None => find_call(self.iter().enumerate(), id),
        }
    }

    /// Returns a message to change, except for its id and its calls. Copies the list if it is shared.
    #[doc(hidden)]
    pub fn get_mut(&mut self, position: usize) -> Option<&mut Message> {
        Arc::make_mut(&mut self.0).list.get_mut(position)
    }

    /// Adds a call to an assistant message. Copies the list if it is shared.
    #[doc(hidden)]
    pub fn push_call(&mut self, position: usize, call: ToolCall) {
        let inner = Arc::make_mut(&mut self.0);
        let Some(Message::Assistant(holder)) = inner.list.get_mut(position) else { return };
        let (id, calls) = (call.id.clone(), holder.tool_calls.get_or_insert_default());
        calls.push(call);
        if let Some(index) = inner.index.get_mut() {
            index.calls.entry(id).or_insert((position, calls.len() - 1));
        }
    }

    /// Appends a message.
    pub fn push(&mut self, message: Message) {
        let inner = Arc::make_mut(&mut self.0);
        if let Some(index) = inner.index.get_mut() {
            index.add(inner.list.len(), &message);
        }
        inner.list.push(message);
    }

    /// Removes all messages from this position on.
    pub fn truncate(&mut self, len: usize) {
        if len < self.len() {
            self.to_mut().truncate(len);
        }
    }

    /// Returns the list for any other change. Copies it if it is shared.
    pub fn to_mut(&mut self) -> &mut Vec<Message> {
        let inner = Arc::make_mut(&mut self.0);
        inner.index = OnceLock::new();
        &mut inner.list
    }

    /// Returns the list. Copies it if it is shared.
    pub fn into_vec(self) -> Vec<Message> {
        Arc::try_unwrap(self.0).map_or_else(|shared| shared.list.clone(), |inner| inner.list)
    }

    fn index(&self) -> Option<&MessageIndex<usize>> {
        let Inner { list, lookups, index } = &*self.0;
        if index.get().is_none() && lookups.fetch_add(1, Ordering::Relaxed) < SCANS_BEFORE_INDEX {
            return None;
        }
        Some(index.get_or_init(|| MessageIndex::new(list.iter().enumerate())))
    }
}

impl<P: Copy + Default> MessageIndex<P> {
    /// Builds the index of messages, each with its place.
    pub fn new<'m>(messages: impl Iterator<Item = (P, &'m Message)>) -> Self {
        let mut index = Self::default();
        messages.for_each(|(place, message)| index.add(place, message));
        index
    }

    /// Adds a message and its calls. Ids that the index already has keep their place.
    pub fn add(&mut self, place: P, message: &Message) {
        self.messages.entry(message.id().clone()).or_insert(place);
        for (position, call) in message.tool_calls().iter().enumerate() {
            self.calls.entry(call.id.clone()).or_insert((place, position));
        }
    }
}

/// Finds a call without an index.
pub fn find_call<'m, P>(
    mut messages: impl Iterator<Item = (P, &'m Message)>,
    id: &str,
) -> Option<(P, usize)> {
    messages.find_map(|(place, message)| {
        Some((place, message.tool_calls().iter().position(|call| *call.id == *id)?))
    })
}

/// The copy builds its own index when it needs one.
impl Clone for Inner {
    fn clone(&self) -> Self {
        Self { list: self.list.clone(), ..Self::default() }
    }
}

impl Deref for Messages {
    type Target = [Message];

    fn deref(&self) -> &[Message] {
        &self.0.list
    }
}

impl From<Vec<Message>> for Messages {
    fn from(list: Vec<Message>) -> Self {
        Self(Arc::new(Inner { list, ..Inner::default() }))
    }
}

impl FromIterator<Message> for Messages {
    fn from_iter<I: IntoIterator<Item = Message>>(messages: I) -> Self {
        Self::from(Vec::from_iter(messages))
    }
}

impl<'a> IntoIterator for &'a Messages {
    type Item = &'a Message;
    type IntoIter = std::slice::Iter<'a, Message>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl PartialEq for Messages {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || **self == **other
    }
}

impl fmt::Debug for Messages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{AssistantMessage, ToolCall};

    fn calling(id: &str, call: &str) -> Message {
        let tool_calls = Some(vec![ToolCall::new(call, "f", "{}")]);
        Message::Assistant(AssistantMessage { tool_calls, ..AssistantMessage::new(id) })
    }

    #[test]
    fn lookups_give_the_same_positions_with_and_without_an_index() {
        let mut messages: Messages =
            (0..50).map(|n| calling(&format!("m{n}"), &format!("c{n}"))).collect();
        messages.push(calling("m7", "c7"));
        for round in 0..2 * SCANS_BEFORE_INDEX as usize {
            let n = round % 50;
            assert_eq!(messages.position(&format!("m{n}")), Some(n), "the first of two equal ids");
            assert_eq!(messages.call_position(&format!("c{n}")), Some(n));
            assert_eq!((messages.position("x"), messages.call_position("x")), (None, None));
        }
        messages.push(calling("new", "call"));
        assert_eq!(
            (messages.position("new"), messages.call_position("call")),
            (Some(51), Some(51))
        );
        messages.truncate(51);
        assert_eq!((messages.position("new"), messages.position("m49")), (None, Some(49)));
        messages.to_mut().remove(0);
        assert_eq!(messages.position("m1"), Some(0));
    }

    #[test]
    fn a_change_leaves_clones_as_they_were() {
        let mut messages: Messages = (0..3).map(|n| Message::user(format!("m{n}"), "x")).collect();
        let shared = messages.clone();
        messages.truncate(1);
        messages.push(Message::user("new", "y"));
        assert_eq!((shared.len(), shared.position("new")), (3, None));
        assert_eq!((messages.len(), messages.position("m2")), (2, None));
        assert_eq!(messages.clone().into_vec(), messages.to_vec());
    }
}
