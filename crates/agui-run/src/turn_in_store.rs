//! Waits until no other process runs the thread, and begins the run.

use std::{ops::ControlFlow, time::Duration};

use tokio::time::{Instant, sleep, timeout};

use super::{
    admission::{Admission, BeginAttempt},
    conversation::asked::RequestDigest,
    limits::start_error::StartError,
    log::Follower,
    options::ConcurrentRuns,
    request::StartedRun,
    turn::{live_run::RunTrigger, thread_core::ThreadCore},
};
use agui_base::complete_on_drop::CompleteOnDrop;
use agui_store::{Lease, LostRun, RunRecord, SharedStore, StoreError, ThreadNumber, Topic};

/// The first and the longest interval of polling a thread that another process uses, while no signals arrive.
const POLL_BACKOFF: [Duration; 2] = [Duration::from_millis(25), Duration::from_millis(400)];
/// The interval while signals arrive. Signals can be lost.
const SLOW_POLL: Duration = Duration::from_secs(2);

impl ThreadCore {
    async fn wait_for_free_thread(&self, thread: ThreadNumber, poll: Duration) {
        match self.store.shared().map(SharedStore::signals).filter(|signals| signals.is_live()) {
            Some(signals) => {
                let mut watch = signals.watch(Topic::Thread(thread));
                let _ = timeout(SLOW_POLL, watch.changed()).await;
            }
            None => sleep(poll).await,
        }
    }
}

impl Admission {
    /// Begins the run once no other process runs the thread. Returns a run to wait for if another process has this request in a
    /// response.
    pub(super) async fn begin_or_wait(self: Box<Self>) -> Result<StartedRun, StartError> {
        let deadline = Instant::now() + self.threads.options.queue_timeout;
        let admission = match self.begin_in_turn(Some(deadline)).await? {
            ControlFlow::Break(started) => return Ok(started),
            ControlFlow::Continue(admission) => admission,
        };
        let next = async move {
            match admission.begin_in_turn(None).await? {
                ControlFlow::Break(started) => Ok(started),
                ControlFlow::Continue(_) => Err(StartError::RunIsRunning),
            }
        };
        Ok(StartedRun::Awaited(Box::pin(next)))
    }

    /// Begins the run once no other process runs the thread, by the deadline. Without one, the client has a response, which
    /// keep-alives fill. Continues with the request if another process has it in a response.
    async fn begin_in_turn(
        self: Box<Self>,
        deadline: Option<Instant>,
    ) -> Result<ControlFlow<StartedRun, Box<Self>>, StartError> {
        let (mut admission, [mut poll, longest]) = (self, POLL_BACKOFF);
        loop {
            // Completes even if the client leaves, because a run that was begun has to be ended.
            let thread = match CompleteOnDrop::new(admission.begin()).await? {
                BeginAttempt::Begun(started) => return Ok(ControlFlow::Break(started)),
                BeginAttempt::Known(same, run) => match same.repeat(*run).await? {
                    ControlFlow::Break(restated) => return Ok(ControlFlow::Break(restated)),
                    ControlFlow::Continue(same) => {
                        admission = same;
                        continue;
                    }
                },
                BeginAttempt::Dequeued(queued) => {
                    let runs = queued.runs.clone();
                    return runs.dequeued(queued).await.map(ControlFlow::Break);
                }
                BeginAttempt::Behind(queued, thread) => {
                    admission = queued;
                    thread
                }
                BeginAttempt::Busy(behind, run, lost) => {
                    admission = behind;
                    if admission.ends_lost(&run, lost).await? {
                        continue;
                    }
                    if !admission.is_of_request(&run) {
                        admission.reject_or_supersede(&run).await?;
                        if admission.is_storable() {
                            let runs = admission.runs.clone();
                            // Boxed because it leads here again.
                            return Box::pin(runs.enqueue(admission)).await.map(ControlFlow::Break);
                        }
                    } else if run.detached {
                        return admission.follow(&run).map(ControlFlow::Break);
                    } else if deadline.is_some() && admission.queued.is_none() {
                        // A run in a response ends with it. What this request gets then depends on how.
                        return Ok(ControlFlow::Continue(admission));
                    }
                    run.thread
                }
            };
            let is_late = deadline.is_some_and(|deadline| Instant::now() >= deadline);
            if is_late && admission.queued.is_none() {
                return Err(StartError::QueueFull);
            }
            let Admission { threads, place, .. } = &*admission;
            tokio::select! {
                () = threads.wait_for_free_thread(thread, poll) => {}
                () = place.run.control.stopped() => {}
            }
            if let Some(stop) = place.run.control.requested() {
                let Admission { runs, request, .. } = *admission;
                return runs.launch_stopped(stop, request).map(ControlFlow::Break);
            }
            poll = (poll * 2).min(longest);
        }
    }

    /// Continues or closes the run for which this one waits, if it is lost. Returns whether it is no longer running.
    async fn ends_lost(
        &mut self,
        run: &RunRecord,
        lost: Option<Lease>,
    ) -> Result<bool, StartError> {
        self.waits_for = Some(run.thread);
        let Self { runs, threads, key, place, .. } = self;
        place.run.note_came_during(run.number);
        // Maintenance closes lost runs of this process.
        let Some(lost) = lost.filter(|lost| lost.holder != threads.holder) else {
            return Ok(false);
        };
        let lost = LostRun { key: key.clone(), run_id: run.id.clone(), lease: lost };
        // Boxed because it is large and rare.
        match Box::pin(runs.continue_or_close(threads, &lost)).await {
            // Another server may be able to continue it.
            Ok(is_ended) => Ok(is_ended),
            // Another process closed the run, or the thread was deleted.
            Err(StoreError::LeaseLost) => Ok(true),
            Err(error) => Err(error.into()),
        }
    }

    /// Returns whether a run of another process answers this request.
    fn is_of_request(&self, run: &RunRecord) -> bool {
        let asked = self.place.run.asked.as_ref().map(RequestDigest::as_str);
        run.id == self.request.input.run_id && asked.is_some() && run.asked.as_deref() == asked
    }

    /// Follows a detached run of another process.
    fn follow(&self, run: &RunRecord) -> Result<StartedRun, StartError> {
        let Self { threads, key, .. } = self;
        let permit =
            threads.followers.try_take(&key.owner, 1).map_err(|_| StartError::TooManyFollowers)?;
        let logs = &threads.followed_logs;
        let follower = Follower::from_stored_run(logs, key.clone(), run, 0, permit);
        Ok(StartedRun::Detached { follower })
    }

    /// Fails, or requests the cancellation of the run of another process, by `concurrent_runs`.
    async fn reject_or_supersede(&self, run: &RunRecord) -> Result<(), StartError> {
        let is_message = self.request.trigger() == RunTrigger::Message;
        if is_message && run.id == self.request.input.run_id {
            return Err(StartError::RunIsRunning);
        }
        match self.threads.options.concurrent_runs {
            ConcurrentRuns::Reject => return Err(StartError::ThreadIsBusy),
            ConcurrentRuns::Supersede if is_message => {
                if let Some(shared) = self.threads.store.shared() {
                    shared.request_cancel(run.thread, &run.id).await?;
                }
            }
            ConcurrentRuns::Queue | ConcurrentRuns::Supersede => {}
        }
        Ok(())
    }
}
