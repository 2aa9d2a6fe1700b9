//! Chunks as Server-Sent Events.

use serde::Serialize;
use serde_json::{Value, json};

use agui_protocol::encode::write_string;

pub(super) fn write(chunk: &impl Serialize, out: &mut Vec<u8>) {
    out.extend_from_slice(b"data: ");
    // Writing to memory cannot fail, and all chunks have a JSON form.
    let _ = serde_json::to_writer(&mut *out, chunk);
    out.extend_from_slice(b"\n\n");
}

/// Most chunks are deltas, so these are written without serde.
pub(super) fn write_delta(
    kind: &str,
    (id_name, id): (&str, &str),
    (name, text): (&str, &str),
    out: &mut Vec<u8>,
) {
    for piece in ["data: {\"type\":\"", kind, "\",\"", id_name, "\":"] {
        out.extend_from_slice(piece.as_bytes());
    }
    write_string(id, out);
    for piece in [",\"", name, "\":"] {
        out.extend_from_slice(piece.as_bytes());
    }
    write_string(text, out);
    out.extend_from_slice(b"}\n\n");
}

/// Writes data that are no part of the message.
pub(super) fn write_transient(name: &str, data: &Value, out: &mut Vec<u8>) {
    write(&json!({ "type": format!("data-{name}"), "data": data, "transient": true }), out);
}
