//! Closes runs that nobody drives any more.

use super::Threads;
use crate::{
    protocol::{Event, event::RunError},
    run::Transcript,
    store::{Append, Lease, RunEnd, RunFailure, RunStatus, StoreError, ThreadContent, now},
};

/// The code of the error that ends such a run.
const SERVER_LOST: &str = "server_lost";
/// How much of a log is read at a time.
const PAGE: usize = 1024 * 1024;

impl Threads {
    /// Ends a run whose server was lost: with an error, after what is in its log, and with the messages that the log
    /// amounts to.
    pub(super) async fn recover(&self, lost: &Lease) -> Result<(), StoreError> {
        let now = now();
        let lease = self.store.take_over(lost, &self.holder, now, self.until(now)).await?;
        // Otherwise it was not lost, or somebody else is at it.
        let Some(lease) = lease else { return Ok(()) };
        self.close_lost(&lease).await
    }

    /// Ends a run that this process has the lease of and does not drive.
    pub(super) async fn close_lost(&self, lease: &Lease) -> Result<(), StoreError> {
        let Some(thread) = self.store.thread(&lease.thread_id).await? else { return Ok(()) };
        let Some(run) = self.store.run(&lease.thread_id, &lease.run_id).await? else { return Ok(()) };
        tracing::warn!(thread = %lease.thread_id, run = %lease.run_id, "closing a run whose server was lost");
        let mut events = 0;
        let mut content = None;
        if run.detached {
            let interrupts = thread.content.interrupts;
            let state = thread.content.state.unwrap_or_else(|| serde_json::json!({}));
            let mut transcript = Transcript::new(thread.content.messages, state);
            while let Some(page) = self.store.events(&lease.thread_id, &lease.run_id, events, PAGE).await?
                && !page.events.is_empty()
            {
                events += page.events.len() as u64;
                for event in page.events.iter().filter_map(|line| serde_json::from_str::<Event>(line).ok()) {
                    transcript.apply(&event);
                }
            }
            let (messages, state) = transcript.into_parts();
            content = Some(ThreadContent { messages, state: Some(state), interrupts });
        }
        let message = "the server that ran this was lost; please try again";
        let terminal = Event::from(RunError::new(SERVER_LOST, message));
        let last = run.detached.then(|| Append {
            lease: lease.clone(),
            first: events + 1,
            events: vec![serde_json::to_string(&terminal).unwrap_or_default()],
        });
        let end = RunEnd {
            status: RunStatus::Failed,
            at: now(),
            events: events + u64::from(run.detached),
            usage: Vec::new(),
            failure: Some(RunFailure { code: Some(SERVER_LOST.to_owned()), message: message.to_owned() }),
        };
        self.store.finish(lease, content.as_ref(), last.as_ref(), &end).await
    }
}
