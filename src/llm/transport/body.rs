//! Reads an answer: bytes become events, within limits on silence and on memory.
//!
//! The parser of events buffers a line for as long as it does not end, and an event for as long as no blank line
//! comes. So the bytes are counted before it sees them.

use std::time::Duration;

use bytes::Bytes;
use futures::{Stream, StreamExt, stream::BoxStream};
use reqwest::Response;
use sse_stream::SseByteStream;

/// One event of the answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Event {
    /// Its name, if it has one.
    pub(super) name: Option<String>,
    /// Its data.
    pub(super) data: String,
    /// Whether the stream ended before the event did: it may be a part of one.
    pub(super) last: bool,
}

/// Why an answer cannot be read on.
#[derive(Debug, thiserror::Error)]
pub(super) enum BodyFault {
    #[error("nothing came for {0:?}")]
    Silent(Duration),
    #[error("one event has more than {0} bytes")]
    Endless(usize),
    #[error("the text is not UTF-8")]
    NotText,
    #[error("the connection broke")]
    Broken(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// The events of an answer.
pub(super) fn events(response: Response, idle: Duration, most: usize) -> BoxStream<'static, Result<Event, BodyFault>> {
    let bytes =
        response.bytes_stream().map(|chunk| chunk.map_err(|error| BodyFault::Broken(error.without_url().into())));
    parse(bytes, idle, most).boxed()
}

fn parse(
    bytes: impl Stream<Item = Result<Bytes, BodyFault>> + Send + 'static,
    idle: Duration,
    most: usize,
) -> impl Stream<Item = Result<Event, BodyFault>> + Send {
    async_stream::stream! {
        let mut events = SseByteStream::new(Box::pin(within(bytes, idle, most)));
        while let Some(event) = events.next().await {
            match event {
                Ok(event) => if let Some(data) = event.data {
                    let last = event.id.as_deref() == Some(LAST);
                    yield Ok(Event { name: event.event, data, last });
                }
                Err(sse_stream::Error::Body(error)) => {
                    yield Err(error.downcast::<BodyFault>().map_or_else(BodyFault::Broken, |fault| *fault));
                }
                Err(_) => yield Err(BodyFault::NotText),
            }
        }
    }
}

/// The id that an event is given which the end of the stream ends. No provider's is like it.
const LAST: &str = "agui-server: the stream ended here";

/// The same bytes, as long as they keep within the limits. An event that the end of the stream cut off is ended:
/// some servers leave out the last blank line.
fn within(
    bytes: impl Stream<Item = Result<Bytes, BodyFault>> + Send + 'static,
    idle: Duration,
    most: usize,
) -> impl Stream<Item = Result<Bytes, BodyFault>> + Send {
    async_stream::stream! {
        let mut bytes = std::pin::pin!(bytes);
        let mut lines = Lines::default();
        loop {
            let chunk = match tokio::time::timeout(idle, bytes.next()).await {
                Ok(Some(Ok(chunk))) => chunk,
                Ok(Some(Err(fault))) => {
                    yield Err(fault);
                    return;
                }
                Ok(None) => break,
                Err(_) => {
                    yield Err(BodyFault::Silent(idle));
                    return;
                }
            };
            if lines.count(&chunk) > most {
                yield Err(BodyFault::Endless(most));
                return;
            }
            yield Ok(chunk);
        }
        if lines.since > 0 {
            // A line end more would end the event before it has the id.
            let end_of_line = if lines.written { "\n" } else { "" };
            yield Ok(format!("{end_of_line}id: {LAST}\n\n").into());
        }
    }
}

/// Counts the bytes since the last blank line.
#[derive(Default)]
struct Lines {
    since: usize,
    /// Whether there is something on this line.
    written: bool,
    /// Whether the last byte was a CR, to which a LF belongs.
    cr: bool,
}

impl Lines {
    /// The most that there were at once.
    fn count(&mut self, chunk: &[u8]) -> usize {
        let mut most = 0;
        for &byte in chunk {
            if byte == b'\n' && self.cr {
                self.cr = false;
                continue;
            }
            self.cr = byte == b'\r';
            self.since += 1;
            most = most.max(self.since);
            if byte != b'\n' && byte != b'\r' {
                self.written = true;
            } else {
                if !self.written {
                    self.since = 0;
                }
                self.written = false;
            }
        }
        most
    }
}

#[cfg(test)]
mod tests;
