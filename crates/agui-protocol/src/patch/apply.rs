//! Applies a JSON Patch, as a whole or not at all.
//!
//! The result is that of the reference client (fast-json-patch 3, validating), also where it is more lenient than RFC
//! 6902: `move` and `copy` past the end of a list append to it, and removing the root leaves `null`. In addition, depth and
//! size are bounded: a `copy` of a few bytes can double a document or nest it one level deeper.

use serde_json::Value;

use super::{
    PatchKind, PatchOperation,
    pointer::{Indices, find, is_banned, split},
    undo::{AppliedPatch, Change, Undo},
};
use crate::open_values::memory;

/// Maximum depth of a patched document, about the maximum of an input.
const MAX_DEPTH: usize = 128;
/// Maximum memory of a document after a `copy`, and of what a patch moves, in bytes as [`memory`] estimates them.
const MAX_MEMORY: u64 = 32 * 1024 * 1024;
/// Maximum cost of a patch, about 0.5 seconds: a `move` of 60 bytes copies a part of the document, and a `remove` at the
/// beginning of a list moves all its other items.
const MAX_COST: usize = 64 * 1024 * 1024;

/// The operation that did not apply, and the reason.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("operation {index} of the patch: {problem}")]
pub struct PatchError {
    index: usize,
    problem: PatchProblem,
}

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
enum PatchProblem {
    #[error("no value at {0:?}")]
    NoValue(String),
    #[error("a value cannot be added at {0:?}")]
    NoParent(String),
    #[error("the value at {0:?} is not the expected one")]
    Different(String),
    #[error("the document would be nested too deeply at {0:?}")]
    TooDeep(String),
    #[error("the document would be too large after this copy")]
    TooLarge,
    #[error(
        "too much of the document would be moved and copied; send smaller patches, or a snapshot"
    )]
    TooCostly,
}

/// Applies a patch.
///
/// # Errors
/// If an operation does not apply. The document is then unchanged.
///
/// ```
/// use agui_protocol::{PatchOperation, patch::apply};
/// let mut state = serde_json::json!({ "steps": [] });
/// let patch = [PatchOperation::add("/steps/-", "search")];
/// let changes = apply(&mut state, &patch).unwrap();
/// assert_eq!(state["steps"][0], "search");
/// changes.undo(&mut state);
/// assert_eq!(state["steps"], serde_json::json!([]));
/// ```
pub fn apply<'p>(
    document: &mut Value,
    patch: &'p [PatchOperation],
) -> Result<AppliedPatch<'p>, PatchError> {
    apply_within(document, patch, &mut { MAX_COST })
}

/// Applies a patch and subtracts its cost from a budget for several patches: the bytes of moved and copied values, and the
/// items and members whose places change. If the budget or the limit of one patch is exceeded, the patch fails.
///
/// # Errors
/// If an operation does not apply. The document is then unchanged.
pub fn apply_within<'p>(
    document: &mut Value,
    patch: &'p [PatchOperation],
    budget: &mut usize,
) -> Result<AppliedPatch<'p>, PatchError> {
    let limit = MAX_COST.min(*budget);
    let mut patcher = Patcher {
        document,
        changes: Vec::new(),
        space: None,
        undo_space: MAX_MEMORY,
        cost_left: limit,
    };
    let failed = patch.iter().enumerate().find_map(|(index, operation)| {
        patcher.apply(operation).err().map(|problem| PatchError { index, problem })
    });
    let Patcher { document, changes, cost_left, .. } = patcher;
    let is_too_costly =
        failed.as_ref().is_some_and(|error| error.problem == PatchProblem::TooCostly);
    *budget -= if is_too_costly { limit } else { limit - cost_left };
    let applied = AppliedPatch(changes);
    match failed {
        None => Ok(applied),
        Some(error) => {
            applied.undo(document);
            Err(error)
        }
    }
}

struct Patcher<'d, 'p> {
    document: &'d mut Value,
    changes: Vec<Change<'p>>,
    /// Bytes of memory that copies may still take; determined at the first `copy`.
    space: Option<u64>,
    /// Bytes of memory that may still be moved; moved values are kept.
    undo_space: u64,
    cost_left: usize,
}

impl<'p> Patcher<'_, 'p> {
    fn charge(&mut self, cost: usize) -> Result<(), PatchProblem> {
        self.cost_left = self.cost_left.checked_sub(cost).ok_or(PatchProblem::TooCostly)?;
        Ok(())
    }

    fn apply(&mut self, operation: &'p PatchOperation) -> Result<(), PatchProblem> {
        self.charge(1)?;
        match &operation.kind {
            PatchKind::Add { path, value } => self.put(path, value.clone(), true),
            PatchKind::Remove { path } => self.remove(path),
            PatchKind::Replace { path, value } => self.replace(path, value.clone()),
            PatchKind::Move { from, path } => {
                let value = self.existing(from)?.clone();
                self.charge(size(&value))?;
                self.undo_space =
                    self.undo_space.checked_sub(memory(&value)).ok_or(PatchProblem::TooCostly)?;
                self.remove(from)?;
                self.put(path, value, false)
            }
            PatchKind::Copy { from, path } => {
                let space = match self.space {
                    Some(space) => space,
                    None => {
                        let size = size(self.document);
                        self.charge(size)?;
                        MAX_MEMORY.saturating_sub(memory(self.document))
                    }
                };
                let value = self.existing(from)?.clone();
                self.charge(size(&value))?;
                self.space = Some(space.checked_sub(memory(&value)).ok_or(PatchProblem::TooLarge)?);
                self.put(path, value, false)
            }
            PatchKind::Test { path, value } => match find(self.document, path, Indices::Lenient) {
                Some(found) if equal(found, value) => Ok(()),
                _ => Err(PatchProblem::Different(path.clone())),
            },
        }
    }

    fn existing(&mut self, pointer: &str) -> Result<&mut Value, PatchProblem> {
        find(self.document, pointer, Indices::Exact)
            .ok_or_else(|| PatchProblem::NoValue(pointer.to_owned()))
    }

    fn replace(&mut self, pointer: &'p str, value: Value) -> Result<(), PatchProblem> {
        check_depth(pointer, &value)?;
        let before = std::mem::replace(self.existing(pointer)?, value);
        self.changes.push(Change { place: pointer, undo: Undo::Replace(before) });
        Ok(())
    }

    /// Adds a value to a list or sets a member; `strict` applies the rules of RFC 6902.
    fn put(&mut self, pointer: &'p str, value: Value, strict: bool) -> Result<(), PatchProblem> {
        let Some((parent, name)) = split(pointer) else { return self.replace(pointer, value) };
        check_depth(pointer, &value)?;
        let indices = if strict { Indices::Exact } else { Indices::Lenient };
        match find(self.document, parent, indices) {
            Some(Value::Array(list)) => {
                let index = match Indices::Lenient.read(&name, list.len()) {
                    Some(index) if index <= list.len() => index,
                    Some(_) if !strict => list.len(),
                    _ => return Err(PatchProblem::NoParent(pointer.to_owned())),
                };
                self.cost_left = self
                    .cost_left
                    .checked_sub(list.len() - index)
                    .ok_or(PatchProblem::TooCostly)?;
                list.insert(index, value);
                self.changes.push(Change { place: parent, undo: Undo::RemoveItem(index) });
            }
            Some(Value::Object(object)) if !is_banned(parent, &name) => {
                match object.get_mut(&*name) {
                    Some(member) => {
                        let before = std::mem::replace(member, value);
                        self.changes.push(Change { place: pointer, undo: Undo::Replace(before) });
                    }
                    None => {
                        object.insert(name.clone().into_owned(), value);
                        self.changes.push(Change { place: parent, undo: Undo::RemoveMember(name) });
                    }
                }
            }
            _ => return Err(PatchProblem::NoParent(pointer.to_owned())),
        }
        Ok(())
    }

    fn remove(&mut self, pointer: &'p str) -> Result<(), PatchProblem> {
        let Some((parent, name)) = split(pointer) else {
            return self.replace(pointer, Value::Null);
        };
        self.existing(pointer)?;
        match find(self.document, parent, Indices::Exact) {
            Some(Value::Array(list)) => {
                if let Some(index) = Indices::Exact.read(&name, list.len()) {
                    self.cost_left = self
                        .cost_left
                        .checked_sub(list.len() - index)
                        .ok_or(PatchProblem::TooCostly)?;
                    let before = list.remove(index);
                    self.changes
                        .push(Change { place: parent, undo: Undo::InsertItem(index, before) });
                }
            }
            Some(Value::Object(object)) => {
                self.cost_left =
                    self.cost_left.checked_sub(object.len()).ok_or(PatchProblem::TooCostly)?;
                let position = object.keys().position(|key| *key == name).unwrap_or_default();
                if let Some(before) = object.shift_remove(&*name) {
                    self.changes.push(Change {
                        place: parent,
                        undo: Undo::InsertMember(position, name, before),
                    });
                }
            }
            _ => {}
        }
        Ok(())
    }
}

fn check_depth(pointer: &str, value: &Value) -> Result<(), PatchProblem> {
    let above = pointer.bytes().filter(|byte| *byte == b'/').count();
    if above + depth(value) > MAX_DEPTH {
        Err(PatchProblem::TooDeep(pointer.to_owned()))
    } else {
        Ok(())
    }
}

fn depth(value: &Value) -> usize {
    match value {
        Value::Array(list) => 1 + list.iter().map(depth).max().unwrap_or(0),
        Value::Object(object) => 1 + object.values().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}

fn size(value: &Value) -> usize {
    const OVERHEAD: usize = 8;
    OVERHEAD
        + match value {
            Value::Array(list) => list.iter().map(size).sum(),
            Value::Object(object) => {
                object.iter().map(|(name, value)| name.len() + size(value)).sum()
            }
            Value::String(text) => text.len(),
            _ => 0,
        }
}

/// Compares as the operation `test` does: `1` and `1.0` are equal.
fn equal(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => {
            one == other || one.as_f64() == other.as_f64()
        }
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| equal(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            one.len() == other.len()
                && one
                    .iter()
                    .all(|(name, value)| other.get(name).is_some_and(|other| equal(value, other)))
        }
        _ => one == other,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn patched(document: &Value, patch: Value) -> Result<Value, PatchError> {
        let patch: Vec<PatchOperation> = serde_json::from_value(patch).unwrap();
        let mut result = document.clone();
        let changes = apply(&mut result, &patch);
        // Undoing restores also the order of the members.
        let mut undone = result.clone();
        if let Ok(changes) = changes {
            changes.undo(&mut undone);
            assert_eq!(undone.to_string(), document.to_string(), "{patch:?}");
            return Ok(result);
        }
        assert_eq!(result.to_string(), document.to_string(), "{patch:?}");
        changes.map(|_| result)
    }

    #[test]
    fn a_patch_has_the_result_of_the_reference() {
        let document = json!({ "a": [1, 2, 3], "o": { "x": 1, "y": { "z": null } }, "n": 1, "a/b": 1, "m~n": 2 });
        for (patch, expected) in [
            (json!([{ "op": "add", "path": "/a/1", "value": 9 }]), json!([["a", [1, 9, 2, 3]]])),
            (json!([{ "op": "add", "path": "/a/-", "value": 9 }]), json!([["a", [1, 2, 3, 9]]])),
            (json!([{ "op": "add", "path": "/a/03", "value": 9 }]), json!([["a", [1, 2, 3, 9]]])),
            (
                json!([{ "op": "add", "path": "/o/x", "value": 9 }]),
                json!([["o", { "x": 9, "y": { "z": null } }]]),
            ),
            (json!([{ "op": "replace", "path": "/a/0", "value": 9 }]), json!([["a", [9, 2, 3]]])),
            (
                json!([{ "op": "replace", "path": "/o/y/z", "value": 0 }]),
                json!([["o", { "x": 1, "y": { "z": 0 } }]]),
            ),
            (json!([{ "op": "remove", "path": "/a/0" }]), json!([["a", [2, 3]]])),
            (json!([{ "op": "move", "from": "/a/0", "path": "/a/2" }]), json!([["a", [2, 3, 1]]])),
            (json!([{ "op": "move", "from": "/a/0", "path": "/a/3" }]), json!([["a", [2, 3, 1]]])),
            (
                json!([{ "op": "copy", "from": "/a/0", "path": "/a/7" }]),
                json!([["a", [1, 2, 3, 1]]]),
            ),
            (json!([{ "op": "replace", "path": "/a~1b", "value": 5 }]), json!([["a/b", 5]])),
            (json!([{ "op": "replace", "path": "/m~0n", "value": 5 }]), json!([["m~n", 5]])),
            (json!([{ "op": "test", "path": "/n", "value": 1.0 }]), json!([])),
            (json!([{ "op": "test", "path": "/a", "value": [1.0, 2, 3] }]), json!([])),
            (
                json!([{ "op": "test", "path": "/o", "value": { "y": { "z": null }, "x": 1 } }]),
                json!([]),
            ),
        ] {
            let result = patched(&document, patch.clone())
                .unwrap_or_else(|error| panic!("{patch}: {error}"));
            let mut expectation = document.clone();
            for change in expected.as_array().unwrap() {
                expectation[change[0].as_str().unwrap()] = change[1].clone();
            }
            assert_eq!(result, expectation, "{patch}");
        }
        let root = |patch| patched(&document, patch).unwrap();
        assert_eq!(root(json!([{ "op": "remove", "path": "" }])), json!(null));
        assert_eq!(
            root(json!([{ "op": "remove", "path": "" }, { "op": "add", "path": "", "value": [] }])),
            json!([])
        );
        assert_eq!(
            root(json!([{ "op": "move", "from": "/o/y", "path": "" }])),
            json!({ "z": null })
        );
        // A moved member comes last, also if it is moved to its own place.
        let moved = root(json!([{ "op": "move", "from": "/o/x", "path": "/o/x" }]));
        assert_eq!(moved["o"].to_string(), r#"{"y":{"z":null},"x":1}"#);
    }

    #[test]
    fn a_patch_that_does_not_apply_changes_nothing() {
        let document = json!({ "a": [1, 2, 3], "n": 1, "o": { "x": null }, "text": "t" });
        for (operation, problem) in [
            (
                json!({ "op": "move", "from": "/n", "path": "/missing/n" }),
                r#"a value cannot be added at "/missing/n""#,
            ),
            (
                json!({ "op": "move", "from": "", "path": "/n" }),
                r#"a value cannot be added at "/n""#,
            ),
            (
                json!({ "op": "add", "path": "/a/4", "value": 0 }),
                r#"a value cannot be added at "/a/4""#,
            ),
            (
                json!({ "op": "add", "path": "/a/x", "value": 0 }),
                r#"a value cannot be added at "/a/x""#,
            ),
            (
                json!({ "op": "add", "path": "/text/0", "value": 0 }),
                r#"a value cannot be added at "/text/0""#,
            ),
            (
                json!({ "op": "add", "path": "/__proto__", "value": 0 }),
                r#"a value cannot be added at "/__proto__""#,
            ),
            (json!({ "op": "remove", "path": "/a/3" }), r#"no value at "/a/3""#),
            (json!({ "op": "remove", "path": "/a/00" }), r#"no value at "/a/00""#),
            (json!({ "op": "replace", "path": "/a/-", "value": 0 }), r#"no value at "/a/-""#),
            (json!({ "op": "replace", "path": "/o/y", "value": 0 }), r#"no value at "/o/y""#),
            (json!({ "op": "copy", "from": "/o/y", "path": "/b" }), r#"no value at "/o/y""#),
            (
                json!({ "op": "test", "path": "/o/y", "value": null }),
                r#"the value at "/o/y" is not the expected one"#,
            ),
            (
                json!({ "op": "test", "path": "/n", "value": "1" }),
                r#"the value at "/n" is not the expected one"#,
            ),
        ] {
            let before = json!({ "op": "remove", "path": "/o" });
            let after = json!({ "op": "add", "path": "/o", "value": { "x": null } });
            // Alone, and after changes that have to be undone.
            let error = patched(&document, json!([operation])).unwrap_err();
            assert_eq!(error.to_string(), format!("operation 0 of the patch: {problem}"));
            let error = patched(&document, json!([before, after, operation])).unwrap_err();
            assert_eq!(error.to_string(), format!("operation 2 of the patch: {problem}"));
        }
    }

    #[test]
    fn copies_and_moves_are_bounded_by_their_memory() {
        let double = json!({ "op": "copy", "from": "/list", "path": "/list/-" });
        let move_to = |from: &str, path: &str| json!({ "op": "move", "from": from, "path": path });
        // The object takes about 60 times as much memory as JSON.
        for item in [json!("x".repeat(1000)), json!({ "a": {} })] {
            let mut document = json!({ "list": [item] });
            let error = patched(&document, Value::Array(vec![double.clone(); 64])).unwrap_err();
            assert_eq!(error.problem, PatchProblem::TooLarge);
            // Also over several patches.
            let patch: Vec<PatchOperation> = serde_json::from_value(json!([double])).unwrap();
            while apply(&mut document, &patch).is_ok() {
                assert!(memory(&document) <= MAX_MEMORY);
            }
            let (there, back) = (move_to("/list", "/other"), move_to("/other", "/list"));
            let error = patched(&document, json!([there, back, there, back])).unwrap_err();
            assert_eq!(error.problem, PatchProblem::TooCostly);
        }
    }

    #[test]
    fn copies_are_bounded_in_depth() {
        let mut document = json!({});
        let patch: Vec<PatchOperation> =
            serde_json::from_value(json!([{ "op": "copy", "from": "", "path": "/a" }])).unwrap();
        let error = (0..1000).find_map(|_| apply(&mut document, &patch).err()).unwrap();
        assert_eq!(error.problem, PatchProblem::TooDeep("/a".to_owned()));
        assert_eq!(depth(&document), MAX_DEPTH);
    }

    #[test]
    fn the_cost_of_a_patch_is_bounded_by_operations_and_size() {
        let numbers =
            json!({ "list": vec![0; 400_000], "object": {}, "text": "x".repeat(400_000) });
        for operation in [
            json!({ "op": "remove", "path": "/list/0" }),
            json!({ "op": "add", "path": "/list/0", "value": 1 }),
            json!({ "op": "move", "from": "/list/0", "path": "/list/0" }),
            json!({ "op": "move", "from": "/text", "path": "/text" }),
            json!({ "op": "copy", "from": "/text", "path": "/other" }),
        ] {
            let patch: Vec<PatchOperation> =
                serde_json::from_value(Value::Array(vec![operation.clone(); 200])).unwrap();
            let mut document = numbers.clone();
            let begin = std::time::Instant::now();
            let error = apply(&mut document, &patch).unwrap_err();
            assert!(
                matches!(error.problem, PatchProblem::TooCostly | PatchProblem::TooLarge),
                "{operation}: {error}"
            );
            assert!(begin.elapsed().as_secs() < 10, "{operation}");
            assert_eq!(document, numbers, "{operation}");
            // One operation is cheap, until the budget of all patches is spent.
            let mut budget = 10_000_000;
            let applied = (0..100)
                .take_while(|_| apply_within(&mut document, &patch[..1], &mut budget).is_ok())
                .count();
            assert!((1..50).contains(&applied) && budget == 0, "{operation}: {applied}");
        }
    }
}
