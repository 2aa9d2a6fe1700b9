//! Server-Sent Events over a response's body, with a limit on each event and on silence.
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
use sse_stream::SseByteStream;
use tokio::time::{Instant, Sleep, sleep};

/// The data of each event, until the stream ends or fails.
pub(super) type Frames = BoxStream<'static, Result<String, StreamFault>>;

/// What is watched.
#[derive(Debug, Clone, Copy)]
pub(super) struct Watch {
    /// The most bytes of one event, with everything that the format adds to it.
    pub(super) max_event_bytes: usize,
    /// How long nothing may come.
    pub(super) idle: Duration,
}

/// Why a stream cannot be read on.
#[derive(Debug, thiserror::Error)]
pub(super) enum StreamFault {
    #[error("an event has more than {0} bytes")]
    TooLong(usize),
    #[error("nothing came for {0:?}")]
    Silent(Duration),
    #[error("the connection broke")]
    Broken(#[source] Box<dyn StdError + Send + Sync>),
    #[error("an event is no UTF-8")]
    NoText,
}

/// Reads events from bytes. Fields other than `data` are of no concern in AG-UI; an event without data is none.
pub(super) fn frames<S, E>(bytes: S, watch: Watch) -> Frames
where
    S: Stream<Item = Result<Bytes, E>> + Send + 'static,
    E: Into<Box<dyn StdError + Send + Sync>> + 'static,
{
    let bytes = bytes.map(|piece| piece.map_err(|error| StreamFault::Broken(error.into()))).boxed();
    let watched =
        Watched { bytes, meter: Meter::default(), watch, silence: Box::pin(sleep(watch.idle)), waiting: false };
    let events = SseByteStream::new(watched);
    let data = events.filter_map(|event| {
        future::ready(match event {
            Ok(event) => event.data.filter(|data| !data.is_empty()).map(Ok),
            Err(sse_stream::Error::Body(fault)) => Some(Err(match fault.downcast::<StreamFault>() {
                Ok(fault) => *fault,
                Err(other) => StreamFault::Broken(other),
            })),
            Err(_) => Some(Err(StreamFault::NoText)),
        })
    });
    data.boxed()
}

/// Bytes that come in time, and in events that are not too long.
struct Watched {
    bytes: BoxStream<'static, Result<Bytes, StreamFault>>,
    meter: Meter,
    watch: Watch,
    silence: Pin<Box<Sleep>>,
    /// Whether the silence is being timed: from when somebody waits, for nobody may have asked before.
    waiting: bool,
}

impl Stream for Watched {
    type Item = Result<Bytes, StreamFault>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        match this.bytes.poll_next_unpin(cx) {
            Poll::Ready(Some(Ok(piece))) => {
                this.waiting = false;
                let limit = this.watch.max_event_bytes;
                let fits = this.meter.longest_after(&piece) <= limit;
                Poll::Ready(Some(if fits { Ok(piece) } else { Err(StreamFault::TooLong(limit)) }))
            }
            Poll::Ready(other) => Poll::Ready(other),
            Poll::Pending => {
                if !this.waiting {
                    this.waiting = true;
                    this.silence.as_mut().reset(Instant::now() + this.watch.idle);
                }
                ready!(this.silence.as_mut().poll(cx));
                Poll::Ready(Some(Err(StreamFault::Silent(this.watch.idle))))
            }
        }
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
            self.since += 1;
            let after_cr = std::mem::replace(&mut self.after_cr, byte == b'\r');
            match byte {
                b'\n' if after_cr => {}
                b'\n' | b'\r' => {
                    if !self.in_line {
                        longest = longest.max(self.since);
                        self.since = 0;
                    }
                    self.in_line = false;
                }
                _ => self.in_line = true,
            }
        }
        longest.max(self.since)
    }
}

#[cfg(test)]
mod tests {
    use futures::stream;

    use super::*;

    const WATCH: Watch = Watch { max_event_bytes: 64, idle: Duration::from_secs(60) };

    async fn read(pieces: &[&[u8]], watch: Watch) -> Vec<Result<String, String>> {
        let pieces: Vec<_> =
            pieces.iter().map(|piece| Ok::<_, std::io::Error>(Bytes::copy_from_slice(piece))).collect();
        frames(stream::iter(pieces), watch).map(|frame| frame.map_err(|fault| fault.to_string())).collect().await
    }

    #[tokio::test]
    async fn every_form_of_the_format_is_read_however_it_is_cut() {
        let text = b"\xEF\xBB\xBFevent: x\r\ndata: a\r\ndata: b\r\n\r\n: hello\r\n\r\nid: 1\rdata:c\r\rdata: d\n\nretry: 5\n\ndata: e";
        let expected = [Ok("a\nb".to_owned()), Ok("c".to_owned()), Ok("d".to_owned())];
        for size in [1, 2, 3, 7, 1000] {
            let pieces: Vec<&[u8]> = text.chunks(size).collect();
            assert_eq!(read(&pieces, WATCH).await, expected, "{size}");
        }
    }

    #[tokio::test]
    async fn an_event_is_refused_before_it_is_whole_and_comments_add_up_to_nothing() {
        let endless = vec![&b"data: 0123456789"[..]; 5];
        assert_eq!(read(&endless, WATCH).await, [Err("an event has more than 64 bytes".to_owned())]);
        let lines = vec![&b"data: 0123456789\r\n"[..]; 5];
        assert_eq!(read(&lines, WATCH).await, [Err("an event has more than 64 bytes".to_owned())]);
        let mut alive = vec![&b": keep-alive\r\n\r\n"[..]; 100];
        alive.push(b"data: x\n\n");
        assert_eq!(read(&alive, WATCH).await, [Ok("x".to_owned())]);
    }

    #[tokio::test]
    async fn what_is_no_text_is_said_to_be_none() {
        assert_eq!(read(&[b"data: \xff\n\n"], WATCH).await, [Err("an event is no UTF-8".to_owned())]);
    }

    #[tokio::test(start_paused = true)]
    async fn silence_is_timed_from_the_last_sign_of_life_and_only_while_somebody_waits() {
        let pieces = async_stream::stream! {
            for _ in 0..5 {
                sleep(Duration::from_secs(50)).await;
                yield Ok::<_, std::io::Error>(Bytes::from_static(b": alive\n"));
            }
            yield Ok(Bytes::from_static(b"data: x\n\n"));
            std::future::pending::<()>().await;
        };
        let mut frames = frames(pieces, WATCH);
        assert_eq!(frames.next().await.unwrap().unwrap(), "x");
        sleep(Duration::from_secs(600)).await;
        let asked = Instant::now();
        assert!(matches!(frames.next().await, Some(Err(StreamFault::Silent(_)))));
        assert_eq!(asked.elapsed().as_secs(), 60);
    }
}
