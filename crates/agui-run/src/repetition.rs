//! Decides what a request gets whose earlier run has ended: its stored end, or a new attempt.

use super::{
    admission::{Admission, Repetition},
    conversation::repeated::{Repeated, newest_continuing},
    limits::start_error::StartError,
    request::RunRequest,
    restate::{RestatedRun, StoredEnd},
};
use agui_protocol::Message;
use agui_store::{EndedRun, MessageNumber, RunRecord, RunStatus, ThreadParts};

impl Admission {
    /// Decides what this request gets, after the same request's run has ended.
    pub(super) async fn repeat(
        mut self: Box<Self>,
        same: RunRecord,
    ) -> Result<Repetition, StartError> {
        // The memory of the request is for one copy of the thread.
        if let Some(loaded) = self.loaded.take() {
            self.threads.cache.put(self.key.clone(), loaded);
        }
        self.is_read = false;
        let Self { threads, key, .. } = &*self;
        let attempts = threads.store.attempts(&key.owner, same.thread, &same.id).await?;
        let include = ThreadParts { messages: true, ..ThreadParts::default() };
        let view = threads.store.thread(key, include).await?;
        let view = view.filter(|view| view.thread.number == same.thread);
        let newest_here = attempts.last().map_or(same.number, |run| run.number);
        let (Some(attempt), Some(view)) = (newest_continuing(attempts, same.number), view) else {
            // The thread was deleted in the meantime.
            return Ok(Repetition::Anew(self));
        };
        let is_newest = view.thread.run == attempt.number && attempt.number == newest_here;
        if Repeated::of(&attempt, is_newest) == Repeated::Anew {
            self.known = attempt.number;
            self.retries = attempt.status != RunStatus::Finished;
            return Ok(Repetition::Anew(self));
        }
        let (thread, run) = (key.id.as_str(), attempt.id.as_str());
        tracing::info!(
            thread,
            run,
            attempt = attempt.attempt,
            "restated a run to a request that came again; a new run id would run it anew"
        );
        let end = threads.store.end_state(&key.owner, same.thread, EndedRun::Id(&same.id)).await?;
        let end = end.filter(|_| attempt.number == newest_here);
        let (head, state, open) = end.map_or((MessageNumber::default(), None, Vec::new()), |end| {
            (end.head, end.state, end.interrupts)
        });
        let state = state.map(|(_, state)| state);
        let stored = StoredEnd { view: &view, run: &attempt, head, state, open };
        let shown = self.request.input.messages.iter().map(Message::id).collect();
        let events = stored.events(&shown);
        let Self { request: RunRequest { permit, .. }, .. } = *self;
        Ok(Repetition::Restated(RestatedRun { events, permit }))
    }
}
