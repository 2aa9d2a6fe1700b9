//! Answers a request that comes again after its run has ended.

use std::ops::ControlFlow;

use super::{
    admission::Admission,
    conversation::{
        asked::asking_messages,
        repeated::{Repeated, newest_continuing},
    },
    earlier_attempt::EarlierAttempt,
    limits::start_error::StartError,
    request::{RunRequest, StartedRun},
    restate::{RestatedRun, StoredEnd},
};
use agui_protocol::Message;
use agui_store::{EndedRun, MessageNumber, RunRecord, RunStatus, ThreadParts};

impl Admission {
    /// Decides what this request gets, after the same request's run has ended: that end, or a new attempt.
    pub(super) async fn repeat(
        mut self: Box<Self>,
        same: RunRecord,
    ) -> Result<ControlFlow<StartedRun, Box<Self>>, StartError> {
        // The memory of the request is for one copy of the thread.
        if let Some(loaded) = self.loaded.take() {
            self.threads.cache.put(self.key.clone(), loaded);
        }
        self.is_read = false;
        let Self { threads, key, .. } = &*self;
        let attempts = threads.store.attempts(&key.owner, same.thread, &same.id).await?;
        let view = threads.store.thread(key, ThreadParts::default()).await?;
        let view = view.filter(|view| view.thread.number == same.thread);
        let newest_here = attempts.last().map_or(same.number, |run| run.number);
        let (Some(attempt), Some(view)) = (newest_continuing(attempts, same.number), view) else {
            // The thread was deleted in the meantime.
            return Ok(ControlFlow::Continue(self));
        };
        let is_newest = view.thread.run == attempt.number && attempt.number == newest_here;
        let end = threads.store.end_state(&key.owner, same.thread, EndedRun::Id(&same.id)).await?;
        let end = end.filter(|_| attempt.number == newest_here);
        let repeated = Repeated::of(&attempt, is_newest);
        // A person may have moved the thread to another branch.
        let at_head = end.as_ref().filter(|end| end.head == view.thread.head);
        let earlier = match at_head {
            Some(end)
                if repeated == Repeated::Continued && self.request.agent.agent.can_continue() =>
            {
                EarlierAttempt::read(threads, key, &attempt, end.first_run).await?
            }
            _ => None,
        };
        if repeated == Repeated::Anew || earlier.is_some() {
            self.known = attempt.number;
            self.retries = attempt.status != RunStatus::Finished;
            if earlier.is_none() {
                self.leave_out_earlier_answer();
            }
            self.earlier = earlier.map(Box::new);
            return Ok(ControlFlow::Continue(self));
        }
        let all = ThreadParts { messages: true, ..ThreadParts::default() };
        let Some(view) = threads.store.thread(key, all).await? else {
            return Ok(ControlFlow::Continue(self));
        };
        let (thread, run) = (key.id.as_str(), attempt.id.as_str());
        tracing::info!(
            thread,
            run,
            attempt = attempt.attempt,
            "restated a run to a request that came again; a new run id would run it anew"
        );
        let (head, state, open) = end.map_or((MessageNumber::default(), None, Vec::new()), |end| {
            (end.head, end.state, end.interrupts)
        });
        let state = state.map(|(_, state)| state);
        let stored = StoredEnd { view: &view, run: &attempt, head, state, open };
        let shown = self.request.input.messages.iter().map(Message::id).collect();
        let events = stored.events(&self.request.input.run_id, &shown);
        let RunRequest { permit, .. } = self.request;
        Ok(ControlFlow::Break(StartedRun::Restated(RestatedRun { events, permit })))
    }

    /// Leaves out what the client shows of the answer that this attempt replaces.
    fn leave_out_earlier_answer(&mut self) {
        let asking = asking_messages(&self.request.input);
        if !asking.is_empty() && asking.end < self.request.input.messages.len() {
            self.request.input.messages.truncate(asking.end);
            self.anonymous.retain(|at| *at < asking.end);
            self.shows_earlier_answer = true;
        }
    }
}
