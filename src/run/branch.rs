//! Branches of stored threads in memory, and the cache of those that were used last.

use std::sync::{Mutex, MutexGuard, PoisonError};

use hashlink::LinkedHashMap;
use serde_json::Value;

use crate::{
    protocol::{Interrupt, Message, MessageId, Messages, RunId},
    store::{MessageNode, MessageOrigin, Thread, ThreadKey, ThreadVersion, ThreadView, branch_of},
};

/// The messages from the root of a thread's tree to one of its messages.
#[derive(Debug, Clone, Default)]
pub(super) struct Branch {
    messages: Messages,
    nodes: Vec<StoredAs>,
}

/// Where a message of a branch is stored.
#[derive(Debug, Clone, Copy)]
struct StoredAs {
    number: i64,
    origin: MessageOrigin,
}

impl Branch {
    pub(super) fn messages(&self) -> &Messages {
        &self.messages
    }

    pub(super) fn len(&self) -> usize {
        self.nodes.len()
    }

    /// The number of the message before this position; 0 at the root.
    pub(super) fn number_before(&self, position: usize) -> i64 {
        position.checked_sub(1).and_then(|last| self.nodes.get(last)).map_or(0, |node| node.number)
    }

    /// The number of the message at a position.
    pub(super) fn number(&self, position: usize) -> i64 {
        self.number_before(position + 1)
    }

    pub(super) fn origin(&self, position: usize) -> MessageOrigin {
        self.nodes.get(position).map_or(MessageOrigin::Client, |node| node.origin)
    }

    /// Who stored the message with an id.
    pub(super) fn origin_of(&self, id: &MessageId) -> Option<MessageOrigin> {
        self.messages.position(id).map(|position| self.origin(position))
    }

    /// The number of the last message; 0 when there is none.
    pub(super) fn head(&self) -> i64 {
        self.number_before(self.len())
    }

    /// Notes whether the response of a run reached a client.
    pub(super) fn set_delivered(&mut self, number: i64, is_delivered: bool) {
        for node in &mut self.nodes {
            if let MessageOrigin::Run { run, delivered } = &mut node.origin
                && *run == number
            {
                *delivered = is_delivered;
            }
        }
    }

    pub(super) fn truncate(&mut self, len: usize) {
        self.messages.truncate(len);
        self.nodes.truncate(len);
    }

    pub(super) fn push(&mut self, message: Message, number: i64, origin: MessageOrigin) {
        self.messages.push(message);
        self.nodes.push(StoredAs { number, origin });
    }

    pub(super) fn replace(&mut self, position: usize, message: Message) {
        if let Some(place) = self.messages.to_mut().get_mut(position) {
            *place = message;
        }
    }
}

impl FromIterator<(Message, i64, MessageOrigin)> for Branch {
    fn from_iter<I: IntoIterator<Item = (Message, i64, MessageOrigin)>>(nodes: I) -> Self {
        let stored_as = |(message, number, origin)| (message, StoredAs { number, origin });
        let (messages, nodes): (Vec<_>, Vec<_>) = nodes.into_iter().map(stored_as).unzip();
        Self { messages: messages.into(), nodes }
    }
}

impl<'a> FromIterator<&'a MessageNode> for Branch {
    fn from_iter<I: IntoIterator<Item = &'a MessageNode>>(nodes: I) -> Self {
        nodes.into_iter().map(|node| (node.message.clone(), node.number, node.origin)).collect()
    }
}

/// A thread as a run finds it.
#[derive(Debug, Clone)]
pub(super) struct LoadedThread {
    pub(super) version: ThreadVersion,
    /// The newest run.
    pub(super) run_id: RunId,
    /// The number of the stored state, and the state.
    pub(super) state: Option<(i64, Value)>,
    /// The interrupts that are open.
    pub(super) interrupts: Vec<Interrupt>,
    /// The bytes of all messages and states.
    pub(super) bytes: u64,
    /// The current branch.
    pub(super) branch: Branch,
}

impl From<ThreadView> for LoadedThread {
    fn from(mut view: ThreadView) -> Self {
        let nodes = std::mem::take(&mut view.nodes);
        let Thread { number, version, run_id, state, interrupts, bytes, head, .. } = view.thread;
        let branch = branch_of(&nodes, head).into_iter().collect();
        Self { version: ThreadVersion { number, version }, run_id, state, interrupts, bytes, branch }
    }
}

/// Threads as they were when the last run in this process ended on them. Whether they are still so, the store says when
/// the next run begins.
///
/// A run on a thread of 5,000 messages takes its branch from here in place of reading it: see `docs/architecture.md`
/// for the measurement.
#[derive(Debug, Default)]
pub(super) struct BranchCache(Mutex<Cached>);

#[derive(Debug, Default)]
struct Cached {
    /// In the order of their last runs.
    threads: LinkedHashMap<ThreadKey, LoadedThread>,
    bytes: u64,
}

/// The size of all cached threads, as JSON.
const MAX_BYTES: u64 = 32 * 1024 * 1024;
/// What a thread and a message take beside their text.
const THREAD_OVERHEAD: u64 = 1024;
const MESSAGE_OVERHEAD: u64 = 256;

impl BranchCache {
    fn lock(&self) -> MutexGuard<'_, Cached> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a thread out.
    pub(super) fn take(&self, key: &ThreadKey) -> Option<LoadedThread> {
        let mut cached = self.lock();
        let thread = cached.threads.remove(key)?;
        cached.bytes -= size(&thread);
        Some(thread)
    }

    /// Notes that the store has been told whether the response of a run reached a client.
    pub(super) fn set_delivered(&self, key: &ThreadKey, thread: i64, run: i64, delivered: bool) {
        let mut cached = self.lock();
        if let Some(cached) = cached.threads.get_mut(key).filter(|cached| cached.version.number == thread) {
            cached.version.version += 1;
            cached.branch.set_delivered(run, delivered);
        }
    }

    /// Puts a thread in. Others go to make room.
    pub(super) fn put(&self, key: ThreadKey, thread: LoadedThread) {
        let mut cached = self.lock();
        cached.bytes += size(&thread);
        if let Some(old) = cached.threads.insert(key, thread) {
            cached.bytes -= size(&old);
        }
        while cached.bytes > MAX_BYTES {
            let Some((_, oldest)) = cached.threads.pop_front() else { break };
            cached.bytes -= size(&oldest);
        }
    }
}

fn size(LoadedThread { bytes, branch, .. }: &LoadedThread) -> u64 {
    bytes + THREAD_OVERHEAD + MESSAGE_OVERHEAD * branch.len() as u64
}
