//! The messages that a run adds, with an index: a run of 30,000 calls looks up each of them.

use agui_protocol::{
    Message, MessageId, ToolCall, ToolCallId,
    host::{MessageIndex, find_call},
};

/// The number of messages and calls that are searched one by one. A smaller index costs more than
/// it saves.
const MAX_SCANNED: usize = 32;

/// New messages in order. Results of tools stand with the message before them, so that inserting a
/// result moves no other message.
#[derive(Debug, Clone, Default)]
pub(super) struct NewMessages {
    /// The results before the first entry.
    leading: Vec<Message>,
    entries: Vec<Entry>,
    /// The number of messages and calls.
    items: usize,
    index: Option<Box<MessageIndex<NewPlace>>>,
}

/// A message that is not a tool result, and the results that follow it.
#[derive(Debug, Clone)]
struct Entry {
    message: Message,
    results: Vec<Message>,
}

/// The place of a new message.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct NewPlace {
    /// The number of the entry, from 1 on; 0 for the results before the first one.
    entry: usize,
    /// The number of the result in the entry; `None` for the message before the results.
    result: Option<usize>,
}

impl NewMessages {
    /// The place of results that come before all new messages.
    pub(super) const START: NewPlace = NewPlace { entry: 0, result: None };

    pub(super) fn is_empty(&self) -> bool {
        self.items == 0
    }

    /// Returns all messages in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Message> {
        let entries = self
            .entries
            .iter()
            .flat_map(|entry| std::iter::once(&entry.message).chain(&entry.results));
        self.leading.iter().chain(entries)
    }

    /// Returns all messages in order to change them, except for their ids and calls.
    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Message> {
        let entries = self
            .entries
            .iter_mut()
            .flat_map(|entry| std::iter::once(&mut entry.message).chain(&mut entry.results));
        self.leading.iter_mut().chain(entries)
    }

    pub(super) fn get(&self, place: NewPlace) -> Option<&Message> {
        match (place.entry.checked_sub(1), place.result) {
            (None, result) => self.leading.get(result?),
            (Some(entry), None) => self.entries.get(entry).map(|entry| &entry.message),
            (Some(entry), Some(result)) => self.entries.get(entry)?.results.get(result),
        }
    }

    /// Returns a message to change. Its id and its calls stay; see [`push_call`](Self::push_call).
    pub(super) fn get_mut(&mut self, place: NewPlace) -> Option<&mut Message> {
        match (place.entry.checked_sub(1), place.result) {
            (None, result) => self.leading.get_mut(result?),
            (Some(entry), None) => self.entries.get_mut(entry).map(|entry| &mut entry.message),
            (Some(entry), Some(result)) => self.entries.get_mut(entry)?.results.get_mut(result),
        }
    }

    /// Appends a message.
    pub(super) fn push(&mut self, message: Message) -> NewPlace {
        if matches!(message, Message::Tool(_)) {
            return self.push_result(NewPlace { entry: self.entries.len(), result: None }, message);
        }
        let place = NewPlace { entry: self.entries.len() + 1, result: None };
        self.note(place, &message);
        self.entries.push(Entry { message, results: Vec::new() });
        place
    }

    /// Inserts a result after a message and the results that follow it.
    pub(super) fn push_result(&mut self, after: NewPlace, result: Message) -> NewPlace {
        let number = self.results(after.entry).map_or(0, |results| results.len());
        let place = NewPlace { entry: after.entry, result: Some(number) };
        self.note(place, &result);
        if let Some(results) = self.results(after.entry) {
            results.push(result);
        }
        place
    }

    /// Adds a call to an assistant message.
    pub(super) fn push_call(&mut self, place: NewPlace, call: ToolCall) {
        let id = call.id.clone();
        let Some(Message::Assistant(holder)) = self.get_mut(place) else { return };
        let calls = holder.tool_calls.get_or_insert_default();
        calls.push(call);
        let number = calls.len() - 1;
        self.items += 1;
        if let Some(index) = &mut self.index {
            index.calls.entry(id).or_insert((place, number));
        }
    }

    pub(super) fn position(&mut self, id: &MessageId) -> Option<NewPlace> {
        match self.index() {
            Some(index) => index.messages.get(id).copied(),
            None => self.places().find(|(_, message)| message.id() == id).map(|(place, _)| place),
        }
    }

    /// Returns the place of the message that made a call, and the number of the call in it.
    pub(super) fn call_position(&mut self, id: &ToolCallId) -> Option<(NewPlace, usize)> {
        match self.index() {
            Some(index) => index.calls.get(id).copied(),
            None => find_call(self.places(), id),
        }
    }

    fn results(&mut self, entry: usize) -> Option<&mut Vec<Message>> {
        match entry.checked_sub(1) {
            None => Some(&mut self.leading),
            Some(entry) => self.entries.get_mut(entry).map(|entry| &mut entry.results),
        }
    }

    fn places(&self) -> impl Iterator<Item = (NewPlace, &Message)> {
        let results = |entry: usize, results| {
            let numbered = Iterator::enumerate(<[Message]>::iter(results));
            numbered
                .map(move |(result, message)| (NewPlace { entry, result: Some(result) }, message))
        };
        let entries = self.entries.iter().enumerate().flat_map(move |(at, entry)| {
            let first = (NewPlace { entry: at + 1, result: None }, &entry.message);
            std::iter::once(first).chain(results(at + 1, &entry.results))
        });
        results(0, &self.leading).chain(entries)
    }

    fn note(&mut self, place: NewPlace, message: &Message) {
        self.items += 1 + message.tool_calls().len();
        if let Some(index) = &mut self.index {
            index.add(place, message);
        }
    }

    fn index(&mut self) -> Option<&MessageIndex<NewPlace>> {
        if self.index.is_none() && self.items > MAX_SCANNED {
            self.index = Some(Box::new(MessageIndex::new(self.places())));
        }
        self.index.as_deref()
    }
}

impl FromIterator<Message> for NewMessages {
    fn from_iter<I: IntoIterator<Item = Message>>(messages: I) -> Self {
        let mut new = Self::default();
        for message in messages {
            new.push(message);
        }
        new
    }
}

impl IntoIterator for NewMessages {
    type Item = Message;
    type IntoIter = Box<dyn Iterator<Item = Message>>;

    fn into_iter(self) -> Self::IntoIter {
        let entries = self
            .entries
            .into_iter()
            .flat_map(|entry| std::iter::once(entry.message).chain(entry.results));
        Box::new(self.leading.into_iter().chain(entries))
    }
}
