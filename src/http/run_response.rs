//! A started run as a response.
//!
//! For a run that ends with its connection, hyper polls the body, the body polls the run, the run polls the agent, without a
//! task or channel in between. So a client that does not read pauses its agent, and a client that disconnects drops it. All
//! events that are ready are sent as one chunk, the first ones together with the response's head: a write to a socket costs
//! as much as dozens of events.

use std::{
    future::poll_fn,
    io,
    pin::Pin,
    task::{Context, Poll, ready},
    time::{Duration, Instant},
};

use async_stream::stream;
use axum::{body::Body, response::Response};
use bytes::Bytes;
use futures::{StreamExt as _, future::BoxFuture};
use http_body::{Body as HttpBody, Frame};
use tracing::Span;

use super::{
    client_encoder::ClientEncoder,
    follow::FollowedRun,
    sse_response::{broken, respond, with_timeout},
    state::App,
};
use agui_agents::cuts_connection;
use agui_protocol::Event;
use agui_run::host::{Drive, Progress, RestatedRun, StartError, StartedRun};

/// The size at which a chunk is sent although the agent has more events ready, in bytes.
const CHUNK_BYTES: u16 = 8 * 1024;
/// The same for the first chunk, for which the client waits. Its buffer has this capacity: a short response is one chunk, and
/// growing from less took 4 % of its instructions.
const FIRST_CHUNK_BYTES: u16 = 4 * 1024;
/// The number of bytes after which the body yields to other connections. hyper takes chunks as long as some are ready,
/// so an agent that always has events would occupy the thread.
const BYTES_PER_TURN: u32 = 32 * 1024;
/// A chunk that follows another within this time waits for more events, one round of the scheduler
/// at a time, as long as each round brings one: an HTTP client hands over one piece of a model's
/// answer a round. A burst of a model leaves in 0.02 writes a token instead of one.
const BURST_TIME: Duration = Duration::from_millis(5);
const BUFFER_BYTES: std::ops::RangeInclusive<u16> = 256..=CHUNK_BYTES + 512;

pub(crate) async fn respond_run(
    app: &App,
    started: StartedRun,
    encoder: ClientEncoder,
) -> Response {
    let media_type = encoder.media_type();
    match started {
        StartedRun::Unstored(run) => respond(media_type, Body::new(RunBody::new(run, encoder))),
        StartedRun::Restated(run) => restated(run, encoder),
        StartedRun::Awaited(next) => awaited(app, next, encoder),
        StartedRun::Stored(run) => {
            respond(media_type, Body::new(RunBody::new(run, encoder).with_first_chunk().await))
        }
        StartedRun::Detached { follower } => FollowedRun::new(follower).respond(app, encoder),
    }
}

/// Sends keep-alives while another server has the run.
fn awaited(
    app: &App,
    mut next: BoxFuture<'static, Result<StartedRun, StartError>>,
    encoder: ClientEncoder,
) -> Response {
    let (app, media_type) = (app.clone(), encoder.media_type());
    let body = stream! {
        let started = loop {
            match with_timeout(app.options.keep_alive, &mut next).await {
                Some(started) => break started,
                None => {
                    let mut out = Vec::new();
                    encoder.encoder.heartbeat(&mut out);
                    yield Ok(Bytes::from(out));
                }
            }
        };
        match started {
            Ok(started) => {
                let response = respond_run(&app, started, encoder).await;
                let mut chunks = response.into_body().into_data_stream();
                while let Some(chunk) = chunks.next().await {
                    yield chunk.map_err(io::Error::other);
                }
            }
            Err(error) => {
                tracing::info!(%error, "a request that waited for its run on another server has to be sent again");
                yield Err(broken());
            }
        }
    };
    respond(media_type, Body::from_stream(body))
}

/// Responds with the stored end of a run.
fn restated(run: RestatedRun, mut encoder: ClientEncoder) -> Response {
    let RestatedRun { events, permit } = run;
    let media_type = encoder.media_type();
    let mut out = Vec::new();
    events.iter().for_each(|event| encoder.event(event, &mut out));
    let chunk = async move {
        // Held until the bytes are on their way.
        drop(permit);
        Ok::<_, io::Error>(Bytes::from(out))
    };
    respond(media_type, Body::from_stream(futures::stream::once(chunk)))
}

/// The response body of a run that ends with its connection.
struct RunBody<R> {
    turn_bytes: u32,
    chunk_bytes: u16,
    /// True if the events in `buffer` have waited for a round that brought no others.
    has_waited: bool,
    /// The time of the last chunk.
    sent_at: Option<Instant>,
    /// The capacity for the next chunk: the size of the last one and an eighth more.
    capacity: u16,
    buffer: Vec<u8>,
    encoder: ClientEncoder,
    first: Option<io::Result<Bytes>>,
    /// The run's span.
    span: Span,
    run: Box<R>,
}

impl<R: Drive> RunBody<R> {
    fn new(run: Box<R>, encoder: ClientEncoder) -> Self {
        // The body yields after the first chunk: hyper writes to the socket when the body has
        // nothing ready, and so the client gets it before a fast agent has filled hyper's buffer.
        Self {
            span: run.span().clone(),
            run,
            encoder,
            first: None,
            buffer: Vec::new(),
            capacity: FIRST_CHUNK_BYTES,
            chunk_bytes: FIRST_CHUNK_BYTES,
            has_waited: false,
            sent_at: None,
            turn_bytes: FIRST_CHUNK_BYTES.into(),
        }
    }

    /// Waits for the first chunk. A run has its first event at once, so this waits only for a run that is about to end
    /// ([`is_ending`](Drive::is_ending)).
    async fn with_first_chunk(mut self) -> Self {
        self.first = poll_fn(|cx| self.poll_chunk(cx)).await;
        self
    }

    fn poll_chunk(&mut self, cx: &mut Context<'_>) -> Poll<Option<io::Result<Bytes>>> {
        if self.turn_bytes == 0 {
            self.turn_bytes = BYTES_PER_TURN;
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        // Taken out, because a clone at each poll was 6 % of the server's own CPU time of a token.
        let span = std::mem::replace(&mut self.span, Span::none());
        let chunk = span.in_scope(|| self.poll_run(cx));
        self.span = span;
        chunk
    }

    fn poll_run(&mut self, cx: &mut Context<'_>) -> Poll<Option<io::Result<Bytes>>> {
        loop {
            let mut is_cut = false;
            let mut encode = |event: &Event| {
                // A silent stream has no buffer.
                if self.buffer.capacity() == 0 {
                    self.buffer.reserve(self.capacity.into());
                }
                if cuts_connection(event) {
                    is_cut = true;
                } else {
                    self.encoder.event(event, &mut self.buffer);
                }
            };
            match self.run.poll_progress(cx, &mut encode) {
                // hyper closes the connection.
                Poll::Ready(_) if is_cut => {
                    return Poll::Ready(Some(Err(broken())));
                }
                Poll::Ready(Progress::Moved)
                    if self.buffer.len() < usize::from(self.chunk_bytes) =>
                {
                    self.has_waited = false
                }
                Poll::Ready(Progress::Heartbeat) => {
                    self.encoder.encoder.heartbeat(&mut self.buffer)
                }
                Poll::Ready(Progress::Ended) if self.buffer.is_empty() => {
                    self.run.delivered();
                    return Poll::Ready(None);
                }
                Poll::Ready(Progress::Broken) if self.buffer.is_empty() => {
                    return Poll::Ready(Some(Err(broken())));
                }
                Poll::Pending if self.buffer.is_empty() || self.run.is_ending() => {
                    self.turn_bytes = BYTES_PER_TURN;
                    return Poll::Pending;
                }
                Poll::Pending if !self.has_waited && self.is_burst() => {
                    self.has_waited = true;
                    // hyper polls a body that is pending once more in the same round.
                    self.turn_bytes = 0;
                    cx.waker().wake_by_ref();
                    return Poll::Pending;
                }
                Poll::Ready(Progress::Moved | Progress::Ended | Progress::Broken)
                | Poll::Pending => {
                    return Poll::Ready(Some(Ok(self.take())));
                }
            }
        }
    }

    fn is_burst(&self) -> bool {
        self.sent_at.is_some_and(|sent_at| sent_at.elapsed() < BURST_TIME)
    }

    fn take(&mut self) -> Bytes {
        (self.has_waited, self.sent_at) = (false, Some(Instant::now()));
        let chunk = std::mem::take(&mut self.buffer);
        let (capacity, sent) =
            (chunk.len() + chunk.len() / 8, u32::try_from(chunk.len()).unwrap_or(u32::MAX));
        self.capacity = u16::try_from(capacity)
            .unwrap_or(u16::MAX)
            .clamp(*BUFFER_BYTES.start(), *BUFFER_BYTES.end());
        self.chunk_bytes = CHUNK_BYTES;
        self.turn_bytes = self.turn_bytes.saturating_sub(sent);
        chunk.into()
    }
}

impl<R: Drive> HttpBody for RunBody<R> {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        let this = self.get_mut();
        let chunk = match this.first.take() {
            Some(first) => Some(first),
            None => ready!(this.poll_chunk(cx)),
        };
        Poll::Ready(chunk.map(|chunk| chunk.map(Frame::data)))
    }
}
