//! Drives a detached run: a task polls it and writes its events to a log.

use std::{
    future::poll_fn,
    sync::Arc,
    task::{Context, Poll, ready},
};

use futures::FutureExt as _;

use super::transcribed_run::{EndCommit, TranscribedRun};
use crate::{
    control::{RunControl, Stop},
    drive::progress::Progress,
    log::{LiveLog, LogEnd, live::to_line},
};
use agui_protocol::Event;

const MAX_EVENTS_PER_POLL: usize = 128;

pub(crate) async fn drive(mut transcribed: TranscribedRun, log: Arc<LiveLog>) {
    let threads = transcribed.held.threads.clone();
    let control = transcribed.held.run.control.clone();
    poll_fn(|cx| {
        leave_if_lost(&control, &log, cx);
        let polled = poll_events(&mut transcribed, &log, cx);
        if log.has_pending() {
            threads.log_writer.schedule(&log);
        }
        polled
    })
    .await;
    match transcribed.terminal().cloned() {
        Some(terminal) => store_end(transcribed, &terminal, &log).await,
        None => hand_over(transcribed, &log).await,
    }
}

async fn store_end(mut transcribed: TranscribedRun, terminal: &Event, log: &Arc<LiveLog>) {
    if let Some(snapshot) = transcribed.absorb().await {
        log.push(to_line(&snapshot), log.millis());
        transcribed.held.threads.log_writer.schedule(log);
    }
    let ended = log.millis();
    let control = transcribed.held.run.control.clone();
    let is_written = poll_fn(|cx| {
        leave_if_lost(&control, log, cx);
        log.poll_written(cx)
    })
    .await;
    // Stored after all events before it: otherwise another process closes the run and its log.
    if is_written {
        let last = log.terminal_batch(terminal, ended);
        let mut commit = transcribed.commit(false, Some(last.clone()));
        let committed = poll_fn(|cx| {
            leave_if_lost(&control, log, cx);
            commit.poll_unpin(cx)
        });
        if committed.await.end == EndCommit::Stored {
            log.confirm_written(last);
            return log.end(LogEnd::Complete);
        }
    }
    log.end(LogEnd::Lost);
}

/// Ends the log in this process if the lease is lost. Its followers do not wait for a store that this process may not reach.
fn leave_if_lost(control: &RunControl, log: &LiveLog, cx: &mut Context<'_>) {
    if control.poll_requested(cx) == Some(Stop::LeaseLost) {
        log.end(LogEnd::Lost);
    }
}

/// Stops the agent, stores its events, and hands the run over to the next server.
async fn hand_over(mut transcribed: TranscribedRun, log: &Arc<LiveLog>) {
    log.hand_over();
    transcribed.stop_agent();
    let threads = transcribed.held.threads.clone();
    threads.log_writer.schedule(log);
    if poll_fn(|cx| log.poll_written(cx)).await
        && let Some(shared) = threads.store.shared()
        && let Err(error) = shared.release(&log.lease).await
    {
        tracing::warn!(
            ?error,
            "the lease of a run could not be released; another server continues the run when the lease has expired"
        );
    }
    log.end(LogEnd::HandedOver);
}

fn poll_events(
    transcribed: &mut TranscribedRun,
    log: &Arc<LiveLog>,
    cx: &mut Context<'_>,
) -> Poll<()> {
    // Events of one poll have the same time: reading the clock for each costs more than storing it.
    let time = log.millis();
    for _ in 0..MAX_EVENTS_PER_POLL {
        if let Some(stop) = ready!(log.poll_space(cx)) {
            transcribed.stop(stop);
        }
        let mut push = |event: &Event| {
            // Stored when the run began.
            if !matches!(event, Event::RunStarted(_)) {
                log.push(to_line(event), time);
            }
        };
        match ready!(transcribed.poll_progress(cx, &mut push)) {
            Progress::Ended | Progress::Broken => return Poll::Ready(()),
            Progress::Moved | Progress::Heartbeat => {}
        }
    }
    cx.waker().wake_by_ref();
    Poll::Pending
}
