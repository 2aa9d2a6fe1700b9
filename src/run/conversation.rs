//! What the conversation is: the stored branch and the client's list become the list that the agent answers.
//!
//! The client decides. With S the stored branch, C the client's messages, p the place in S of the last message of S that
//! C shows, and N what follows that message in C:
//!
//! | case | | the agent gets |
//! |---|---|---|
//! | [`Case::New`] | the thread is new | C |
//! | [`Case::NothingKnown`] | C shows no message of S | S + C |
//! | [`Case::Continues`] | p is the end of S | S + N |
//! | [`Case::Unseen`] | S goes on after p, but only with messages that never reached a client whole | S + N |
//! | [`Case::Branches`] | S goes on after p: an edit, a regeneration, a step back, or a repeated request | S up to p, + N |
//!
//! A message of C *is shown in* S when it has the same id; when it is an assistant message whose tool calls S has; when it
//! answers a tool call that S has an answer to; and for clients that send no ids, when role and text agree with the
//! message in the same place.
//!
//! Messages of S that C leaves out before p stay: clients trim. New messages that C has before p are inserted where C has
//! them. User, system and developer messages take the client's text, and so does every message that a client stored; what
//! a run made stays as the run made it.

use std::{
    collections::{HashMap, HashSet, VecDeque},
    ops::Range,
};

use super::branch::Branch;
use crate::{
    protocol::{Message, MessageId, Role},
    store::{MessageNode, MessageOrigin},
};

/// How the client's list relates to the stored branch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Case {
    New,
    NothingKnown,
    Continues,
    Unseen,
    Branches,
}

/// What becomes of the stored branch.
#[derive(Debug, PartialEq)]
pub(super) struct Decision {
    pub(super) case: Case,
    /// How many messages of the branch stay.
    pub(super) kept: usize,
    /// New texts for messages that stay, by position in the branch.
    pub(super) updated: Vec<(usize, Message)>,
    /// The messages that follow those that stay.
    pub(super) appended: Vec<Appended>,
}

/// A message that follows those that stay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Appended {
    /// The client's message at this position.
    Client(usize),
    /// A copy of the branch's message at this position, below a new or changed one.
    Stored(usize),
}

/// What the client shows.
#[derive(Debug, Clone, Copy)]
pub(super) struct ClientList<'a> {
    pub(super) messages: &'a [Message],
    /// The positions of the messages that came without an id, ascending.
    pub(super) anonymous: &'a [usize],
    /// Whether the request answers an interrupt that is open on the branch. So it continues the branch, also when it
    /// leaves out messages at the end.
    pub(super) answers_interrupt: bool,
}

/// Decides.
pub(super) fn decide(stored: &Branch, list: ClientList<'_>) -> Decision {
    let ClientList { messages: client, anonymous, answers_interrupt } = list;
    let shown = shown(stored, client, anonymous);
    let (Some(last_shown), Some(end)) = (shown.iter().rposition(Option::is_some), shown.iter().flatten().max()) else {
        let case = if stored.len() == 0 { Case::New } else { Case::NothingKnown };
        let appended = without_repeated_ids(client, 0..client.len());
        return Decision { case, kept: stored.len(), updated: Vec::new(), appended };
    };
    let asks_something_new = last_shown + 1 < client.len();
    let case = match end + 1 < stored.len() {
        false => Case::Continues,
        true if answers_interrupt || is_unseen(stored, *end, asks_something_new) => Case::Unseen,
        true => Case::Branches,
    };
    let Differences { changed, inserted } = differences(stored, client, &shown[..=last_shown]);
    // A new branch leaves the old one as it is, but for instructions, which an application may change at any time.
    let starts_branch =
        |(position, _): &&(usize, usize)| case == Case::Branches && !is_instruction(&stored.messages()[*position]);
    let stays = if case == Case::Branches { end + 1 } else { stored.len() };
    let first_changed = changed.iter().find(starts_branch).map_or(stays, |(position, _)| *position);
    let kept = inserted.first().map_or(stays, |(before, _)| *before).min(first_changed);

    let (mut changed, mut inserted) = (changed.into_iter().peekable(), inserted.into_iter().peekable());
    let mut updated = Vec::new();
    while let Some((position, at)) = changed.next_if(|(position, _)| *position < kept) {
        updated.extend(new_text(stored, position, &client[at]).map(|text| (position, text)));
    }
    let mut appended = Vec::new();
    for position in kept..stays {
        while let Some((_, at)) = inserted.next_if(|(before, _)| *before <= position) {
            appended.push(Appended::Client(at));
        }
        let variant = changed.next_if(|(changed, _)| *changed == position);
        appended.push(variant.map_or(Appended::Stored(position), |(_, at)| Appended::Client(at)));
    }
    appended.extend(without_repeated_ids(client, last_shown + 1..client.len()));
    Decision { case, kept, updated, appended }
}

/// Finds the messages of another branch that the client shows next: from the message with number `parent` down, as long
/// as there is a child that is the same as the client's message.
///
/// So a client that goes back to a branch that it left continues that branch and stores no copy of it.
pub(super) fn find_branch<'n>(nodes: &'n [MessageNode], parent: i64, client: &[&Message]) -> Vec<&'n MessageNode> {
    let mut children: HashMap<i64, Vec<&MessageNode>> = HashMap::new();
    nodes.iter().for_each(|node| children.entry(node.parent).or_default().push(node));
    let (mut found, mut last) = (Vec::new(), parent);
    for message in client {
        let is_same = |node: &&MessageNode| {
            let is_unchanged = || node.message == **message || !takes_client_text(&node.message, node.origin);
            node.message.id() == message.id() && is_unchanged()
        };
        let mut newest_first = children.get(&last).into_iter().flat_map(|nodes| nodes.iter().rev().copied());
        let Some(node) = newest_first.find(is_same) else { break };
        last = node.number;
        found.push(node);
    }
    found
}

/// Returns whether all messages after a position were made by runs whose response never reached a client whole.
///
/// A client that brings nothing new while the branch ends with an answer wants another answer, so the answer counts as
/// seen: an agent is never asked to continue its own one.
fn is_unseen(stored: &Branch, end: usize, asks_something_new: bool) -> bool {
    let unseen = |position| matches!(stored.origin(position), MessageOrigin::Run { delivered: false, .. });
    let ends_with_answer = stored.messages().last().is_some_and(|last| last.role() == Role::Assistant);
    (asks_something_new || !ends_with_answer) && (end + 1..stored.len()).all(unseen)
}

/// What the client's list has otherwise than the branch, up to the last message that both have.
struct Differences {
    /// Positions in the branch whose text the client changes, each with the client's message, ascending.
    changed: Vec<(usize, usize)>,
    /// New messages of the client, each with the position in the branch that it stands before, ascending.
    inserted: Vec<(usize, usize)>,
}

/// Compares a client's list that ends with a message that is shown.
fn differences(stored: &Branch, client: &[Message], shown: &[Option<usize>]) -> Differences {
    let (mut changed, mut inserted) = (Vec::new(), Vec::new());
    let (mut new, mut left_out_from) = (Vec::new(), 0);
    for (at, position) in shown.iter().enumerate() {
        let Some(position) = *position else {
            new.push(at);
            continue;
        };
        let mut left_out = Instructions::of(stored, left_out_from..position);
        for at in new.drain(..) {
            // An application may make up a new id for its system message with every request.
            match left_out.next(client[at].role()) {
                Some(replaced) => changed.push((replaced, at)),
                None => inserted.push((position, at)),
            }
        }
        changed.extend(new_text(stored, position, &client[at]).map(|_| (position, at)));
        left_out_from = position + 1;
    }
    // Stable: of several texts for one position, and of several new messages of one id, the first stands.
    changed.sort_by_key(|(position, _)| *position);
    changed.dedup_by_key(|(position, _)| *position);
    inserted.sort_by_key(|(before, _)| *before);
    let mut ids = HashSet::new();
    inserted.retain(|(_, at)| ids.insert(client[*at].id()));
    Differences { changed, inserted }
}

/// The positions of instructions that the client left out, first to last.
#[derive(Default)]
struct Instructions {
    system: VecDeque<usize>,
    developer: VecDeque<usize>,
}

impl Instructions {
    fn of(stored: &Branch, left_out: Range<usize>) -> Self {
        let mut instructions = Self::default();
        for position in left_out.filter(|position| stored.origin(*position) == MessageOrigin::Client) {
            match stored.messages()[position].role() {
                Role::System => instructions.system.push_back(position),
                Role::Developer => instructions.developer.push_back(position),
                _ => {}
            }
        }
        instructions
    }

    fn next(&mut self, role: Role) -> Option<usize> {
        match role {
            Role::System => self.system.pop_front(),
            Role::Developer => self.developer.pop_front(),
            _ => None,
        }
    }
}

fn is_instruction(message: &Message) -> bool {
    matches!(message.role(), Role::System | Role::Developer)
}

fn takes_client_text(message: &Message, origin: MessageOrigin) -> bool {
    origin == MessageOrigin::Client || matches!(message.role(), Role::User | Role::System | Role::Developer)
}

/// Returns the stored message with the client's text, if it takes that and the text differs.
fn new_text(stored: &Branch, position: usize, client: &Message) -> Option<Message> {
    let known = &stored.messages()[position];
    let takes_text = takes_client_text(known, stored.origin(position)) && known.role() == client.role();
    if !takes_text || known == client {
        return None;
    }
    let mut text = client.clone();
    text.set_id(known.id().clone());
    (text != *known).then_some(text)
}

fn without_repeated_ids(client: &[Message], positions: Range<usize>) -> Vec<Appended> {
    let mut ids: HashSet<&MessageId> = HashSet::with_capacity(positions.len());
    positions.filter(|at| ids.insert(client[*at].id())).map(Appended::Client).collect()
}

/// Returns for each message of the client where it is in the branch.
fn shown(stored: &Branch, client: &[Message], anonymous: &[usize]) -> Vec<Option<usize>> {
    let mut shown = shown_without_ids(stored, client, anonymous);
    let mut next = 0;
    for (at, message) in client.iter().enumerate().filter(|(at, _)| anonymous.binary_search(at).is_err()) {
        shown[at] = position_of(stored, message, next);
        next = shown[at].map_or(next, |position| position + 1);
    }
    shown
}

/// Returns the position of a message that has an id. Mostly that is the `expected` one.
fn position_of(stored: &Branch, message: &Message, expected: usize) -> Option<usize> {
    let messages = stored.messages();
    if messages.get(expected).is_some_and(|known| known.id().is(message.id())) {
        return Some(expected);
    }
    messages.position(message.id()).or_else(|| match message {
        Message::Assistant(assistant) => {
            let calls = assistant.tool_calls().iter().map(|call| messages.call_position(&call.id));
            calls.collect::<Option<Vec<_>>>()?.into_iter().max()
        }
        Message::Tool(result) => {
            let call = messages.call_position(&result.tool_call_id)?;
            let answers =
                |known: &Message| matches!(known, Message::Tool(it) if it.tool_call_id == result.tool_call_id);
            Some(call + messages[call..].iter().position(answers)?)
        }
        _ => None,
    })
}

/// Returns the positions of messages that came without ids: those at the beginning of the client's list that agree in
/// role and text with messages of the branch, one after the other. What such a client does not show is left out.
///
/// They agree from the beginning of the branch on, or from a later message when the client has trimmed its list. A list
/// that agrees in user messages alone, with more to come in the branch, shows nothing: it is more likely a new message
/// with the text of an earlier one, from a client that sends only what is new.
fn shown_without_ids(stored: &Branch, client: &[Message], anonymous: &[usize]) -> Vec<Option<usize>> {
    let mut shown = vec![None; client.len()];
    let without_ids = anonymous.iter().enumerate().take_while(|(n, at)| n == *at).count();
    if without_ids == 0 {
        // The branch may be long.
        return shown;
    }
    let positions: Vec<_> = (0..stored.len()).filter(|at| has_text(&stored.messages()[*at])).collect();
    let texts: Vec<_> = positions.iter().map(|at| &stored.messages()[*at]).collect();
    let list: Vec<_> = client[..without_ids].iter().collect();
    let has_answer = |len: usize| list[..len].iter().any(|message| message.role() == Role::Assistant);

    let agreeing = list.iter().zip(&texts).take_while(|(message, text)| is_same_text(text, message)).count();
    let is_whole = agreeing == texts.len();
    let (first, len) = if is_whole || has_answer(agreeing) { (0, agreeing) } else { longest_match(&texts, &list) };
    if is_whole || has_answer(len) {
        shown.iter_mut().zip(&positions[first..first + len]).for_each(|(shown, position)| *shown = Some(*position));
    }
    shown
}

/// Finds where `texts` agree with the most messages from the beginning of `list`, the last such place. Returns the
/// position of the first of them, and how many they are. Takes linear time (Knuth, Morris and Pratt).
fn longest_match(texts: &[&Message], list: &[&Message]) -> (usize, usize) {
    // For each message of the list: how many messages up to it agree with as many from the beginning.
    let mut borders = vec![0; list.len()];
    let agreeing = |borders: &[usize], mut len: usize, next: &Message| {
        while len > 0 && (len == list.len() || !is_same_text(list[len], next)) {
            len = borders[len - 1];
        }
        len + usize::from(list.first().is_some_and(|_| is_same_text(list[len], next)))
    };
    for at in 1..list.len() {
        borders[at] = agreeing(&borders, borders[at - 1], list[at]);
    }
    let (mut len, mut longest) = (0, (0, 0));
    for (at, text) in texts.iter().enumerate() {
        len = agreeing(&borders, len, text);
        if len > 0 && len >= longest.1 {
            longest = (at + 1 - len, len);
        }
    }
    longest
}

/// Returns whether a client without ids shows a message.
fn has_text(message: &Message) -> bool {
    match message {
        Message::Assistant(assistant) => assistant.content.as_deref().is_some_and(|text| !text.is_empty()),
        Message::User(_) | Message::System(_) | Message::Developer(_) => true,
        Message::Tool(_) | Message::Activity(_) | Message::Reasoning(_) => false,
    }
}

fn is_same_text(known: &Message, client: &Message) -> bool {
    match (known, client) {
        (Message::Assistant(known), Message::Assistant(client)) => known.content == client.content,
        (Message::User(known), Message::User(client)) => known.content == client.content,
        (Message::System(known), Message::System(client)) => known.content == client.content,
        (Message::Developer(known), Message::Developer(client)) => known.content == client.content,
        _ => false,
    }
}

#[cfg(test)]
mod tests;
