//! A run as a response body.
//!
//! hyper polls the body, the body polls the run, the run polls the agent: there is no task and no
//! channel in between, so a client that does not read stops the agent, and one that leaves drops it.
//!
//! Events are encoded straight into the buffer that hyper sends. Whatever the agent has ready leaves in
//! one piece of up to [`PIECE`] bytes; an event that nothing follows leaves at once. What is there when the run is
//! about to end leaves together with the end, and the first piece together with the response's head: a write to a
//! socket costs as much as dozens of events.

use std::{
    convert::Infallible,
    future::poll_fn,
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use http_body::{Body, Frame};

use crate::{
    encode::Encoder,
    protocol::Event,
    run::{Drive, EventSink, Progress},
};

/// How many bytes are gathered into a piece, as long as the agent has more.
const PIECE: u16 = 8 * 1024;
/// The same for the first piece, which the client waits for.
const FIRST_PIECE: u16 = 4 * 1024;
/// How many bytes may leave before other connections get their turn. hyper takes pieces for as long as
/// there are any; an agent that always has more would keep it, and the thread, to itself.
const TURN: u32 = 32 * 1024;
/// The least and the most room that is made for a piece.
const ROOM: std::ops::RangeInclusive<u16> = 256..=PIECE + 512;

/// A response body that polls a run.
pub(super) struct RunBody<R> {
    /// How many bytes are left of this turn.
    turn: u32,
    /// How many bytes the next piece may have.
    piece: u16,
    /// How much room the next piece is expected to need: as much as the last one.
    room: u16,
    buffer: Vec<u8>,
    encoder: Encoder,
    /// The first piece, until it is taken.
    first: Option<Bytes>,
    run: R,
}

impl<R: Drive + Unpin> RunBody<R> {
    pub(super) fn new(run: R, encoder: Encoder) -> Self {
        // The first piece ends its turn: hyper writes when nothing more is ready, and so the client sees
        // it before a fast agent has filled hyper's buffer.
        Self {
            run,
            encoder,
            first: None,
            buffer: Vec::new(),
            room: *ROOM.start(),
            piece: FIRST_PIECE,
            turn: FIRST_PIECE.into(),
        }
    }

    /// Waits for the first piece. A run has its first event at once, so this only ever waits for a run that is about
    /// to end, while [`is_ending`](Drive::is_ending) says so.
    pub(super) async fn with_first_piece(mut self) -> Self {
        self.first = poll_fn(|cx| self.poll_piece(cx)).await;
        self
    }

    fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        if self.turn == 0 {
            self.turn = TURN;
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        let span = self.run.span().clone();
        let _entered = span.enter();
        loop {
            let mut sink = Encoding { encoder: &mut self.encoder, buffer: &mut self.buffer, room: self.room.into() };
            match self.run.poll_progress(cx, &mut sink) {
                Poll::Ready(Progress::Moved) if self.buffer.len() < usize::from(self.piece) => {}
                Poll::Ready(Progress::Heartbeat) => self.encoder.heartbeat(&mut self.buffer),
                Poll::Ready(Progress::Ended) if self.buffer.is_empty() => {
                    self.run.delivered();
                    return Poll::Ready(None);
                }
                Poll::Pending if self.buffer.is_empty() || self.run.is_ending() => {
                    self.turn = TURN;
                    return Poll::Pending;
                }
                Poll::Ready(Progress::Moved | Progress::Ended) | Poll::Pending => {
                    return Poll::Ready(Some(self.take()));
                }
            }
        }
    }

    fn take(&mut self) -> Bytes {
        let piece = std::mem::take(&mut self.buffer);
        let (room, sent) = (piece.len() + piece.len() / 8, u32::try_from(piece.len()).unwrap_or(u32::MAX));
        self.room = u16::try_from(room).unwrap_or(u16::MAX).clamp(*ROOM.start(), *ROOM.end());
        self.piece = PIECE;
        self.turn = self.turn.saturating_sub(sent);
        piece.into()
    }
}

impl<R: Drive + Unpin> Body for RunBody<R> {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let this = self.get_mut();
        let piece = match this.first.take() {
            Some(first) => Some(first),
            None => ready!(this.poll_piece(cx)),
        };
        Poll::Ready(piece.map(|piece| Ok(Frame::data(piece))))
    }
}

struct Encoding<'a> {
    encoder: &'a mut Encoder,
    buffer: &'a mut Vec<u8>,
    room: usize,
}

impl EventSink for Encoding<'_> {
    fn emit(&mut self, event: &Event) {
        // Room is made for events only: a silent stream has no buffer.
        if self.buffer.capacity() == 0 {
            self.buffer.reserve(self.room);
        }
        self.encoder.event(event, self.buffer);
    }
}
