//! Server-Sent Events of another server, within limits on silence and on memory.
//!
//! `sse-stream` reads the format; what it does not do is to stop. A server that never ends a line would fill the
//! memory, and one that hangs would hold a run for ever. Both are watched for on the raw bytes, before anything is
//! buffered: a comment is a sign of life, too, and so is half an event.

use std::{
    error::Error as StdError,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::Bytes;
use futures::{Stream, StreamExt as _, future, stream::BoxStream};
use reqwest::Response;
use sse_stream::SseByteStream;
use tokio::time::{Instant, Sleep, sleep};

/// One event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerEvent {
    /// Its name, if it has one.
    pub name: Option<String>,
    /// Its data.
    pub data: String,
    /// Whether the stream ended before the event did: it may be a part of one.
    pub last: bool,
}

/// What is watched.
#[derive(Debug, Clone, Copy)]
pub struct Watch {
    /// The most bytes of one event, with everything that the format adds to it.
    pub max_event_bytes: usize,
    /// How long nothing may come, while somebody waits for it.
    pub idle: Duration,
}

/// Why a stream cannot be read on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StreamFault {
    /// An event is longer than it may be.
    #[error("one event has more than {0} bytes")]
    TooLong(usize),
    /// Nothing came for too long.
    #[error("nothing came for {0:?}")]
    Silent(Duration),
    /// The connection broke.
    #[error("the connection broke")]
    Broken(#[source] Box<dyn StdError + Send + Sync>),
    /// An event is no text.
    #[error("the text is not UTF-8")]
    NoText,
}

/// The events of an answer.
pub type ServerEvents = BoxStream<'static, Result<ServerEvent, StreamFault>>;

/// Reads the events of an answer. Those without data are left out.
pub fn events(response: Response, watch: Watch) -> ServerEvents {
    // The address may have a secret in it.
    parse(response.bytes_stream().map(|piece| piece.map_err(|error| error.without_url().into())).boxed(), watch)
}

type Fault = Box<dyn StdError + Send + Sync>;

/// The id that an event is given which the end of the stream ends. No server's is like it.
const LAST: &str = "agui-server: the stream ended here";

fn parse(bytes: BoxStream<'static, Result<Bytes, Fault>>, watch: Watch) -> ServerEvents {
    let silence = Box::pin(sleep(watch.idle));
    let watched = Watched { bytes, meter: Meter::default(), watch, silence, waiting: false, ended: false };
    let events = SseByteStream::new(watched).filter_map(|event| {
        future::ready(match event {
            Ok(event) => event
                .data
                .map(|data| Ok(ServerEvent { name: event.event, data, last: event.id.as_deref() == Some(LAST) })),
            Err(sse_stream::Error::Body(fault)) => Some(Err(match fault.downcast::<StreamFault>() {
                Ok(fault) => *fault,
                Err(other) => StreamFault::Broken(other),
            })),
            Err(_) => Some(Err(StreamFault::NoText)),
        })
    });
    events.boxed()
}

/// Bytes that come in time, and in events that are not too long. An event that the end of the stream cut off is
/// ended: some servers leave out the last empty line.
struct Watched {
    bytes: BoxStream<'static, Result<Bytes, Fault>>,
    meter: Meter,
    watch: Watch,
    silence: Pin<Box<Sleep>>,
    /// Whether the silence is being timed: from when somebody waits, for nobody may have asked before.
    waiting: bool,
    ended: bool,
}

impl Stream for Watched {
    type Item = Result<Bytes, StreamFault>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        if this.ended {
            return Poll::Ready(None);
        }
        let fault = match this.bytes.poll_next_unpin(cx) {
            Poll::Ready(Some(Ok(piece))) => {
                this.waiting = false;
                let limit = this.watch.max_event_bytes;
                if this.meter.longest_after(&piece) <= limit {
                    return Poll::Ready(Some(Ok(piece)));
                }
                StreamFault::TooLong(limit)
            }
            Poll::Ready(Some(Err(error))) => StreamFault::Broken(error),
            Poll::Ready(None) => {
                this.ended = true;
                return Poll::Ready(this.meter.ending().map(Ok));
            }
            Poll::Pending => {
                if !this.waiting {
                    this.waiting = true;
                    this.silence.as_mut().reset(Instant::now() + this.watch.idle);
                }
                ready!(this.silence.as_mut().poll(cx));
                StreamFault::Silent(this.watch.idle)
            }
        };
        this.ended = true;
        Poll::Ready(Some(Err(fault)))
    }
}

/// Counts the bytes since the last empty line, which is where events end.
#[derive(Default)]
struct Meter {
    since: usize,
    in_line: bool,
    after_cr: bool,
}

impl Meter {
    /// Takes the next bytes, and answers how long the longest event within them has become.
    fn longest_after(&mut self, piece: &[u8]) -> usize {
        let mut longest = 0;
        for &byte in piece {
            if byte == b'\n' && std::mem::take(&mut self.after_cr) {
                continue;
            }
            self.after_cr = byte == b'\r';
            self.since += 1;
            longest = longest.max(self.since);
            if byte != b'\n' && byte != b'\r' {
                self.in_line = true;
            } else if !std::mem::take(&mut self.in_line) {
                self.since = 0;
            }
        }
        longest
    }

    /// What ends the event that is open.
    fn ending(&self) -> Option<Bytes> {
        // A line end more would end the event before it has the id.
        let end_of_line = if self.in_line { "\n" } else { "" };
        (self.since > 0).then(|| format!("{end_of_line}id: {LAST}\n\n").into())
    }
}

#[cfg(test)]
mod tests;
