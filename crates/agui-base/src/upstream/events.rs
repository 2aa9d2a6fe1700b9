//! Reads Server-Sent Events of another server, within limits on silence and on memory.
//!
//! `sse-stream` parses the format but has no limits: a server that never ends a line would fill the
//! memory, and one that hangs would hold a run forever. [`StreamLimits`] are checked on the raw
//! bytes, before anything is buffered, so a comment or half an event also counts as activity.

use std::{
    sync::{
        Arc, LazyLock,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use async_stream::try_stream;
use bytes::Bytes;
use futures::{Stream, StreamExt as _, TryStreamExt as _, future, stream::BoxStream};
use reqwest::Response;
use sse_stream::{Sse, SseByteStream};
use tokio::time::{Instant, timeout_at};

use super::{
    bare_errors::BareErrors,
    body::{BodyError, pieces},
};
use crate::{
    deadline::deadline,
    permits::{Permit, Permits},
};

/// An event of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerEvent {
    /// The event's name, if it has one.
    pub name: Option<String>,
    /// The event's id, if it has one.
    pub id: Option<String>,
    /// The event's data.
    pub data: String,
    /// `true` if the stream ended before the event did. The data may be incomplete.
    pub is_cut_off: bool,
}

/// Limits on the stream of another server.
#[derive(Debug, Clone, Copy)]
pub struct StreamLimits {
    /// The largest event, in bytes, including field names and line ends.
    pub max_event_bytes: usize,
    /// The longest silence while the reader waits.
    pub idle_timeout: Duration,
}

/// An error after which a stream cannot be read any further.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StreamError {
    /// An event is larger than [`StreamLimits::max_event_bytes`].
    #[error("one event has more than {0} bytes")]
    TooLong(usize),
    /// The server sent nothing for [`StreamLimits::idle_timeout`].
    #[error("nothing came for {0:?}")]
    Silent(Duration),
    /// The connection broke.
    #[error("the connection broke")]
    Broken(#[source] BodyError),
    /// An event is not UTF-8.
    #[error("the text is not UTF-8")]
    NotUtf8,
    /// An event of more than 8 MiB waited for 30 s, because other large events of the same owner,
    /// or of all owners, are being read.
    #[error("too many large events are being read: one waited for {0:?}")]
    Busy(Duration),
    /// A frame of AWS is invalid.
    #[error("{0}")]
    Malformed(&'static str),
}

/// The events of a response.
pub type ServerEvents = BoxStream<'static, Result<ServerEvent, StreamError>>;

/// Reads the events of a response to an owner. Events without data are left out.
pub fn events(response: Response, limits: StreamLimits, owner: &Arc<str>) -> ServerEvents {
    parse(pieces(response), limits, LargeEvent::new(owner))
}

/// Reads the events of a model provider's response. An error as bare JSON becomes an event with the
/// name `error`.
pub fn provider_events(response: Response, limits: StreamLimits, owner: &Arc<str>) -> ServerEvents {
    let mut errors = BareErrors::new();
    let bytes = pieces(response).map(move |piece| piece.map(|piece| errors.rewrite(piece)));
    parse(bytes.boxed(), limits, LargeEvent::new(owner))
}

/// An event that is larger, such as a picture in base64, has to wait for [`LARGE_EVENTS`].
const LARGE_EVENT_BYTES: usize = 8 << 20;
/// The large events that are read at once. Each is about four times in memory until it is decoded. An owner has half of them.
const MAX_LARGE_EVENTS: usize = 4;
const LARGE_EVENT_TIMEOUT: Duration = Duration::from_secs(30);
static LARGE_EVENTS: LazyLock<Arc<Permits>> =
    LazyLock::new(|| Permits::new(MAX_LARGE_EVENTS, Some(MAX_LARGE_EVENTS / 2)));

/// The permit of the event that a stream is reading, which a large one needs.
pub(super) struct LargeEvent {
    owner: Arc<str>,
    permit: Option<Permit>,
}

impl LargeEvent {
    pub(super) fn new(owner: &Arc<str>) -> Self {
        Self { owner: owner.clone(), permit: None }
    }

    /// Waits for a permit if the event has more than 8 MiB, and gives one back otherwise.
    pub(super) async fn has_bytes(&mut self, bytes: usize) -> Result<(), StreamError> {
        if bytes <= LARGE_EVENT_BYTES {
            self.permit = None;
        } else if self.permit.is_none() {
            let permit = LARGE_EVENTS.take_within(LARGE_EVENT_TIMEOUT, &self.owner, 1).await;
            self.permit = Some(permit.map_err(|_| StreamError::Busy(LARGE_EVENT_TIMEOUT))?);
        }
        Ok(())
    }
}

/// The id that marks an event which the end of the stream cut off. Servers do not use it.
const CUT_OFF_ID: &str = "agui-server: the stream ended here";

fn parse(
    bytes: BoxStream<'static, Result<Bytes, BodyError>>,
    limits: StreamLimits,
    large: LargeEvent,
) -> ServerEvents {
    let with_data = parse_raw(bytes, limits, large).try_filter_map(|event| {
        future::ok(event.data.map(|data| {
            let is_cut_off = event.id.as_deref() == Some(CUT_OFF_ID);
            ServerEvent {
                name: event.event,
                id: event.id.filter(|_| !is_cut_off),
                data,
                is_cut_off,
            }
        }))
    });
    with_data.boxed()
}

/// Reads the events of a response with all their fields, also those without data. An event that the end of the stream
/// cuts off is left out.
pub fn raw_events(
    response: Response,
    limits: StreamLimits,
    owner: &Arc<str>,
) -> impl Stream<Item = Result<Sse, StreamError>> + Send + use<> {
    parse_raw(pieces(response), limits, LargeEvent::new(owner))
        .try_filter(|event| future::ready(event.id.as_deref() != Some(CUT_OFF_ID)))
}

fn parse_raw(
    bytes: BoxStream<'static, Result<Bytes, BodyError>>,
    limits: StreamLimits,
    large: LargeEvent,
) -> impl Stream<Item = Result<Sse, StreamError>> + Send + 'static {
    let is_over = Arc::new(AtomicBool::new(false));
    SseByteStream::new(limited(bytes, limits, large, is_over.clone())).map(move |event| {
        event.map_err(|error| match error {
            sse_stream::Error::Body(fault) => match fault.downcast::<StreamError>() {
                Ok(fault) => *fault,
                Err(other) => StreamError::Broken(other),
            },
            _ if is_over.load(Ordering::Relaxed) => {
                StreamError::Broken("the stream ended within a character".into())
            }
            _ => StreamError::NotUtf8,
        })
    })
}

/// Returns the bytes of a stream, within the limits, and notes their end in `is_over`. An event that the end of the stream
/// cuts off gets an end, because some servers leave out the last empty line.
fn limited(
    mut bytes: BoxStream<'static, Result<Bytes, BodyError>>,
    StreamLimits { max_event_bytes, idle_timeout }: StreamLimits,
    mut large: LargeEvent,
    is_over: Arc<AtomicBool>,
) -> impl Stream<Item = Result<Bytes, StreamError>> + Send + 'static {
    try_stream! {
        let mut length = EventLength::default();
        loop {
            // The silence begins when the reader waits: a slow reader is not the server's silence.
            let next = timeout_at(deadline(Instant::now(), idle_timeout), bytes.next()).await;
            let next = next.map_err(|_| StreamError::Silent(idle_timeout))?;
            let Some(mut piece) = next.transpose().map_err(StreamError::Broken)? else { break };
            let within = length.read(&piece, max_event_bytes);
            large.has_bytes(length.bytes).await?;
            // The events before the one that is too long are read, wherever the pieces end.
            piece.truncate(within.unwrap_or(piece.len()));
            yield piece;
            if within.is_some() {
                Err::<(), _>(StreamError::TooLong(max_event_bytes))?;
            }
        }
        is_over.store(true, Ordering::Relaxed);
        if let Some(ending) = length.ending() {
            yield ending;
        }
    }
}

/// Counts the bytes since the last empty line, which ends an event.
#[derive(Default)]
struct EventLength {
    bytes: usize,
    in_line: bool,
    after_cr: bool,
}

impl EventLength {
    /// Counts the bytes of a piece. Returns the number of bytes before the limit if an event exceeds it.
    fn read(&mut self, piece: &[u8], limit: usize) -> Option<usize> {
        let mut at = 0;
        while let Some(&byte) = piece.get(at) {
            if std::mem::take(&mut self.after_cr) && byte == b'\n' {
                at += 1;
                continue;
            }
            // Looking at each byte was 4 % of the server's own CPU time of a token.
            let line_end = memchr::memchr2(b'\n', b'\r', &piece[at..]);
            let (text, length) = line_end
                .map_or((piece.len() - at, piece.len() - at), |length| (length, length + 1));
            if self.bytes + length > limit {
                return Some(at + limit - self.bytes);
            }
            self.bytes += length;
            self.in_line |= text > 0;
            at += length;
            if line_end.is_some() {
                self.after_cr = piece[at - 1] == b'\r';
                if !std::mem::take(&mut self.in_line) {
                    self.bytes = 0;
                }
            }
        }
        None
    }

    fn ending(&self) -> Option<Bytes> {
        // Without an open line, another line end would end the event before its id.
        let end_of_line = if self.in_line { "\n" } else { "" };
        (self.bytes > 0).then(|| format!("{end_of_line}id: {CUT_OFF_ID}\n\n").into())
    }
}

#[cfg(test)]
mod tests;
