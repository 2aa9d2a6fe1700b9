//! One named event as a frame of Server-Sent Events: `event: <name>`, `data: {json}` and an empty line.

use serde::Serialize;

/// Returns the frame of an event.
///
/// ```
/// use agui_server::named_events::make_event;
/// let frame = make_event("status", &serde_json::json!({ "type": "run_started", "message": "hello" }));
/// assert_eq!(frame, "event: status\ndata: {\"type\":\"run_started\",\"message\":\"hello\"}\n\n");
/// ```
#[doc(alias = "_make_event")]
#[doc(alias = "make_ag_ui_event")]
pub fn make_event(name: &str, payload: &impl Serialize) -> String {
    let mut out = Vec::new();
    write_event(name, payload, &mut out);
    // JSON is UTF-8, and so is the name.
    String::from_utf8_lossy(&out).into_owned()
}

pub(super) fn write_event(name: &str, payload: &impl Serialize, out: &mut Vec<u8>) {
    let start = out.len();
    out.extend_from_slice(b"event: ");
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b"\ndata: ");
    match serde_json::to_writer(&mut *out, payload) {
        Ok(()) => out.extend_from_slice(b"\n\n"),
        Err(error) => {
            out.truncate(start);
            tracing::error!(%error, event = name, "left out an event that cannot be serialized");
        }
    }
}
