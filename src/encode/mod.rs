//! Events as bytes: Server-Sent Events, length-prefixed protobuf frames, or the named events of the guide's dialect.
//!
//! An encoder appends to a buffer that whoever sends it owns, so that an event is written once and
//! never copied. Which one a client gets is decided by its `Accept` header, in [`Encoder::negotiate`].

mod accept;
mod guide;
mod legacy;
mod proto;
mod sse;

pub use guide::Guide;
pub use proto::Proto;
pub use sse::Sse;

use crate::protocol::Event;

/// The media type of Server-Sent Events.
pub const SSE_MEDIA_TYPE: &str = "text/event-stream";
/// The media type of AG-UI's binary wire.
pub const PROTO_MEDIA_TYPE: &str = "application/vnd.ag-ui.event+proto";

/// Writes the events of one run.
#[derive(Debug)]
pub enum Encoder {
    /// Server-Sent Events, one JSON object each.
    Sse(Sse),
    /// Protobuf frames.
    Proto(Proto),
    /// The guide's named events. No `Accept` asks for them: they belong to routes of their own.
    Guide(Box<Guide>),
}

impl Encoder {
    /// The encoder for a client that accepts these types.
    ///
    /// Protobuf has to be named. AG-UI's binding would also read it into a wildcard, but a bare `*/*`
    /// is what `curl` and browsers send, and those cannot show it.
    ///
    /// ```
    /// use agui_server::encode::Encoder;
    /// let media_type = |accept: &str| Encoder::negotiate([accept]).media_type();
    /// assert_eq!(media_type("*/*"), "text/event-stream");
    /// assert_eq!(media_type("application/vnd.ag-ui.event+proto"), "application/vnd.ag-ui.event+proto");
    /// assert_eq!(media_type("application/vnd.ag-ui.event+proto;q=0, */*"), "text/event-stream");
    /// ```
    pub fn negotiate<'a>(accept: impl IntoIterator<Item = &'a str>) -> Self {
        if accept.into_iter().any(|header| accept::names(header, PROTO_MEDIA_TYPE)) {
            Self::Proto(Proto)
        } else {
            Self::Sse(Sse::default())
        }
    }

    /// The same, for a client from before AG-UI 1.0. None of those takes protobuf.
    pub fn for_legacy_client(mut self) -> Self {
        if let Self::Sse(sse) = &mut self {
            sse.legacy = true;
        }
        self
    }

    /// The media type of what is written.
    pub fn media_type(&self) -> &'static str {
        match self {
            Self::Sse(_) | Self::Guide(_) => SSE_MEDIA_TYPE,
            Self::Proto(_) => PROTO_MEDIA_TYPE,
        }
    }

    /// Appends an event.
    pub fn event(&mut self, event: &Event, out: &mut Vec<u8>) {
        match self {
            Self::Sse(sse) => sse.event(event, out),
            Self::Proto(proto) => proto.event(event, out),
            Self::Guide(guide) => guide.event(event, out),
        }
    }

    /// Appends an event that is one line of JSON already, as in a run's log; with its number as the cursor that a
    /// browser's `EventSource` comes back with, if there is one. Only AG-UI's own events have cursors.
    pub fn line(&mut self, json: &str, cursor: Option<u64>, out: &mut Vec<u8>) {
        match self {
            Self::Sse(sse) => {
                if let Some(cursor) = cursor {
                    out.extend_from_slice(b"id: ");
                    out.extend_from_slice(cursor.to_string().as_bytes());
                    out.push(b'\n');
                }
                if sse.legacy
                    && let Some(event) = legacy::line(json)
                {
                    return sse.event(&event, out);
                }
                out.extend_from_slice(b"data: ");
                out.extend_from_slice(json.as_bytes());
                out.extend_from_slice(b"\n\n");
            }
            Self::Proto(_) | Self::Guide(_) => match serde_json::from_str(json) {
                Ok(event) => self.event(&event, out),
                Err(error) => tracing::error!(%error, "an event of a log cannot be read"),
            },
        }
    }

    /// Appends a sign of life that no client takes for an event. The binary wire has none.
    pub fn heartbeat(&self, out: &mut Vec<u8>) {
        if let Self::Sse(_) | Self::Guide(_) = self {
            out.extend_from_slice(b": keep-alive\n\n");
        }
    }
}
