//! Events as bytes: Server-Sent Events, length-prefixed protobuf frames, or the events of another dialect.
//!
//! An encoder appends to the buffer that is sent, so an event is written once and never copied.

mod accept;
mod client_traits;
mod downgrade;
mod proto;
mod sse;
mod thinking;

use std::{fmt, io::Write as _};

pub use client_traits::{ClientTraits, ReasoningEvents, StreamVersion};
pub use downgrade::content_in_words;
pub use proto::Proto;
pub use sse::Sse;
pub use sse::write_string;

use crate::Event;

/// The media type of Server-Sent Events.
pub const SSE_MEDIA_TYPE: &str = "text/event-stream";
/// The media type of AG-UI's protobuf frames.
pub const PROTO_MEDIA_TYPE: &str = "application/vnd.ag-ui.event+proto";

/// Writes the events of one run as Server-Sent Events of another form than AG-UI's.
pub trait SseDialect: fmt::Debug + Send {
    /// Appends the frames of an event, or nothing if the dialect has no form for it.
    fn event(&mut self, event: &Event, out: &mut Vec<u8>);

    /// Appends the number of the event that is appended next. Most dialects have no place for it.
    fn number(&mut self, _number: u64, _out: &mut Vec<u8>) {}

    /// Reads an event that the client has, on which later events can depend.
    fn skip(&mut self, _event: &Event) {}
}

/// Writes the events of one run.
#[derive(Debug)]
#[non_exhaustive]
pub enum Encoder {
    /// Server-Sent Events, one JSON object each.
    Sse(Sse),
    /// Protobuf frames.
    Proto(Proto),
    /// The events of a dialect that has endpoints of its own.
    Dialect(Box<dyn SseDialect>),
}

impl Encoder {
    /// Returns the encoder for a client with these `Accept` headers.
    ///
    /// A client gets protobuf only if it names the media type. AG-UI's binding also allows it for a wildcard, but `curl`
    /// and browsers send `*/*` and cannot show protobuf.
    ///
    /// ```
    /// use agui_protocol::encode::Encoder;
    /// let media_type = |accept: &str| Encoder::negotiate([accept]).media_type();
    /// assert_eq!(media_type("*/*"), "text/event-stream");
    /// assert_eq!(media_type("application/vnd.ag-ui.event+proto"), "application/vnd.ag-ui.event+proto");
    /// assert_eq!(media_type("application/vnd.ag-ui.event+proto;q=0, */*"), "text/event-stream");
    /// ```
    pub fn negotiate<'a>(accept: impl IntoIterator<Item = &'a str>) -> Self {
        if accept.into_iter().any(|header| accept::names_media_type(header, PROTO_MEDIA_TYPE)) {
            Self::Proto(Proto::default())
        } else {
            Self::Sse(Sse::default())
        }
    }

    /// Returns the encoder for a client with these traits. Dialects have traits of their own.
    #[must_use]
    pub fn for_client(mut self, traits: ClientTraits) -> Self {
        match &mut self {
            Self::Sse(sse) => *sse = Sse::for_client(traits),
            Self::Proto(proto) => proto.traits = traits,
            Self::Dialect(_) => {}
        }
        self
    }

    /// Returns the media type of the bytes.
    pub fn media_type(&self) -> &'static str {
        match self {
            Self::Sse(_) | Self::Dialect(_) => SSE_MEDIA_TYPE,
            Self::Proto(_) => PROTO_MEDIA_TYPE,
        }
    }

    /// Appends an event.
    pub fn event(&mut self, event: &Event, out: &mut Vec<u8>) {
        match self {
            Self::Sse(sse) => sse.event(event, out),
            Self::Proto(proto) => proto.event(event, out),
            Self::Dialect(dialect) => dialect.event(event, out),
        }
    }

    /// Appends the number of the event that is appended next, with which a client reconnects: the `id:` line of
    /// Server-Sent Events. Protobuf frames have no place for it, so nothing is appended.
    pub fn number(&mut self, number: u64, out: &mut Vec<u8>) {
        match self {
            Self::Sse(_) => write_number(number, out),
            Self::Proto(_) => {}
            Self::Dialect(dialect) => dialect.number(number, out),
        }
    }

    /// Reads an event of a run's log that the client has: later events of a dialect can depend on it.
    pub fn skip(&mut self, json: &str) {
        if let Self::Dialect(dialect) = self
            && let Ok(event) = serde_json::from_str(json)
        {
            dialect.skip(&event);
        }
    }

    /// Appends an event of a run's log, which is one line of JSON.
    pub fn line(&mut self, json: &str, out: &mut Vec<u8>) {
        match self {
            Self::Sse(sse) => sse.line(json, out),
            Self::Proto(_) | Self::Dialect(_) => match serde_json::from_str(json) {
                Ok(event) => self.event(&event, out),
                Err(error) => {
                    tracing::error!(%error, "left out an event of a run's log that is not valid")
                }
            },
        }
    }

    /// Appends a keep-alive comment, which clients ignore. Protobuf frames have no comments, so nothing is appended.
    pub fn heartbeat(&self, out: &mut Vec<u8>) {
        if let Self::Sse(_) | Self::Dialect(_) = self {
            out.extend_from_slice(b": keep-alive\n\n");
        }
    }
}

pub fn write_number(number: u64, out: &mut Vec<u8>) {
    // Writing to memory cannot fail.
    let _ = writeln!(out, "id: {number}");
}
