//! A run that lives in a task of its own, and whose events go to a log.

use std::{
    future::poll_fn,
    sync::Arc,
    task::{Context, Poll, ready},
};

use super::{
    log::{LiveLog, LogEnd, LogSink},
    recorder::{RunRecorder, Step},
};
use crate::store::StoreError;

/// After how many events other tasks get their turn.
const EVENTS_PER_TURN: usize = 128;

/// Drives a run to its end, whether a client follows it or not.
pub(super) async fn drive(mut recorder: RunRecorder, log: Arc<LiveLog>) {
    let threads = recorder.threads().clone();
    poll_fn(|cx| {
        let polled = poll_turn(&mut recorder, &log, cx);
        if log.has_pending() {
            threads.log_writer.schedule(&log);
        }
        polled
    })
    .await;
    let is_written = poll_fn(|cx| log.poll_written(cx)).await;
    let Some(terminal) = recorder.terminal().cloned() else { return };
    let last = log.last(&terminal);
    // A log must not lack events before its terminal one. The process that takes the run over closes the log.
    let result = if is_written { recorder.commit(false, Some(last.clone())).await } else { Err(StoreError::LeaseLost) };
    match result {
        Ok(()) => {
            log.written(last);
            log.end(LogEnd::Complete);
        }
        Err(error) => {
            tracing::error!(?error, "a detached run ended without a record; it will be closed as lost");
            log.end(LogEnd::Lost);
        }
    }
}

fn poll_turn(recorder: &mut RunRecorder, log: &Arc<LiveLog>, cx: &mut Context<'_>) -> Poll<()> {
    for _ in 0..EVENTS_PER_TURN {
        if let Some(stop) = ready!(log.poll_room(cx)) {
            recorder.stop(stop);
        }
        if ready!(recorder.poll_step(cx, &mut LogSink(log))) == Step::Terminal {
            return Poll::Ready(());
        }
    }
    cx.waker().wake_by_ref();
    Poll::Pending
}
