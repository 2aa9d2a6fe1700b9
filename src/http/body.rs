//! A run as a response body.
//!
//! hyper polls the body, the body polls the run, the run polls the agent: there is no task and no
//! channel in between, so a client that does not read stops the agent, and one that leaves drops it.
//!
//! Events are encoded straight into the buffer that hyper sends. Whatever the agent has ready leaves in
//! one piece of up to [`PIECE`] bytes; an event that nothing follows leaves at once. What is there when the run is
//! about to end leaves together with the end, for a write costs as much as dozens of events.

use std::{
    convert::Infallible,
    pin::Pin,
    task::{Context, Poll},
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

/// In the order of use, like the run in it, and small: with what an event touches of its run's record it takes two
/// lines of the cache.
#[repr(C)]
pub(super) struct RunBody<R> {
    /// How many bytes are left of this turn.
    turn: u32,
    /// How many bytes the next piece may have.
    piece: u16,
    /// How much room the next piece is expected to need: as much as the last one.
    room: u16,
    buffer: Vec<u8>,
    encoder: Encoder,
    run: R,
}

impl<R: Drive + Unpin> RunBody<R> {
    pub(super) fn new(run: R, encoder: Encoder) -> Self {
        // The first piece ends its turn: hyper writes when nothing more is ready, and so the client sees
        // it before a fast agent has filled hyper's buffer.
        Self { run, encoder, buffer: Vec::new(), room: *ROOM.start(), piece: FIRST_PIECE, turn: FIRST_PIECE.into() }
    }

    fn take(&mut self) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let piece = std::mem::take(&mut self.buffer);
        let (room, sent) = (piece.len() + piece.len() / 8, u32::try_from(piece.len()).unwrap_or(u32::MAX));
        self.room = u16::try_from(room).unwrap_or(u16::MAX).clamp(*ROOM.start(), *ROOM.end());
        self.piece = PIECE;
        self.turn = self.turn.saturating_sub(sent);
        Poll::Ready(Some(Ok(Frame::data(piece.into()))))
    }
}

impl<R: Drive + Unpin> Body for RunBody<R> {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let this = self.get_mut();
        if this.turn == 0 {
            this.turn = TURN;
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        let span = this.run.span().clone();
        let _entered = span.enter();
        loop {
            let mut sink = Encoding { encoder: &mut this.encoder, buffer: &mut this.buffer, room: this.room.into() };
            match this.run.poll_progress(cx, &mut sink) {
                Poll::Ready(Progress::Moved) if this.buffer.len() < usize::from(this.piece) => {}
                Poll::Ready(Progress::Heartbeat) => this.encoder.heartbeat(&mut this.buffer),
                Poll::Ready(Progress::Ended) if this.buffer.is_empty() => return Poll::Ready(None),
                Poll::Pending if this.buffer.is_empty() || this.run.is_ending() => {
                    this.turn = TURN;
                    return Poll::Pending;
                }
                Poll::Ready(Progress::Moved | Progress::Ended) | Poll::Pending => return this.take(),
            }
        }
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
#[cfg(test)]
mod tests {
    use std::mem::offset_of;

    use super::*;

    /// With hundreds of streams each line of the cache that an event touches is one that it waits for. What a stored run
    /// notes of an event begins with 36 bytes and goes on with the newest of its text.
    #[test]
    fn what_comes_before_the_run_leaves_room_in_the_second_line() {
        assert!(offset_of!(RunBody<u64>, run) <= 128 - 36);
    }
}
