//! A run that lives in a task of its own, and whose events go to a log.

use std::{
    future::poll_fn,
    sync::Arc,
    task::{Context, Poll, ready},
};

use tokio::sync::OwnedSemaphorePermit;

use super::recorded::{Recorded, Step};
use crate::{
    run::log::{End, LiveLog, LogSink},
    store::StoreError,
};

/// After how many events other tasks get their turn.
const EVENTS_PER_TURN: usize = 128;

/// Drives a run to its end, whoever follows it or not.
pub(super) async fn drive(mut recorded: Recorded, log: Arc<LiveLog>, permit: OwnedSemaphorePermit) {
    let threads = recorded.hold.threads.clone();
    poll_fn(|cx| {
        let polled = poll_turn(&mut recorded, &log, cx);
        if log.has_pending() {
            threads.writer.schedule(&log);
        }
        polled
    })
    .await;
    let written = poll_fn(|cx| log.poll_written(cx)).await;
    let Some(terminal) = recorded.terminal().cloned() else { return };
    let last = log.last(std::slice::from_ref(&terminal));
    // Without the events before it a terminal event is of no use: whoever takes the run over closes the log.
    let result = if written { recorded.commit(Some(last.clone())).await } else { Err(StoreError::LeaseLost) };
    match result {
        Ok(()) => {
            log.written(last);
            log.end(End::Complete);
        }
        Err(error) => {
            tracing::error!(?error, "a detached run ended without a record; it will be closed as lost");
            log.end(End::Lost);
        }
    }
    drop(permit);
}

fn poll_turn(recorded: &mut Recorded, log: &Arc<LiveLog>, cx: &mut Context<'_>) -> Poll<()> {
    for _ in 0..EVENTS_PER_TURN {
        if let Some(stop) = ready!(log.poll_room(cx)) {
            recorded.stop(stop);
        }
        if ready!(recorded.poll_step(cx, &mut LogSink(log))) == Step::Terminal {
            return Poll::Ready(());
        }
    }
    cx.waker().wake_by_ref();
    Poll::Pending
}
