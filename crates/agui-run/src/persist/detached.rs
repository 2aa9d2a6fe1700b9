//! Drives a detached run: a task polls it and writes its events to a log.

use std::{
    future::poll_fn,
    sync::Arc,
    task::{Context, Poll, ready},
};

use super::transcribed_run::TranscribedRun;
use crate::{
    drive::progress::Progress,
    log::{LiveLog, LogEnd, live::to_line},
};
use agui_protocol::Event;
use agui_store::StoreError;

const MAX_EVENTS_PER_POLL: usize = 128;

pub(crate) async fn drive(mut transcribed: TranscribedRun, log: Arc<LiveLog>) {
    let threads = transcribed.held.threads.clone();
    poll_fn(|cx| {
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
    let is_written = poll_fn(|cx| log.poll_written(cx)).await;
    let last = log.terminal_batch(terminal, ended);
    // Stored after all events before it: otherwise another process closes the run and its log.
    let result = if is_written {
        transcribed.commit(false, Some(last.clone())).await.stored
    } else {
        Err(StoreError::LeaseLost)
    };
    match result {
        Ok(()) => {
            log.confirm_written(last);
            log.end(LogEnd::Complete);
        }
        Err(error) => {
            if !matches!(error, StoreError::LeaseLost) {
                tracing::error!(
                    ?error,
                    "the end of a detached run could not be stored; it will be closed as lost"
                );
            }
            log.end(LogEnd::Lost);
        }
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
            Progress::Ended => return Poll::Ready(()),
            Progress::Moved | Progress::Heartbeat | Progress::Broken => {}
        }
    }
    cx.waker().wake_by_ref();
    Poll::Pending
}
