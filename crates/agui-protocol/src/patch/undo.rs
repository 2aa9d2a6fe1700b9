//! Undoes a patch.

use std::borrow::Cow;

use serde_json::Value;

use super::pointer::{Indices, find};

/// The changes that a patch has made to a document, for undoing them.
#[derive(Debug)]
#[must_use]
pub struct AppliedPatch<'p>(pub(super) Vec<Change<'p>>);

impl AppliedPatch<'_> {
    /// Restores the document as it was before the patch.
    pub fn undo(self, document: &mut Value) {
        for Change { place, undo } in self.0.into_iter().rev() {
            match (find(document, place, Indices::Lenient), undo) {
                (Some(value), Undo::Replace(before)) => *value = before,
                (Some(Value::Array(list)), Undo::RemoveItem(index)) => drop(list.remove(index)),
                (Some(Value::Array(list)), Undo::InsertItem(index, before)) => {
                    list.insert(index, before)
                }
                (Some(Value::Object(object)), Undo::RemoveMember(name)) => {
                    drop(object.shift_remove(&*name))
                }
                (Some(Value::Object(object)), Undo::InsertMember(index, name, before)) => {
                    object.shift_insert(index, name.into_owned(), before);
                }
                // The document is as the patch has left it, so the place exists.
                _ => {}
            }
        }
    }
}

/// The change of one operation.
#[derive(Debug)]
pub(super) struct Change<'p> {
    /// The JSON Pointer of the replaced value, or of the parent of the others.
    pub(super) place: &'p str,
    pub(super) undo: Undo<'p>,
}

/// The way to undo a change.
#[derive(Debug)]
pub(super) enum Undo<'p> {
    Replace(Value),
    RemoveItem(usize),
    RemoveMember(Cow<'p, str>),
    InsertItem(usize, Value),
    InsertMember(usize, Cow<'p, str>, Value),
}
