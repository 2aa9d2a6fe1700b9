//! JSON Patch, applied: all of it or nothing.

use json_patch::{AddOperation, CopyOperation, MoveOperation, RemoveOperation, ReplaceOperation, TestOperation};
use serde_json::Value;

use crate::protocol::PatchOperation;

/// Why a patch did not apply.
#[derive(Debug, thiserror::Error)]
pub(super) enum PatchFault {
    #[error("a pointer is malformed: {0}")]
    Pointer(#[from] json_patch::jsonptr::ParseError),
    #[error(transparent)]
    Apply(#[from] json_patch::PatchError),
}

/// Applies a patch. A document that a fault left half-patched is restored.
pub(super) fn apply(document: &mut Value, patch: &[PatchOperation]) -> Result<(), PatchFault> {
    let operations: Vec<_> = patch.iter().map(operation).collect::<Result<_, _>>()?;
    Ok(json_patch::patch(document, &operations)?)
}

fn operation(operation: &PatchOperation) -> Result<json_patch::PatchOperation, PatchFault> {
    use json_patch::PatchOperation as Op;
    Ok(match operation {
        PatchOperation::Add { path, value } => Op::Add(AddOperation { path: path.parse()?, value: value.clone() }),
        PatchOperation::Remove { path } => Op::Remove(RemoveOperation { path: path.parse()? }),
        PatchOperation::Replace { path, value } => {
            Op::Replace(ReplaceOperation { path: path.parse()?, value: value.clone() })
        }
        PatchOperation::Move { from, path } => Op::Move(MoveOperation { from: from.parse()?, path: path.parse()? }),
        PatchOperation::Copy { from, path } => Op::Copy(CopyOperation { from: from.parse()?, path: path.parse()? }),
        PatchOperation::Test { path, value } => Op::Test(TestOperation { path: path.parse()?, value: value.clone() }),
    })
}
