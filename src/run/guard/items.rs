//! What is open, what was, and whose it is.

use std::{borrow::Borrow, fmt, hash::Hash};

use indexmap::IndexMap;

use super::violation::{Owner, Violation};
use crate::protocol::EventType;

/// One kind of item, by id, in the order they were first opened. Closed ones are kept: an item may be
/// reopened, but not under another owner.
pub(super) struct Items<K, D> {
    items: IndexMap<K, Item<D>>,
    /// The item that was used last. A stream mostly continues what it has just continued.
    last: usize,
}

pub(super) struct Item<D> {
    pub(super) open: bool,
    pub(super) owner: Owner,
    pub(super) detail: D,
}

impl<K, D> Default for Items<K, D> {
    fn default() -> Self {
        Self { items: IndexMap::new(), last: 0 }
    }
}

impl<K: Eq + Hash + Clone + Borrow<str> + fmt::Debug, D> Items<K, D> {
    pub(super) fn get(&self, id: &str) -> Option<&Item<D>> {
        self.items.get(id)
    }

    pub(super) fn get_mut(&mut self, id: &K) -> Option<&mut Item<D>> {
        match self.items.get_index(self.last) {
            Some((last, _)) if last == id => {}
            _ => self.last = self.items.get_index_of(id)?,
        }
        self.items.get_index_mut(self.last).map(|(_, item)| item)
    }

    /// Opens an item, or reopens a closed one, which keeps its owner.
    pub(super) fn open(&mut self, id: &K, owner: &Owner, detail: impl FnOnce() -> D) {
        match self.get_mut(id) {
            Some(item) => item.open = true,
            None => {
                let item = Item { open: true, owner: owner.clone(), detail: detail() };
                self.last = self.items.insert_full(id.clone(), item).0;
            }
        }
    }

    /// The item that an event opens must not be open, and must not have been another owner's.
    pub(super) fn check_start(
        &self,
        event: EventType,
        kind: &str,
        id: &K,
        tag: &Owner,
    ) -> Result<Option<&Item<D>>, Violation> {
        let Some(item) = self.items.get(id) else { return Ok(None) };
        if item.open {
            return Err(Violation::new(event, format!("{kind} {id:?} is already open")));
        }
        agree(event, kind, id, &item.owner, tag)?;
        Ok(Some(item))
    }

    /// The item that an event continues must be open, and not be another owner's.
    pub(super) fn check_continues(
        &mut self,
        event: EventType,
        kind: &str,
        id: &K,
        tag: &Owner,
    ) -> Result<(), Violation> {
        match self.get_mut(id) {
            Some(item) if item.open => agree(event, kind, id, &item.owner, tag),
            _ => Err(Violation::new(event, format!("{kind} {id:?} is not open"))),
        }
    }

    /// Closes an item. Answers whether there was anything to close.
    pub(super) fn close(&mut self, event: EventType, kind: &str, id: &K, tag: &Owner) -> Result<bool, Violation> {
        match self.get_mut(id) {
            Some(item) if item.open => {
                agree(event, kind, id, &item.owner, tag)?;
                item.open = false;
                Ok(true)
            }
            _ => {
                tracing::debug!(event = event.as_str(), ?id, "left out: it is not open");
                Ok(false)
            }
        }
    }

    /// Closes all items, or all of one owner, and answers their ids and owners in the order they were opened.
    pub(super) fn close_open(&mut self, of: Option<&Owner>) -> Vec<(K, Owner)> {
        let mut closed = Vec::new();
        for (id, item) in &mut self.items {
            if item.open && of.is_none_or(|owner| *owner == item.owner) {
                item.open = false;
                closed.push((id.clone(), item.owner.clone()));
            }
        }
        closed
    }

    /// Whether an item is open.
    pub(super) fn is_open(&self, id: &str) -> bool {
        self.items.get(id).is_some_and(|item| item.open)
    }

    /// Forgets an item, as if it had never been.
    pub(super) fn forget(&mut self, id: &str) {
        self.items.shift_remove(id);
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&K, &Item<D>)> {
        self.items.iter()
    }
}

/// Checks that an event that continues an item names the item's owner or no owner.
pub(super) fn agree(
    event: EventType,
    kind: &str,
    id: &impl fmt::Debug,
    owner: &Owner,
    tag: &Owner,
) -> Result<(), Violation> {
    match tag {
        Some(tag) if owner.as_ref() != Some(tag) => {
            let owner = match owner {
                Some(owner) => format!("subagent {owner:?}"),
                None => "the parent agent".to_owned(),
            };
            Err(Violation::new(event, format!("{kind} {id:?} belongs to {owner}, not to subagent {tag:?}")))
        }
        _ => Ok(()),
    }
}
