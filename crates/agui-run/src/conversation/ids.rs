//! The length of identifiers that clients choose.

use agui_protocol::Message;

const MAX_ID_BYTES: usize = 1024;

/// The place of an identifier that is too long.
pub(crate) struct LongId {
    pub path: String,
}

impl LongId {
    pub(crate) fn problem(&self) -> String {
        format!("longer than {MAX_ID_BYTES} bytes")
    }
}

pub(crate) fn check_id(id: &str, path: impl FnOnce() -> String) -> Result<(), LongId> {
    if id.len() <= MAX_ID_BYTES { Ok(()) } else { Err(LongId { path: path() }) }
}

/// Checks the id of a message, the ids of its calls, and the id of the call whose result it is.
pub(crate) fn check_message_ids(
    message: &Message,
    path: impl Fn() -> String,
) -> Result<(), LongId> {
    check_id(message.id(), || format!("{}.id", path()))?;
    for (at, call) in message.tool_calls().iter().enumerate() {
        check_id(&call.id, || format!("{}.toolCalls[{at}].id", path()))?;
    }
    match message {
        Message::Tool(result) => {
            check_id(&result.tool_call_id, || format!("{}.toolCallId", path()))
        }
        _ => Ok(()),
    }
}
