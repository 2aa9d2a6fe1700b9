//! JSON Patch: a patch applies as a whole or not at all, can be undone, and gives the result of another implementation.
#![no_main]

use agui_protocol::{
    PatchKind, PatchOperation,
    patch::{apply, is_pointer},
};
use agui_server_fuzz::{Choices, amplified, bounded};
use libfuzzer_sys::fuzz_target;
use serde_json::Value;

/// The server bounds the cost of a patch by a constant, about half a second: as much as this number of bytes may take.
const COST_OF_PATCH: usize = 512 << 10;

fuzz_target!(|data: &[u8]| {
    let bytes = amplified(data);
    let mut choices = Choices::new(&bytes);
    let document = choices.json(4);
    let mut patch = Vec::new();
    while !choices.is_empty() {
        patch.push(operation(&mut choices));
    }
    let text = document.to_string();
    let applied = bounded(COST_OF_PATCH + bytes.len(), || {
        let mut result = document.clone();
        let changes = apply(&mut result, &patch).map(|changes| {
            let mut undone = result.clone();
            changes.undo(&mut undone);
            undone
        });
        (result, changes)
    });
    let (result, undone) = applied;
    match &undone {
        Ok(undone) => assert_eq!(undone.to_string(), text, "undoing {patch:?} restores the document"),
        Err(_) => assert_eq!(result.to_string(), text, "{patch:?} failed, and changed the document"),
    }
    compare(&document, &patch, undone.is_ok().then_some(&result));
});

fn operation(choices: &mut Choices<'_>) -> PatchOperation {
    let path = choices.pointer();
    match choices.below(6) {
        0 => PatchOperation::add(path, choices.json(2)),
        1 => PatchOperation::remove(path),
        2 => PatchOperation::replace(path, choices.json(2)),
        3 => PatchKind::Move { from: choices.pointer(), path }.into(),
        4 => PatchKind::Copy { from: choices.pointer(), path }.into(),
        _ => PatchKind::Test { path, value: choices.json(2) }.into(),
    }
}

/// The crate `json-patch` follows RFC 6902. A patch that it applies has the same result here, except where this server
/// follows the reference client: names that change prototypes are refused, removing the root leaves `null`.
fn compare(document: &Value, patch: &[PatchOperation], result: Option<&Value>) {
    let pointers =
        || patch.iter().flat_map(|operation| [Some(operation.pointers().0), operation.pointers().1]).flatten();
    let is_special = |pointer: &str| pointer.is_empty() || !is_pointer(pointer) || pointer.contains("proto");
    // Documents that grow beyond the limits are refused.
    if patch.len() > 20 || pointers().any(is_special) {
        return;
    }
    let json = serde_json::to_value(patch).expect("a patch can be written");
    let other: json_patch::Patch = serde_json::from_value(json).expect("a patch of the standard");
    let mut expected = document.clone();
    if json_patch::patch(&mut expected, &other).is_ok() {
        assert_eq!(result, Some(&expected), "{document} patched by {patch:?}");
    }
}
