//! Tables of items, such as messages or calls: their owners, and the open ones.

use std::{borrow::Borrow, fmt, hash::Hash};

use indexmap::{IndexMap, IndexSet};

use super::violation::{Owner, Violation};
use agui_protocol::EventType;

/// The largest number of items of a kind that are open at a time.
pub(crate) const MAX_OPEN_ITEMS: usize = 1024;

/// Items in the order they were first opened. Closed items are kept, because an item may be reopened by its owner.
pub(crate) struct ItemTable<K, D> {
    items: IndexMap<K, ItemEntry<D>>,
    /// The open items, in the order they were opened, so that closing items does not scan closed
    /// ones.
    open: IndexSet<K>,
    /// The index of the item that was used last. Most events continue the item of the event before them.
    last: usize,
}

pub(crate) struct ItemEntry<D> {
    open: bool,
    pub owner: Owner,
    pub details: D,
}

impl<K, D> Default for ItemTable<K, D> {
    fn default() -> Self {
        Self { items: IndexMap::new(), open: IndexSet::new(), last: 0 }
    }
}

impl<K: Eq + Hash + Clone + Borrow<str> + fmt::Debug, D> ItemTable<K, D> {
    pub(super) fn get(&self, id: &str) -> Option<&ItemEntry<D>> {
        self.items.get(id)
    }

    pub(super) fn get_mut(&mut self, id: &K) -> Option<&mut ItemEntry<D>> {
        match self.items.get_index(self.last) {
            Some((last, _)) if last == id => {}
            _ => self.last = self.items.get_index_of(id)?,
        }
        self.items.get_index_mut(self.last).map(|(_, item)| item)
    }

    /// Opens an item. A closed one is reopened and keeps its owner.
    pub(super) fn open(&mut self, id: &K, owner: &Owner, details: impl FnOnce() -> D) {
        self.open.insert(id.clone());
        match self.get_mut(id) {
            Some(item) => item.open = true,
            None => {
                let item = ItemEntry { open: true, owner: owner.clone(), details: details() };
                self.last = self.items.insert_full(id.clone(), item).0;
            }
        }
    }

    /// Fails if the item is open or belongs to another owner, or if too many items are open.
    /// Returns the closed item with this id.
    pub(crate) fn check_start(
        &self,
        event: EventType,
        kind: &str,
        id: &K,
        subagent: &Owner,
    ) -> Result<Option<&ItemEntry<D>>, Violation> {
        if self.open.len() >= MAX_OPEN_ITEMS {
            return Err(Violation::new(
                event,
                format!("{MAX_OPEN_ITEMS} {kind}s are already open"),
            ));
        }
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

    pub(super) fn close(
        &mut self,
        event: EventType,
        kind: &str,
        id: &K,
        subagent: &Owner,
    ) -> Result<bool, Violation> {
        match self.get_mut(id) {
            Some(item) if item.open => {
                check_owner(event, kind, id, &item.owner, subagent)?;
                item.open = false;
                self.open.shift_remove(id);
                Ok(true)
            }
            _ => {
                tracing::debug!(
                    event = event.as_str(),
                    ?id,
                    "skipped an end event: the item is not open"
                );
                Ok(false)
            }
        }
    }

    /// Closes all open items, or those of one owner. Returns their ids and owners in the order they were opened.
    pub(crate) fn close_open(&mut self, of: Option<&Owner>) -> Vec<(K, Owner)> {
        let mut closed = Vec::new();
        self.open.retain(|id| {
            let Some(item) = self.items.get_mut(id) else { return false };
            let is_closed = of.is_none_or(|owner| *owner == item.owner);
            if is_closed {
                item.open = false;
                closed.push((id.clone(), item.owner.clone()));
            }
            !is_closed
        });
        closed
    }

    /// Closes an item if it is open. Returns its owner then.
    pub(crate) fn close_if_open(&mut self, id: &K) -> Option<Owner> {
        let item = self.get_mut(id).filter(|item| item.open)?;
        item.open = false;
        let owner = item.owner.clone();
        self.open.shift_remove(id);
        Some(owner)
    }

    pub(super) fn is_open(&self, id: &str) -> bool {
        self.items.get(id).is_some_and(|item| item.open)
    }

    /// Returns the open items with their owners, in the order they were opened.
    pub(super) fn open_items(&self) -> impl Iterator<Item = (&K, &Owner)> {
        let item = |id| self.items.get(id).map(|item: &ItemEntry<D>| (id, &item.owner));
        self.open.iter().filter_map(item)
    }

    pub(super) fn remove(&mut self, id: &str) {
        self.items.shift_remove(id);
        self.open.shift_remove(id);
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&K, &ItemEntry<D>)> {
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
            Err(Violation::new(
                event,
                format!("{kind} {id:?} belongs to {owner}, not to subagent {subagent:?}"),
            ))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use agui_protocol::MessageId;

    #[test]
    fn at_most_1024_items_of_a_kind_are_open() {
        let mut table = ItemTable::<MessageId, ()>::default();
        let event = EventType::TextMessageStart;
        let start = |table: &mut ItemTable<_, _>, n: usize| {
            let id = MessageId::from(n.to_string());
            let is_refused = table.check_start(event, "message", &id, &None).is_err();
            if !is_refused {
                table.open(&id, &None, || ());
            }
            !is_refused
        };
        assert!((0..MAX_OPEN_ITEMS).all(|n| start(&mut table, n)));
        assert!(!start(&mut table, MAX_OPEN_ITEMS));
        assert!(table.close(EventType::TextMessageEnd, "message", &"7".into(), &None).unwrap());
        assert!(start(&mut table, 7), "closed ones do not count");
        let closed = table.close_open(None);
        assert_eq!(
            (closed.len(), &*closed[0].0, &*closed[MAX_OPEN_ITEMS - 1].0),
            (MAX_OPEN_ITEMS, "0", "7")
        );
        assert!(start(&mut table, MAX_OPEN_ITEMS));
    }
}
