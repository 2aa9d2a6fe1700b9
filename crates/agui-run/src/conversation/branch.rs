//! A branch of a stored thread in memory, and the cache of the threads with the last runs.

use std::collections::HashSet;

use hashlink::LinkedHashMap;
use parking_lot::Mutex;
use serde_json::Value;

use crate::limits::memory::MESSAGE_OVERHEAD_BYTES;
use agui_agent::host::Conversation;
use agui_protocol::{Interrupt, Message, MessageId, Messages, open_values};
use agui_store::{
    MessageNode, MessageNumber, MessageOrigin, Millis, RunNumber, StateNumber, Thread, ThreadKey,
    ThreadVersion, ThreadView, host::branch_of,
};

/// Returns whether only agents make such messages, so that a client's message is unverified.
pub(crate) fn is_agent_only(message: &Message) -> bool {
    matches!(message, Message::Assistant(_) | Message::Tool(_) | Message::Activity(_))
}

/// The messages from the root of a thread's tree to one of its messages.
#[derive(Debug, Clone, Default)]
pub struct Branch {
    messages: Messages,
    nodes: Vec<NodeInfo>,
}

#[derive(Debug, Clone, Copy)]
struct NodeInfo {
    number: MessageNumber,
    origin: MessageOrigin,
}

impl Branch {
    /// Creates the branch of a new thread. `last` is the number of the last message.
    pub(super) fn from_client(messages: Messages, last: MessageNumber) -> Self {
        let numbers = last.newest(messages.len());
        let nodes =
            numbers.map(|number| NodeInfo { number, origin: MessageOrigin::Client }).collect();
        Self { messages, nodes }
    }

    pub fn messages(&self) -> &Messages {
        &self.messages
    }

    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Returns the number of the message before a position.
    pub(crate) fn number_before(&self, position: usize) -> MessageNumber {
        let before = position.checked_sub(1).and_then(|last| self.nodes.get(last));
        before.map_or(MessageNumber::ROOT, |node| node.number)
    }

    pub fn number(&self, position: usize) -> MessageNumber {
        self.number_before(position + 1)
    }

    pub fn origin(&self, position: usize) -> MessageOrigin {
        self.nodes.get(position).map_or(MessageOrigin::Client, |node| node.origin)
    }

    pub(crate) fn origin_of(&self, id: &MessageId) -> Option<MessageOrigin> {
        self.messages.position(id).map(|position| self.origin(position))
    }

    /// Returns the messages that only agents make, but that a client added to the branch: they may
    /// name calls and results that no run has made.
    pub(crate) fn unverified_messages(&self) -> HashSet<MessageId> {
        let sent = self.messages.iter().zip(&self.nodes);
        sent.filter(|(_, node)| node.origin == MessageOrigin::Client)
            .filter(|(message, _)| is_agent_only(message))
            .map(|(message, _)| message.id().clone())
            .collect()
    }

    pub fn head(&self) -> MessageNumber {
        self.number_before(self.len())
    }

    pub fn set_delivered(&mut self, number: RunNumber, is_delivered: bool) {
        for node in &mut self.nodes {
            if let MessageOrigin::Run { run, delivered } = &mut node.origin
                && *run == number
            {
                *delivered = is_delivered;
            }
        }
    }

    pub fn truncate(&mut self, len: usize) {
        self.messages.truncate(len);
        self.nodes.truncate(len);
    }

    pub fn push(&mut self, message: Message, number: MessageNumber, origin: MessageOrigin) {
        self.messages.push(message);
        self.nodes.push(NodeInfo { number, origin });
    }

    pub fn replace(&mut self, position: usize, message: Message) {
        if let Some(place) = self.messages.to_mut().get_mut(position) {
            *place = message;
        }
    }
}

impl<'a> FromIterator<&'a MessageNode> for Branch {
    fn from_iter<I: IntoIterator<Item = &'a MessageNode>>(nodes: I) -> Self {
        let split = |node: &MessageNode| {
            (node.message.clone(), NodeInfo { number: node.number, origin: node.origin })
        };
        let (messages, nodes): (Vec<_>, Vec<_>) = nodes.into_iter().map(split).unzip();
        Self { messages: messages.into(), nodes }
    }
}

#[derive(Debug, Clone)]
pub struct LoadedThread {
    pub version: ThreadVersion,
    pub created_at: Millis,
    /// The first run of the branch; `None` if it is unknown.
    pub first_run: Option<RunNumber>,
    /// The number of the stored state, and the state.
    pub state: Option<(StateNumber, Value)>,
    pub interrupts: Vec<Interrupt>,
    pub bytes: u64,
    pub branch: Branch,
}

impl From<ThreadView> for LoadedThread {
    fn from(mut view: ThreadView) -> Self {
        let nodes = std::mem::take(&mut view.nodes);
        let Thread {
            number, version, created_at, first_run, state, interrupts, bytes, head, ..
        } = view.thread;
        let branch = branch_of(&nodes, head).into_iter().collect();
        let version = ThreadVersion { number, version };
        Self { version, created_at, first_run, state, interrupts, bytes, branch }
    }
}

impl LoadedThread {
    /// Returns the conversation of a run on the branch.
    pub fn conversation(&self, run: RunNumber) -> Conversation {
        Conversation::Stored {
            created_at: self.created_at,
            first_run: self.first_run.unwrap_or(run),
        }
    }

    /// Returns the memory of a run on the thread: the JSON, the overhead of open values, and the
    /// state in the thread, the agent and the transcript.
    pub fn memory_bytes(&self) -> u64 {
        let Self { bytes, branch, state, .. } = self;
        let state = state.as_ref().map_or(0, |(_, state)| open_values::memory(state));
        let messages = branch
            .messages
            .iter()
            .map(|message| MESSAGE_OVERHEAD_BYTES + open_values::memory_of_message(message));
        bytes + THREAD_OVERHEAD_BYTES + STATE_COPIES * state + messages.sum::<u64>()
    }
}

/// Threads after the last run of this process on them. They may be outdated: the store checks the
/// version when the next run begins. On a thread of 5,000 messages, a run takes 0.7 ms of CPU if
/// the thread is cached, and 13 ms more if it has to be read.
#[derive(Debug, Default)]
pub struct BranchCache(Mutex<CachedThreads>);

#[derive(Debug, Default)]
struct CachedThreads {
    /// The threads in the order of their last runs, each with its memory.
    threads: LinkedHashMap<ThreadKey, (LoadedThread, u64)>,
    bytes: u64,
}

const STATE_COPIES: u64 = 3;
const MAX_CACHED_BYTES: u64 = 32 * 1024 * 1024;
/// The approximate memory of a thread beside its text.
const THREAD_OVERHEAD_BYTES: u64 = 1024;

impl BranchCache {
    /// Returns a thread with its [`memory_bytes`](LoadedThread::memory_bytes).
    pub fn take(&self, key: &ThreadKey) -> Option<(LoadedThread, u64)> {
        let mut cached = self.0.lock();
        let (thread, size) = cached.threads.remove(key)?;
        cached.bytes -= size;
        Some((thread, size))
    }

    /// Repeats a write of [`Store::set_delivered`](agui_store::Store::set_delivered) on the cached
    /// thread. `after` is the version after the write. A run that has ended since has cached a
    /// newer version.
    pub fn set_delivered(
        &self,
        key: &ThreadKey,
        after: ThreadVersion,
        run: RunNumber,
        delivered: bool,
    ) {
        let mut cached = self.0.lock();
        if let Some((cached, _)) =
            cached.threads.get_mut(key).filter(|(cached, _)| cached.version.number == after.number)
        {
            cached.branch.set_delivered(run, delivered);
            if cached.version.version + 1 == after.version {
                cached.version = after;
            }
        }
    }

    /// Repeats a write of [`Store::update`](agui_store::Store::update) without a head on the cached thread.
    pub(crate) fn raise_version(&self, key: &ThreadKey, before: ThreadVersion) {
        let mut cached = self.0.lock();
        if let Some((cached, _)) =
            cached.threads.get_mut(key).filter(|(cached, _)| cached.version == before)
        {
            cached.version.version += 1;
        }
    }

    pub fn put(&self, key: ThreadKey, thread: LoadedThread) {
        let size = thread.memory_bytes();
        let mut cached = self.0.lock();
        cached.bytes += size;
        if let Some((_, old)) = cached.threads.insert(key, (thread, size)) {
            cached.bytes -= old;
        }
        while cached.bytes > MAX_CACHED_BYTES {
            let Some((_, (_, oldest))) = cached.threads.pop_front() else { break };
            cached.bytes -= oldest;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use agui_store::ThreadNumber;

    fn loaded(
        version: ThreadVersion,
        state: Option<(StateNumber, Value)>,
        bytes: u64,
        branch: Branch,
    ) -> LoadedThread {
        LoadedThread {
            version,
            created_at: 0,
            first_run: None,
            state,
            interrupts: Vec::new(),
            bytes,
            branch,
        }
    }

    #[test]
    fn a_delivery_raises_only_the_version_directly_before_it() {
        let cache = BranchCache::default();
        let key = ThreadKey { owner: ThreadKey::ANONYMOUS.into(), id: "t".into() };
        let origin = MessageOrigin::Run { run: RunNumber(7), delivered: false };
        let mut branch = Branch::default();
        branch.push(Message::assistant("a", "text"), MessageNumber(1), origin);
        // Of the thread's versions 1 to 5, the delivery made number 4.
        for (cached, expected) in [(2, 2), (3, 4), (4, 4), (5, 5)] {
            let version = ThreadVersion { number: ThreadNumber(1), version: cached };
            cache.put(key.clone(), loaded(version, None, 0, branch.clone()));
            cache.set_delivered(
                &key,
                ThreadVersion { number: ThreadNumber(1), version: 4 },
                RunNumber(7),
                true,
            );
            let (thread, _) = cache.take(&key).unwrap();
            assert_eq!(thread.version.version, expected, "version {cached}");
            assert_eq!(
                thread.branch.origin(0),
                MessageOrigin::Run { run: RunNumber(7), delivered: true }
            );
        }
    }

    #[test]
    fn the_memory_of_a_state_counts_and_not_its_json() {
        let cache = BranchCache::default();
        let state = serde_json::Value::from(vec![serde_json::json!({ "a": 1 }); 10_000]);
        let bytes = state.to_string().len() as u64;
        for number in 0..100 {
            let version = ThreadVersion { number: ThreadNumber(number), version: 1 };
            let key = ThreadKey {
                owner: ThreadKey::ANONYMOUS.into(),
                id: number.to_string().as_str().into(),
            };
            cache.put(
                key,
                loaded(version, Some((StateNumber(1), state.clone())), bytes, Branch::default()),
            );
        }
        let kept = cache.0.lock().threads.len() as u64;
        // Each of these objects takes at least 400 bytes.
        assert!((1..=MAX_CACHED_BYTES / (10_000 * 400)).contains(&kept), "{kept} threads are kept");
    }
}
