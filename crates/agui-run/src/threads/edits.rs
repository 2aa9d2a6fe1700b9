//! Changes of threads by their owners: title, archive, metadata, and the current branch.

use serde_json::Value;

use super::{ThreadError, Threads, error::MAX_METADATA_BYTES};
use crate::{
    conversation::title::{MAX_TITLE_CHARS, on_one_line},
    events::thread_event_hub::ThreadChange,
};
use agui_protocol::{Interrupt, JsonObject, MessageId};
use agui_store::{
    EndState, EndedRun, HeadUpdate, MessageNode, MessageNumber, StateNumber, StoreError, Thread,
    ThreadKey, ThreadParts, ThreadUpdate, ThreadVersion, ThreadView,
    host::{branch_of, json_len},
};

/// The number of times that an edit is tried while runs change the thread.
const MAX_ATTEMPTS: usize = 10;

/// Changes of a thread. `None` leaves a part as it is.
#[derive(Debug, Clone, Default)]
pub struct ThreadEdit {
    /// The new title; `Some(None)` removes it, and the next message of a user becomes the title.
    pub title: Option<Option<String>>,
    /// True archives the thread, false unarchives it.
    pub archived: Option<bool>,
    /// The changed members of the metadata; a `null` removes a member. `Some(None)` removes all of them.
    pub metadata: Option<Option<JsonObject>>,
    /// A message of another branch, which becomes the current one, up to its newest message.
    pub head: Option<MessageId>,
}

impl Threads {
    /// Changes a thread. Returns the thread after the change, without its state.
    ///
    /// # Errors
    /// A [`ThreadError`].
    pub async fn edit(&self, key: &ThreadKey, edit: ThreadEdit) -> Result<Thread, ThreadError> {
        let title = edit.title.map(|title| title.as_deref().and_then(on_one_line));
        if title.iter().flatten().any(|title| title.chars().count() > MAX_TITLE_CHARS) {
            return Err(ThreadError::TitleTooLong);
        }
        if edit.head.is_some() {
            self.wait_if_abandoned(key).await;
        }
        for _ in 0..MAX_ATTEMPTS {
            let include = ThreadParts { messages: edit.head.is_some(), ..ThreadParts::default() };
            let view = self.view(key, include).await?;
            let metadata =
                edit.metadata.as_ref().map(|change| merged(&view.thread.metadata, change.as_ref()));
            if metadata
                .as_ref()
                .is_some_and(|metadata| json_len(metadata) > MAX_METADATA_BYTES as u64)
            {
                return Err(ThreadError::MetadataTooLarge);
            }
            let end = match &edit.head {
                Some(head) => self.branch_end(&view, head).await?,
                None => None,
            };
            let head = end.as_ref().map(|end| HeadUpdate {
                head: end.head,
                state_number: end.state.as_ref().map(|(number, _)| *number),
                interrupts: &end.interrupts,
            });
            let update = ThreadUpdate {
                title: title.as_ref().map(Option::as_deref),
                archived: edit.archived,
                metadata: metadata.as_ref(),
                head,
            };
            let version = ThreadVersion::of(&view.thread);
            if self.core.store.update(version, &update).await? {
                match head {
                    Some(_) => drop(self.core.cache.take(key)),
                    None => self.core.cache.raise_version(key, version),
                }
                let renamed = title.as_ref().is_some_and(|title| *title != view.thread.title);
                let archived = edit.archived.filter(|archived| *archived != view.thread.archived);
                let changes = [
                    renamed.then_some(ThreadChange::Renamed),
                    archived.map(|is| {
                        if is { ThreadChange::Archived } else { ThreadChange::Unarchived }
                    }),
                    (metadata.is_some() || head.is_some()).then_some(ThreadChange::Changed),
                ];
                changes.into_iter().flatten().for_each(|change| self.core.publish(key, change));
                let mut thread = view.thread;
                thread.version += 1;
                thread.title = title.unwrap_or(thread.title);
                thread.archived = edit.archived.unwrap_or(thread.archived);
                thread.metadata = metadata.unwrap_or(thread.metadata);
                if let Some(BranchEnd { head, state, interrupts }) = end {
                    (thread.head, thread.state, thread.interrupts) = (head, state, interrupts);
                }
                return Ok(thread);
            }
        }
        Err(ThreadError::Changed)
    }

    /// Returns the end of the branch of a message: its newest descendant, with the state and the
    /// interrupts there. Returns `None` if the current branch has the message.
    async fn branch_end(
        &self,
        view: &ThreadView,
        id: &MessageId,
    ) -> Result<Option<BranchEnd>, ThreadError> {
        let current: Vec<_> =
            branch_of(&view.nodes, view.thread.head).into_iter().map(|node| node.number).collect();
        let is_current = |node: &MessageNode| current.binary_search(&node.number).is_ok();
        // An edited message can have the id of the message that it replaces.
        let mut same_id: Vec<_> =
            view.nodes.iter().filter(|node| node.message.id() == id).collect();
        let Some(newest) = same_id.pop() else { return Err(ThreadError::NoMessage) };
        let other =
            std::iter::once(newest).chain(same_id.into_iter().rev()).find(|node| !is_current(node));
        let Some(message) = other else { return Ok(None) };
        if view.thread.is_running {
            return Err(ThreadError::BranchIsRunning);
        }
        let head = newest_descendant(&view.nodes, message.number);
        Ok(Some(self.end_of_branch(&view.thread, head).await?))
    }

    /// Returns the state and the open interrupts that the last run on a branch left. Interrupts are
    /// not open after further messages.
    pub(super) async fn end_of_branch(
        &self,
        thread: &Thread,
        head: MessageNumber,
    ) -> Result<BranchEnd, StoreError> {
        let Some(left) = self.left_on_branch(thread, head).await? else {
            return Ok(BranchEnd { head, state: None, interrupts: Vec::new() });
        };
        let interrupts = if left.head == head { left.interrupts } else { Vec::new() };
        Ok(BranchEnd { head, state: left.state, interrupts })
    }

    /// Reads the end of the last run that ended on a branch.
    pub(super) async fn left_on_branch(
        &self,
        thread: &Thread,
        head: MessageNumber,
    ) -> Result<Option<EndState>, StoreError> {
        let run = EndedRun::Branch(head);
        self.core.store.end_state(&thread.key.owner, thread.number, run).await
    }
}

/// The last message of a branch, with the state and the open interrupts there.
pub(super) struct BranchEnd {
    pub(super) head: MessageNumber,
    pub(super) state: Option<(StateNumber, Value)>,
    pub(super) interrupts: Vec<Interrupt>,
}

/// Returns the newest descendant of a message. A child has a larger number than its parent, so one
/// pass finds all descendants.
fn newest_descendant(nodes: &[MessageNode], ancestor: MessageNumber) -> MessageNumber {
    let mut descendants = std::collections::HashSet::from([ancestor]);
    let mut newest = ancestor;
    for node in nodes.iter().filter(|node| node.number > ancestor) {
        if descendants.contains(&node.parent) {
            descendants.insert(node.number);
            newest = node.number;
        }
    }
    newest
}

fn merged(stored: &JsonObject, change: Option<&JsonObject>) -> JsonObject {
    let Some(change) = change else { return JsonObject::new() };
    let mut merged = stored.clone();
    for (name, value) in change {
        if value.is_null() {
            drop(merged.remove(name))
        } else {
            drop(merged.insert(name.clone(), value.clone()))
        }
    }
    merged
}
