//! Pages of threads, of messages and of events.

use std::collections::{BTreeMap, HashSet};

use super::{MessageNode, MessageNumber, RunNumber, RunStatus};
use agui_protocol::MessageId;

/// A page of a list of threads.
#[derive(Debug, Clone, Default)]
pub struct ThreadPage {
    /// Starts after the thread whose newest run has this number; `None` starts with the first
    /// thread.
    pub after: Option<RunNumber>,
    /// The largest number of threads.
    pub limit: usize,
    /// Lists only threads that are archived, or only those that are not; `None` lists both.
    pub archived: Option<bool>,
    /// Lists only threads that this agent has answered last.
    pub agent: Option<String>,
    /// Lists only threads whose title has all words of this text, or that have a message with all
    /// of them. A search reads messages of users and assistants, the first 8 KiB of each, and up to
    /// 500 different words. Case is ignored, and the last word may be the beginning of one. Text in
    /// Chinese or Japanese is found at any place. A store may find more, and searches only the
    /// newest of many thousand threads.
    pub query: Option<String>,
}

impl ThreadPage {
    /// Returns the page of the first threads, at most this many.
    pub fn first(limit: usize) -> Self {
        Self { limit, ..Self::default() }
    }
}

/// Selects a page of a thread's messages, from the newest one backwards.
#[derive(Debug, Clone, Copy)]
pub struct MessageQuery {
    /// The number of the newest message: the page has the messages of its branch.
    pub newest: MessageNumber,
    /// Reads only the messages that the run with this number made, on all branches.
    pub run: Option<RunNumber>,
    /// The largest number of messages.
    pub limit: usize,
}

impl MessageQuery {
    /// Selects messages of the branch that ends with the message `newest`.
    pub fn new(newest: MessageNumber, limit: usize) -> Self {
        Self { newest, run: None, limit }
    }
}

/// A page of a thread's messages.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct MessagePage {
    /// The messages, the oldest first.
    pub nodes: Vec<MessageNode>,
    /// The number of the newest message of the page before this one; `None` if there is no such page.
    pub before: Option<MessageNumber>,
    /// The messages that share their parent with a message of the page, by parent, in the order
    /// they were stored. A message without such siblings is not listed. An id that several siblings
    /// have, such as an edited message, is listed once.
    pub siblings: BTreeMap<MessageNumber, Vec<MessageId>>,
}

impl MessagePage {
    /// Siblings that a page lists, the newest ones.
    pub const MAX_SIBLINGS: usize = 1000;

    /// Selects a page from all messages of a thread, which must be in the order of their numbers.
    pub(super) fn select(nodes: &[MessageNode], query: MessageQuery) -> Self {
        let mut newest_first = Vec::new();
        let mut next = query.newest;
        for node in nodes.iter().rev().filter(|node| node.number <= query.newest) {
            let (limit, is_found) = match query.run {
                None => (query.limit, node.number == next),
                Some(run) => (query.limit + 1, node.origin.run() == Some(run)),
            };
            if newest_first.len() == limit {
                break;
            }
            if is_found {
                next = node.parent;
                newest_first.push(node.clone());
            }
        }
        let mut page = Self::new(newest_first, query);
        let parents: HashSet<_> = page.parents().into_iter().collect();
        let siblings = nodes.iter().rev().filter(|node| parents.contains(&node.parent));
        let siblings = siblings.map(|node| (node.parent, node.message.id().clone()));
        page.set_siblings(siblings.take(Self::MAX_SIBLINGS).collect());
        page
    }

    /// Creates a page from its messages. For the messages of a run, `messages` may have one more
    /// than the page.
    pub(super) fn new(mut newest_first: Vec<MessageNode>, query: MessageQuery) -> Self {
        let before = match query.run {
            None => newest_first
                .last()
                .map(|oldest| oldest.parent)
                .filter(|parent| *parent != MessageNumber::ROOT),
            Some(_) => newest_first.get(query.limit).map(|node| node.number),
        };
        newest_first.truncate(query.limit);
        newest_first.reverse();
        Self { nodes: newest_first, before, ..Self::default() }
    }

    pub(super) fn parents(&self) -> Vec<MessageNumber> {
        self.nodes.iter().map(|node| node.parent).collect()
    }

    /// Sets the children of the parents of the page's messages, the newest ones first.
    pub(super) fn set_siblings(&mut self, newest_first: Vec<(MessageNumber, MessageId)>) {
        for (parent, id) in newest_first.into_iter().rev() {
            self.siblings.entry(parent).or_default().push(id);
        }
        self.siblings.retain(|_, ids| ids.len() > 1);
        for ids in self.siblings.values_mut() {
            let mut listed = HashSet::new();
            ids.retain(|id| listed.insert(id.clone()));
        }
    }
}

/// A page of a run's log.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct EventPage {
    /// The number of the first event, if there is one.
    pub first: u64,
    /// Each event as one line of JSON.
    pub events: Vec<String>,
    /// The time of each event, in milliseconds since the run's start.
    pub times: Vec<u64>,
    /// The run's status when the events were read.
    pub status: RunStatus,
    /// The number of events that an ended run sent, or that a running run's log has.
    pub count: u64,
}

impl EventPage {
    /// Returns a page without events, which follow the event with number `after`.
    pub fn new(after: u64, status: RunStatus, count: u64) -> Self {
        Self {
            first: after.saturating_add(1),
            events: Vec::new(),
            times: Vec::new(),
            status,
            count,
        }
    }
}
