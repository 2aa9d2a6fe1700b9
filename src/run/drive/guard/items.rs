//! Tables of items, such as messages or calls: which are open, and who owns them.

use std::{borrow::Borrow, fmt, hash::Hash};

use indexmap::IndexMap;

use super::violation::{Owner, Violation};
use crate::protocol::EventType;

/// Items in the order they were first opened. Closed items are kept, because an item may be reopened by its owner.
pub(crate) struct ItemTable<K, D> {
    items: IndexMap<K, ItemEntry<D>>,
    /// The index of the item that was used last. Most events continue the item of the event before them.
    last: usize,
}

pub(crate) struct ItemEntry<D> {
    pub(crate) open: bool,
    pub(crate) owner: Owner,
    pub(crate) details: D,
}

impl<K, D> Default for ItemTable<K, D> {
    fn default() -> Self {
        Self { items: IndexMap::new(), last: 0 }
    }
}

impl<K: Eq + Hash + Clone + Borrow<str> + fmt::Debug, D> ItemTable<K, D> {
    pub(crate) fn get(&self, id: &str) -> Option<&ItemEntry<D>> {
        self.items.get(id)
    }

    pub(crate) fn get_mut(&mut self, id: &K) -> Option<&mut ItemEntry<D>> {
        match self.items.get_index(self.last) {
            Some((last, _)) if last == id => {}
            _ => self.last = self.items.get_index_of(id)?,
        }
        self.items.get_index_mut(self.last).map(|(_, item)| item)
    }

    /// Opens an item. A closed one is reopened and keeps its owner.
    pub(crate) fn open(&mut self, id: &K, owner: &Owner, details: impl FnOnce() -> D) {
        match self.get_mut(id) {
            Some(item) => item.open = true,
            None => {
                let item = ItemEntry { open: true, owner: owner.clone(), details: details() };
                self.last = self.items.insert_full(id.clone(), item).0;
            }
        }
    }

    /// Fails if the item is open or belongs to another owner. Returns the closed item, if there is one.
    pub(crate) fn check_start(
        &self,
        event: EventType,
        kind: &str,
        id: &K,
        subagent: &Owner,
    ) -> Result<Option<&ItemEntry<D>>, Violation> {
        let Some(item) = self.items.get(id) else { return Ok(None) };
        if item.open {
            return Err(Violation::new(event, format!("{kind} {id:?} is already open")));
        }
        check_owner(event, kind, id, &item.owner, subagent)?;
        Ok(Some(item))
    }

    pub(crate) fn check_continues(
        &mut self,
        event: EventType,
        kind: &str,
        id: &K,
        subagent: &Owner,
    ) -> Result<(), Violation> {
        match self.get_mut(id) {
            Some(item) if item.open => check_owner(event, kind, id, &item.owner, subagent),
            _ => Err(Violation::new(event, format!("{kind} {id:?} is not open"))),
        }
    }

    pub(crate) fn close(&mut self, event: EventType, kind: &str, id: &K, subagent: &Owner) -> Result<bool, Violation> {
        match self.get_mut(id) {
            Some(item) if item.open => {
                check_owner(event, kind, id, &item.owner, subagent)?;
                item.open = false;
                Ok(true)
            }
            _ => {
                tracing::debug!(event = event.as_str(), ?id, "skipped an end event: the item is not open");
                Ok(false)
            }
        }
    }

    /// Closes all open items, or those of one owner. Returns their ids and owners in the order they were opened.
    pub(crate) fn close_open(&mut self, of: Option<&Owner>) -> Vec<(K, Owner)> {
        let mut closed = Vec::new();
        for (id, item) in &mut self.items {
            if item.open && of.is_none_or(|owner| *owner == item.owner) {
                item.open = false;
                closed.push((id.clone(), item.owner.clone()));
            }
        }
        closed
    }

    pub(crate) fn is_open(&self, id: &str) -> bool {
        self.items.get(id).is_some_and(|item| item.open)
    }

    pub(crate) fn remove(&mut self, id: &str) {
        self.items.shift_remove(id);
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&K, &ItemEntry<D>)> {
        self.items.iter()
    }
}

/// Checks that an event names the owner of its item, or no owner.
pub(crate) fn check_owner(
    event: EventType,
    kind: &str,
    id: &impl fmt::Debug,
    owner: &Owner,
    subagent: &Owner,
) -> Result<(), Violation> {
    match subagent {
        Some(subagent) if owner.as_ref() != Some(subagent) => {
            let owner = match owner {
                Some(owner) => format!("subagent {owner:?}"),
                None => "the parent agent".to_owned(),
            };
            Err(Violation::new(event, format!("{kind} {id:?} belongs to {owner}, not to subagent {subagent:?}")))
        }
        _ => Ok(()),
    }
}
