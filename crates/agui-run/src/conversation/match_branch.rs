//! Matches the client's messages with the stored branch, which gives the agent's conversation.
//! Reads no store.
//!
//! The cases, and when a client's list shows a stored message, are defined in
//! `docs/architecture.md` ("The conversation is a tree"). Stored messages before the last shown one
//! that the client does not show are kept, because clients trim their lists. The client's new
//! messages before it are inserted where its list has them. User, system and developer messages
//! take the client's text, and so does every message that a client stored. Other messages keep the
//! text that the run made. A new message that repeats a stored tool call is left out if the branch
//! keeps that call: a person's reply is for the stored call.

mod renamed;
mod without_ids;

use std::{
    cell::LazyCell,
    collections::{HashMap, HashSet, VecDeque},
    ops::Range,
};

use self::{renamed::show_renamed, without_ids::shown_without_ids};
use super::branch::Branch;
use agui_protocol::{
    AssistantMessage, Message, MessageContent, MessageId, Role, ToolCallId,
    encode::content_in_words,
};
use agui_store::{MessageNode, MessageNumber, MessageOrigin, RunNumber};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BranchCase {
    New,
    NothingKnown,
    Continues,
    Unseen,
    Branches,
}

#[derive(Debug, PartialEq)]
pub(crate) struct BranchMatch {
    pub case: BranchCase,
    /// The number of messages of the branch that are kept, from the first on.
    pub kept: usize,
    /// The new texts of kept messages, by position in the branch.
    pub updated: Vec<(usize, Message)>,
    /// The messages that follow the kept ones.
    pub appended: Vec<AppendedMessage>,
    /// True if the client shows something that the branch does not have: the begin of an answer, or a reply as a result.
    pub client_differs: bool,
}

impl BranchMatch {
    /// Leaves out results that are the replies of the request, if the interrupts are of another branch than the matched one.
    pub(crate) fn leave_out_replies(&mut self, list: &ClientList<'_>) {
        let is_reply = |new: &AppendedMessage| matches!(*new, AppendedMessage::Client(at) if list.is_reply(&list.messages[at]));
        self.client_differs |= self.appended.iter().any(is_reply);
        self.appended.retain(|new| !is_reply(new));
    }
}

/// A message that is added to the branch, by its origin. Messages of the client and of the branch are
/// not copied: memory is reserved for one copy of a request.
#[derive(Debug, PartialEq)]
pub(crate) enum AppendedMessage {
    /// The client's message at this position of its list.
    Client(usize),
    /// A copy of the branch's message at this position, whose parent is new or changed.
    Stored(usize),
    /// The result of a call that a person decided on, and the run that made the result or the call.
    Known(Box<Message>, RunNumber),
}

impl AppendedMessage {
    /// Returns the message, and the origin that is stored with it.
    pub(crate) fn read<'a>(
        &'a self,
        stored: Option<&'a Branch>,
        client: &'a [Message],
    ) -> Option<(&'a Message, MessageOrigin)> {
        match self {
            Self::Client(at) => Some((client.get(*at)?, MessageOrigin::Client)),
            Self::Stored(position) => {
                let stored = stored?;
                Some((stored.messages().get(*position)?, stored.origin(*position)))
            }
            Self::Known(message, run) => {
                Some((message, MessageOrigin::Run { run: *run, delivered: true }))
            }
        }
    }
}

#[derive(Debug, Clone)]
pub(crate) struct ClientList<'a> {
    pub messages: &'a [Message],
    /// The positions of the messages that came without an id, ascending.
    pub(crate) anonymous: &'a [usize],
    /// True if the client showed retracted messages, so that it has not seen the messages after
    /// them.
    pub(crate) shows_retracted: bool,
    /// The first run whose end the client cannot have seen: it was running when the request came.
    pub(crate) came_during: Option<RunNumber>,
    /// True if the request replies to an open interrupt. It then continues the branch, even if it leaves out the end.
    pub(crate) replies_to_interrupt: bool,
    /// The calls of the open interrupts that the request replies to. A result of such a call is the reply again, which some
    /// clients add to their messages: the call has not run.
    pub(crate) answered_calls: Vec<&'a ToolCallId>,
}

impl ClientList<'_> {
    fn is_reply(&self, message: &Message) -> bool {
        matches!(message, Message::Tool(result) if self.answered_calls.contains(&&result.tool_call_id))
    }
}

pub(crate) fn match_branch(stored: &Branch, list: &ClientList<'_>) -> BranchMatch {
    let ClientList { messages: client, anonymous, .. } = *list;
    let with_all = |case| {
        let appended = new_messages(stored, stored.len(), list, 0..client.len());
        BranchMatch {
            case,
            kept: stored.len(),
            updated: Vec::new(),
            appended,
            client_differs: false,
        }
    };
    if stored.len() == 0 {
        return with_all(BranchCase::New);
    }
    let shown = shown(stored, client, anonymous);
    let (Some(last_shown), Some(end)) =
        (shown.iter().rposition(Option::is_some), shown.iter().flatten().max())
    else {
        return with_all(BranchCase::NothingKnown);
    };
    let asks_something_new = last_shown + 1 < client.len();
    let mut end = with_activities(stored, *end, asks_something_new);
    let shows_begin =
        shown[last_shown].is_some_and(|at| is_begin_of(&client[last_shown], stored, at));
    let has_not_seen_rest = (list.shows_retracted || shows_begin) && asks_something_new;
    let rest = end + 1..stored.len();
    let is_unseen = is_unseen(stored, rest.clone(), list.came_during);
    let role = |position: usize| stored.messages()[position].role();
    // A client that adds nothing asks for another answer, so that an agent never continues its own one.
    let replaces_answer = !asks_something_new && role(stored.len() - 1) == Role::Assistant;
    let case = if rest.is_empty() {
        BranchCase::Continues
    } else if list.replies_to_interrupt || has_not_seen_rest || (is_unseen && !replaces_answer) {
        BranchCase::Unseen
    } else {
        BranchCase::Branches
    };
    let is_edit = || new_text(stored, end, &client[last_shown]).is_some();
    let mut keeps_results = false;
    if case == BranchCase::Branches
        && is_unseen
        && let Some(last) = rest.rev().find(|position| role(*position) == Role::Tool)
        && !is_edit()
    {
        // The calls before the replaced answer are not made again.
        (end, keeps_results) = (last, true);
    }
    let stays = if case == BranchCase::Branches { end + 1 } else { stored.len() };
    let Differences { changed, inserted } = differences(stored, stays, list, &shown[..=last_shown]);
    // A changed message starts a new branch there. Instructions, which applications change at any time, are updated in place.
    let starts_branch = |(position, _): &&(usize, usize)| {
        case == BranchCase::Branches && !stored.messages()[*position].is_instruction()
    };
    let first_changed = changed.iter().find(starts_branch).map_or(stays, |(position, _)| *position);
    let kept = inserted.first().map_or(stays, |(before, _)| *before).min(first_changed);

    let mut changed = changed.into_iter().peekable();
    let mut inserted = inserted.into_iter().peekable();
    let mut updated = Vec::new();
    while let Some((position, at)) = changed.next_if(|(position, _)| *position < kept) {
        updated.extend(new_text(stored, position, &client[at]).map(|text| (position, text)));
    }
    let mut appended = Vec::new();
    for position in kept..stays {
        while let Some((_, at)) = inserted.next_if(|(before, _)| *before <= position) {
            appended.push(AppendedMessage::Client(at));
        }
        let variant = changed.next_if(|(changed, _)| *changed == position);
        appended.push(
            variant
                .map_or(AppendedMessage::Stored(position), |(_, at)| AppendedMessage::Client(at)),
        );
    }
    appended.extend(new_messages(stored, stays, list, last_shown + 1..client.len()));
    let mut unknown = client.iter().zip(&shown).filter(|(_, position)| position.is_none());
    let client_differs =
        keeps_results || shows_begin || unknown.any(|(message, _)| list.is_reply(message));
    BranchMatch { case, kept, updated, appended, client_differs }
}

/// Finds the path below the message `parent` that equals the next messages, so that a client that
/// returns to a branch continues it, and no copy is stored.
pub(crate) fn find_existing_branch<'n>(
    nodes: &'n [MessageNode],
    parent: MessageNumber,
    next: &[&Message],
) -> Vec<&'n MessageNode> {
    let mut children: HashMap<MessageNumber, Vec<&MessageNode>> = HashMap::new();
    nodes.iter().for_each(|node| children.entry(node.parent).or_default().push(node));
    let (mut found, mut last) = (Vec::new(), parent);
    for message in next {
        let is_same = |node: &&MessageNode| {
            let is_unchanged =
                || node.message == **message || !takes_client_text(&node.message, node.origin);
            node.message.id() == message.id() && is_unchanged()
        };
        let mut newest_first =
            children.get(&last).into_iter().flat_map(|nodes| nodes.iter().rev().copied());
        let Some(node) = newest_first.find(is_same) else { break };
        last = node.number;
        found.push(node);
    }
    found
}

/// Returns the last of the activities that follow a message of the same run, or that are the whole answers of the next runs,
/// such as a picture. SDKs do not send activities, so a client that shows the message counts as showing them. A client that
/// asks nothing new asks for another answer in place of a whole one.
fn with_activities(stored: &Branch, mut end: usize, asks_something_new: bool) -> usize {
    let role = |at: usize| stored.messages()[at].role();
    if let Some(run) = stored.origin(end).run() {
        let follows =
            |at: &usize| role(*at) == Role::Activity && stored.origin(*at).run() == Some(run);
        end = (end + 1..stored.len()).take_while(follows).last().unwrap_or(end);
    }
    while asks_something_new
        && let origin @ MessageOrigin::Run { delivered: true, .. } = stored.origin(end + 1)
    {
        let of_run = (end + 1..stored.len()).take_while(|at| stored.origin(*at) == origin);
        let roles: Vec<_> = of_run.map(role).collect();
        let is_silent = |role: &Role| matches!(role, Role::Activity | Role::Reasoning);
        if !roles.iter().all(is_silent) || !roles.contains(&Role::Activity) {
            break;
        }
        end += roles.len();
    }
    end
}

/// Returns whether a client shows only the begin of a run's message: its connection broke.
fn is_begin_of(client: &Message, stored: &Branch, position: usize) -> bool {
    let is_begin = |begin: &str, whole: &str| begin.len() < whole.len() && whole.starts_with(begin);
    if stored.origin(position).run().is_none() {
        return false;
    }
    match (client, &stored.messages()[position]) {
        (Message::Reasoning(client), Message::Reasoning(known)) => {
            is_begin(&client.content, &known.content)
        }
        (Message::Assistant(client), Message::Assistant(known)) => {
            let text = |message: &AssistantMessage| message.content.clone().unwrap_or_default();
            let (calls, of_run) = (client.tool_calls(), known.tool_calls());
            match calls.last() {
                None => is_begin(&text(client), &text(known)),
                // The last call is cut, or others follow it.
                Some(last) => of_run.get(calls.len() - 1).is_some_and(|whole| {
                    let (begin, all) = (&last.function.arguments, &whole.function.arguments);
                    let is_cut =
                        is_begin(begin, all) || (begin == all && calls.len() < of_run.len());
                    last.id == whole.id && is_cut
                }),
            }
        }
        _ => false,
    }
}

/// Returns whether the messages come from runs whose answer did not reach a client whole, and from runs that ended after the
/// request came.
fn is_unseen(stored: &Branch, mut rest: Range<usize>, came_during: Option<RunNumber>) -> bool {
    let is_later = |run: RunNumber| came_during.is_some_and(|first| run >= first);
    let first = rest.find(|position| match stored.origin(*position) {
        MessageOrigin::Run { run, delivered } => delivered || is_later(run),
        MessageOrigin::Client => true,
    });
    // What follows a later run is later, too.
    first.is_none_or(|position| stored.origin(position).run().is_some_and(is_later))
}

struct Differences {
    /// Pairs of a position in the branch and the client's message that changes its text, ascending.
    changed: Vec<(usize, usize)>,
    /// Pairs of a position in the branch and a new message of the client that is inserted before it, ascending.
    inserted: Vec<(usize, usize)>,
}

/// Compares the branch with the client's messages up to the last shown one.
fn differences(
    stored: &Branch,
    stays: usize,
    list: &ClientList<'_>,
    shown: &[Option<usize>],
) -> Differences {
    let client = list.messages;
    let (mut changed, mut inserted) = (Vec::new(), Vec::new());
    let (mut new, mut left_out_from) = (Vec::new(), 0);
    for (at, position) in shown.iter().enumerate() {
        let Some(position) = *position else {
            if !is_left_out(stored, stays, list, &client[at]) {
                new.push(at);
            }
            continue;
        };
        let mut left_out = Instructions::of(stored, left_out_from..position);
        for at in new.drain(..) {
            // Some applications give their system message a new id with every request.
            match left_out.next(client[at].role()) {
                Some(replaced) => changed.push((replaced, at)),
                None => inserted.push((position, at)),
            }
        }
        changed.extend(new_text(stored, position, &client[at]).map(|_| (position, at)));
        // Never backwards, so that a list in another order does not read the branch once for each message.
        left_out_from = left_out_from.max(position + 1);
    }
    // The sorts are stable: of several texts for one position, or new messages of one id, the first is used.
    changed.sort_by_key(|(position, _)| *position);
    changed.dedup_by_key(|(position, _)| *position);
    inserted.sort_by_key(|(before, _)| *before);
    let mut ids = HashSet::new();
    inserted.retain(|(_, at)| ids.insert(client[*at].id()));
    Differences { changed, inserted }
}

#[derive(Default)]
struct Instructions {
    system: VecDeque<usize>,
    developer: VecDeque<usize>,
}

impl Instructions {
    fn of(stored: &Branch, left_out: Range<usize>) -> Self {
        let mut instructions = Self::default();
        for position in
            left_out.filter(|position| stored.origin(*position) == MessageOrigin::Client)
        {
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

fn takes_client_text(message: &Message, origin: MessageOrigin) -> bool {
    origin == MessageOrigin::Client
        || matches!(message.role(), Role::User | Role::System | Role::Developer)
}

fn new_text(stored: &Branch, position: usize, client: &Message) -> Option<Message> {
    let known = &stored.messages()[position];
    let takes_text =
        takes_client_text(known, stored.origin(position)) && known.role() == client.role();
    if !takes_text || known == client || is_in_words(known, client) {
        return None;
    }
    let mut text = client.clone();
    text.set_id(known.id().clone());
    (text != *known).then_some(text)
}

/// Returns whether a client that cannot read parts holds the words that it got in their place.
fn is_in_words(known: &Message, client: &Message) -> bool {
    match (known, client) {
        (Message::User(known), Message::User(client)) => content_in_words(&known.content)
            .is_some_and(|words| client.content == MessageContent::Text(words)),
        _ => false,
    }
}

/// Returns the client's new messages, each id once. `stays` is the number of stored messages that the branch keeps.
fn new_messages(
    stored: &Branch,
    stays: usize,
    list: &ClientList<'_>,
    positions: Range<usize>,
) -> Vec<AppendedMessage> {
    let client = list.messages;
    let mut ids: HashSet<&MessageId> = HashSet::with_capacity(positions.len());
    let positions = positions.filter(|at| !is_left_out(stored, stays, list, &client[*at]));
    positions.filter(|at| ids.insert(client[*at].id())).map(AppendedMessage::Client).collect()
}

fn is_left_out(stored: &Branch, stays: usize, list: &ClientList<'_>, message: &Message) -> bool {
    let is_reply = list.is_reply(message);
    if is_reply {
        tracing::info!(
            message_id = message.id().as_str(),
            "left out a tool's result of the client that is its reply to the interrupt of the call"
        );
    }
    is_reply || repeats_call(stored, stays, message)
}

fn repeats_call(stored: &Branch, stays: usize, message: &Message) -> bool {
    let Message::Assistant(assistant) = message else { return false };
    let is_kept = |position: usize| position < stays;
    let repeats = assistant
        .tool_calls()
        .iter()
        .any(|call| stored.messages().call_position(&call.id).is_some_and(is_kept));
    if repeats {
        tracing::warn!(
            message_id = message.id().as_str(),
            "left out a new message of the client that repeats a stored tool call"
        );
    }
    repeats
}

/// Returns for each message of the client its position in the branch.
fn shown(stored: &Branch, client: &[Message], anonymous: &[usize]) -> Vec<Option<usize>> {
    let mut shown = shown_without_ids(stored, client, anonymous);
    let results = LazyCell::new(|| result_positions(stored));
    let mut next = 0;
    for (at, message) in
        client.iter().enumerate().filter(|(at, _)| anonymous.binary_search(at).is_err())
    {
        shown[at] = position_of(stored, &results, message, next);
        next = shown[at].map_or(next, |position| position + 1);
    }
    show_renamed(stored, client, &mut shown);
    shown
}

/// The position of each stored call's first result.
type ResultPositions<'a> = HashMap<&'a ToolCallId, usize>;

fn result_positions(stored: &Branch) -> ResultPositions<'_> {
    let mut results = HashMap::new();
    for (position, message) in stored.messages().iter().enumerate() {
        if let Message::Tool(result) = message
            && stored
                .messages()
                .call_position(&result.tool_call_id)
                .is_some_and(|call| call < position)
        {
            results.entry(&result.tool_call_id).or_insert(position);
        }
    }
    results
}

fn position_of<'a>(
    stored: &'a Branch,
    results: &LazyCell<ResultPositions<'a>, impl FnOnce() -> ResultPositions<'a>>,
    message: &Message,
    expected: usize,
) -> Option<usize> {
    let messages = stored.messages();
    if messages.get(expected).is_some_and(|known| known.id().is(message.id())) {
        return Some(expected);
    }
    messages.position(message.id()).or_else(|| match message {
        Message::Assistant(assistant) => {
            let calls = assistant.tool_calls().iter().map(|call| messages.call_position(&call.id));
            calls.collect::<Option<Vec<_>>>()?.into_iter().max()
        }
        Message::Tool(result) => results.get(&result.tool_call_id).copied(),
        _ => None,
    })
}

#[cfg(test)]
mod tests;
