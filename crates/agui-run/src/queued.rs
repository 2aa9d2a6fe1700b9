//! Queued runs: a message whose own run continues without its page, and that comes behind another run of its thread, is stored
//! before its response begins. It becomes a run when its turn comes, with or without its page, and on another server if this one is
//! lost.

use std::{future::poll_fn, sync::Arc, time::Duration};

use futures::future::BoxFuture;
use tokio::time::{sleep, timeout};

use super::{
    admission::{Admission, caller_of},
    conversation::asked::RequestDigest,
    drive::progress::{Drive as _, Progress},
    limits::start_error::StartError,
    log::{FollowError, Follower, QueueEnd, live::to_line},
    persist::stored_request::StoredRequest,
    request::{RunRequest, StartedRun},
    runs::Runs,
    turn::{
        live_run::{LiveRun, LiveStage, RunTrigger, Unbegun},
        queue::{Arrival, Entered, RunPlace},
        thread_core::ThreadCore,
    },
};
use agui_agent::host::AgentEntry;
use agui_base::{
    RunErrorCode, complete_on_drop::CompleteOnDrop, permits::LimitReached,
    refusal::RefusalCodes as _,
};
use agui_protocol::{
    RunId,
    event::{RunError, RunFinished, RunOutcome, RunStarted},
};
use agui_store::{
    Enqueued, Millis, NewQueuedRun, QueuedRun, RunQueue, StoreError, ThreadKey, ThreadNumber,
    host::now,
};

/// The number of lost queued runs that are read at once.
const MAX_LOST: usize = 1000;
/// The interval of looking for a queued run that another process holds.
const POLL: Duration = Duration::from_millis(400);

impl Runs {
    /// Returns whether a run comes behind another one of this process, and can be stored until its turn.
    pub(super) async fn comes_behind(
        &self,
        key: &ThreadKey,
        place: &RunPlace,
        request: &RunRequest,
    ) -> bool {
        let (threads, run) = (&self.threads, &place.run);
        if !request.is_storable() || threads.store.store.queue().is_none() {
            return false;
        }
        if let Some(first) = threads.queue.first(key) {
            // The thread is stored once its run has begun.
            tokio::select! {
                () = first.reached(LiveStage::Running) => {}
                () = run.reached(LiveStage::HasTurn) => {}
                () = run.control.stopped() => {}
            }
        }
        run.stage() == LiveStage::Queued && run.control.requested().is_none()
    }

    /// Stores the run as a queued one, and begins it when its turn comes.
    pub(super) async fn enqueue(
        self: &Arc<Self>,
        admission: Box<Admission>,
    ) -> Result<StartedRun, StartError> {
        // Completes even if the client leaves, because a stored run has to begin.
        CompleteOnDrop::new(self.clone().enqueue_whole(admission)).await
    }

    async fn enqueue_whole(
        self: Arc<Self>,
        mut admission: Box<Admission>,
    ) -> Result<StartedRun, StartError> {
        let Admission { threads, key, place, request, anonymous, had_inline_media, .. } =
            &*admission;
        let (threads, key, run) = (threads.clone(), key.clone(), place.run.clone());
        let Some(queue) = threads.store.store.queue() else { return Err(StartError::QueueFull) };
        let stored =
            StoredRequest::queued(&request.input, anonymous, *had_inline_media, run.came_during());
        let stored = caller_of(stored, request).to_json();
        let asked = run.asked.as_ref().map(RequestDigest::as_str);
        let new = NewQueuedRun {
            key: &key,
            run_id: &run.run_id,
            asked,
            agent: request.agent.name(),
            request: &stored,
            holder: &threads.holder,
            now: now(),
            max_queued: threads.options.max_queued,
        };
        let logs = &threads.followed_logs;
        let follower = match queue.enqueue(&new).await? {
            Enqueued::Stored(queued) => {
                run.stored();
                admission.queued = Some(queued);
                let begin = self.clone().begin_queued(admission);
                // The task ends without a result only with the runtime.
                let begun = tokio::spawn(begin);
                let queued = async { begun.await.unwrap_or(Err(FollowError::HandedOver)) };
                Follower::from_queued_run(logs, key, run.run_id.clone(), None, queued)
            }
            // Another process has the same request.
            Enqueued::Exists(same) if asked.is_some() && same.asked.as_deref() == asked => {
                threads.follow_stored(same).map_err(|_| StartError::TooManyFollowers)?
            }
            Enqueued::Exists(_) => return Err(StartError::RunIsRunning),
            Enqueued::Full => return Err(StartError::QueueFull),
            Enqueued::NoThread => return Err(StartError::ThreadDeleted),
        };
        Ok(StartedRun::Detached { follower })
    }

    /// Begins a queued run when its turn comes. Removes it if it will not become a run.
    fn begin_queued(
        self: Arc<Self>,
        admission: Box<Admission>,
    ) -> BoxFuture<'static, Result<QueueEnd, FollowError>> {
        // Boxed because its type would contain itself.
        Box::pin(self.begin_unboxed(admission))
    }

    async fn begin_unboxed(
        self: Arc<Self>,
        admission: Box<Admission>,
    ) -> Result<QueueEnd, FollowError> {
        // Tells the same requests, also if this fails.
        let settled = SettledOnDrop(admission.place.run.clone());
        let end = self.begin_when_first(admission).await;
        settled.0.set_unbegun(match &end {
            Ok(QueueEnd::NotBegun(lines)) => Unbegun::Ended(lines.clone()),
            Err(FollowError::ThreadDeleted) => Unbegun::ThreadDeleted,
            Ok(QueueEnd::Begun(_)) | Err(_) => Unbegun::Elsewhere,
        });
        end
    }

    async fn begin_when_first(
        self: Arc<Self>,
        admission: Box<Admission>,
    ) -> Result<QueueEnd, FollowError> {
        let threads = admission.threads.clone();
        let Some(queued) = admission.queued.clone() else { return Err(FollowError::Gone) };
        let (thread, run) = (queued.key.id.as_str().to_owned(), queued.run_id.clone());
        let begun = self.wait_and_begin(admission);
        let begun = match time_left(threads.options.runs.detached_max, queued.queued_at) {
            Some(left) => timeout(left, begun).await.unwrap_or(Err(StartError::QueueFull)),
            None => begun.await,
        };
        let is_kept = match &begun {
            Ok(StartedRun::Detached { .. }) => true,
            // Another process begins it, or this one later.
            Err(StartError::ShuttingDown) => threads.store.store.is_durable(),
            Err(StartError::TooManyRunBytes) => true,
            Err(StartError::Store(error)) => error.is_transient(),
            _ => false,
        };
        if !is_kept
            && let Some(queue) = threads.store.store.queue()
            && let Err(error) = queue.remove_queued_run(queued.thread, &queued.run_id).await
        {
            tracing::warn!(thread, run = run.as_str(), %error, "an ended queued run is not removed");
        }
        if let Err(error) = &begun {
            tracing::warn!(thread, run = run.as_str(), %error, is_kept, "a queued run does not begin here");
        }
        match begun {
            Ok(StartedRun::Detached { follower }) => Ok(QueueEnd::Begun(Box::new(follower))),
            Ok(StartedRun::Unstored(mut run)) => {
                let mut events = Vec::new();
                while poll_fn(|cx| run.poll_progress(cx, &mut events)).await != Progress::Ended {}
                Ok(QueueEnd::NotBegun(events.iter().map(to_line).collect()))
            }
            Ok(StartedRun::Restated(run)) => {
                Ok(QueueEnd::NotBegun(run.events.iter().map(to_line).collect()))
            }
            // A detached run is never polled by its response, and a queued one waits here.
            Ok(StartedRun::Stored(_) | StartedRun::Awaited(_)) => Err(FollowError::Gone),
            Err(StartError::ThreadDeleted) => Err(FollowError::ThreadDeleted),
            Err(StartError::Store(error)) => Err(error.into()),
            Err(_) if is_kept => Err(FollowError::HandedOver),
            Err(error) => {
                let failure = RunError::new(error.refusal_code().name, error.to_string());
                Ok(QueueEnd::NotBegun(vec![to_line(&failure.into())]))
            }
        }
    }

    async fn wait_and_begin(
        self: &Arc<Self>,
        mut admission: Box<Admission>,
    ) -> Result<StartedRun, StartError> {
        let run = admission.place.run.clone();
        tokio::select! {
            () = run.reached(LiveStage::HasTurn) => {}
            () = run.control.stopped() => {}
        }
        if let Some(stop) = run.control.requested() {
            return self.launch_stopped(stop, admission.request);
        }
        admission.take_cached().await?;
        admission.begin_or_wait().await
    }

    /// Returns the run that another process has made of a queued run, or its end.
    pub(super) async fn dequeued(
        &self,
        admission: Box<Admission>,
    ) -> Result<StartedRun, StartError> {
        let Admission { threads, key, queued, request, .. } = *admission;
        let Some(queued) = queued else { return Err(StartError::ThreadDeleted) };
        if let Some(follower) = threads.begun_of(&queued).await? {
            return Ok(StartedRun::Detached { follower });
        }
        if threads.store.is_deleted(&key, queued.thread).await? {
            return Err(StartError::ThreadDeleted);
        }
        Ok(self.launch_cancelled(request))
    }

    /// Takes queued runs whose process is lost, or has given them away.
    pub(super) async fn take_lost_queued(
        self: &Arc<Self>,
        threads: &Arc<ThreadCore>,
    ) -> Result<(), StoreError> {
        let Some(queue) = threads.store.store.queue() else { return Ok(()) };
        let lease = Millis::try_from(threads.options.lease.as_millis()).unwrap_or(Millis::MAX);
        let lost = queue.lost_queued_runs(now().saturating_sub(lease), MAX_LOST).await?;
        for queued in lost {
            if threads.is_stopping() {
                break;
            }
            if threads.queue.find(&queued.key, &queued.run_id).is_none() {
                self.take_queued(threads, queue, queued).await?;
            }
        }
        Ok(())
    }

    async fn take_queued(
        self: &Arc<Self>,
        threads: &Arc<ThreadCore>,
        queue: &dyn RunQueue,
        queued: QueuedRun,
    ) -> Result<(), StoreError> {
        let QueuedRun { key, run_id, agent, .. } = &queued;
        let (thread, run) = (key.id.as_str().to_owned(), run_id.as_str().to_owned());
        let Some(json) = queue.queued_request(queued.number).await? else { return Ok(()) };
        let stored = match StoredRequest::from_json(&json) {
            Ok(stored) => stored,
            Err(error) => {
                tracing::error!(thread, run, %error, "a queued run cannot be read, and is removed");
                return queue.remove_queued_run(queued.thread, run_id).await.map(drop);
            }
        };
        let principal = stored.principal(&key.owner);
        let Some(permit) = self.lost_permit(threads, key, principal.as_ref(), &json).await? else {
            return Ok(());
        };
        let is_lost = !queued.holder.is_empty() && *queued.holder != *threads.holder;
        let lost = queued.takeovers + u64::from(is_lost);
        let (agent, failure) = match self.agents.get(Some(agent)) {
            Some(agent) if lost <= u64::from(threads.options.runs.max_continuations) => {
                (agent, None)
            }
            Some(agent) => (agent, Some("the server of this run was lost too often")),
            None => {
                let Some(other) = self.agents.iter().next() else { return Ok(()) };
                let agent = AgentEntry { name: agent.as_str().into(), agent: other.agent };
                (agent, Some("the agent of this run is not configured any more"))
            }
        };
        if !queue.take_queued_run(&queued, &threads.holder, now()).await? {
            return Ok(());
        }
        tracing::info!(thread, run, from = queued.holder, to = %threads.holder, "took over a queued run");
        let forwarded = stored.forwarded();
        let had_inline_media = stored.had_inline_media;
        let came_during = stored.came_during;
        let (input, anonymous) = stored.into_queued(key.id.clone(), run_id.clone());
        let asked = queued.asked.as_deref().map(RequestDigest::stored);
        let control = permit.live.control.clone();
        let arrival = Arrival {
            key,
            run_id,
            asked: asked.as_ref(),
            trigger: RunTrigger::Message,
            regenerates: false,
            control: &control,
        };
        // Its request has come meanwhile, too.
        let Ok(Entered::Place(place)) = threads.queue.enter(&arrival, usize::MAX) else {
            return Ok(());
        };
        if let Some(first) = came_during {
            place.run.note_came_during(first);
        }
        place.run.stored();
        let request = RunRequest { principal, forwarded, ..RunRequest::new(permit, agent, input) };
        let mut admission = Box::new(Admission::new(self, threads, key.clone(), place, request));
        (admission.anonymous, admission.had_inline_media) = (anonymous, had_inline_media);
        admission.failure = failure.map(|problem| (RunErrorCode::ServerLost, problem.to_owned()));
        admission.queued = Some(queued);
        tokio::spawn(self.clone().begin_queued(admission));
        Ok(())
    }
}

/// Settles a queued run whose task ends early.
struct SettledOnDrop(Arc<LiveRun>);

impl Drop for SettledOnDrop {
    fn drop(&mut self) {
        self.0.set_unbegun(Unbegun::Elsewhere);
    }
}

impl ThreadCore {
    /// Follows a queued run of this process from its begin.
    pub(crate) fn follow_queued(
        &self,
        key: &ThreadKey,
        run: &Arc<LiveRun>,
        called: &RunId,
    ) -> Result<Follower, LimitReached> {
        let permit = self.followers.try_take(&key.owner, 1)?;
        let (logs, key, run) = (self.followed_logs.clone(), key.clone(), run.clone());
        let id = run.run_id.clone();
        let begun = {
            let (logs, key, id) = (logs.clone(), key.clone(), id.clone());
            async move {
                match run.begun_or_not().await {
                    Ok(log) => {
                        let follower = Follower::from_live_log(&logs, key, id, log, None);
                        Ok(QueueEnd::Begun(Box::new(follower)))
                    }
                    Err(Unbegun::Ended(lines)) => Ok(QueueEnd::NotBegun(lines)),
                    Err(Unbegun::ThreadDeleted) => Err(FollowError::ThreadDeleted),
                    Err(Unbegun::Elsewhere) => Err(FollowError::HandedOver),
                }
            }
        };
        let follower = Follower::from_queued_run(&logs, key, id, Some(permit), begun);
        Ok(follower.called(called))
    }

    /// Follows a queued run from its begin, in any process.
    pub(crate) fn follow_stored(
        self: &Arc<Self>,
        queued: QueuedRun,
    ) -> Result<Follower, LimitReached> {
        let (key, id) = (queued.key.clone(), queued.run_id.clone());
        let permit = self.followers.try_take(&key.owner, 1)?;
        let begun = self.clone().begun_elsewhere(queued);
        Ok(Follower::from_queued_run(&self.followed_logs, key, id, Some(permit), begun))
    }

    /// Waits until a process has begun a queued run.
    async fn begun_elsewhere(self: Arc<Self>, queued: QueuedRun) -> Result<QueueEnd, FollowError> {
        loop {
            if let Ok(Some(follower)) = self.begun_of(&queued).await {
                return Ok(QueueEnd::Begun(Box::new(follower)));
            }
            let Some(queue) = self.store.store.queue() else { return Err(FollowError::Gone) };
            let runs = queue.queued_runs(&queued.key.owner, queued.thread).await?;
            if runs.iter().all(|run| run.number != queued.number)
                && self.begun_of(&queued).await.is_ok_and(|begun| begun.is_none())
            {
                let is_deleted = self.store.is_deleted(&queued.key, queued.thread).await?;
                // Most likely somebody cancelled it.
                return match is_deleted {
                    true => Err(FollowError::ThreadDeleted),
                    false => Ok(QueueEnd::NotBegun(cancelled(&queued))),
                };
            }
            sleep(POLL).await;
        }
    }

    /// Follows the run that a queued run has become.
    async fn begun_of(&self, queued: &QueuedRun) -> Result<Option<Follower>, StartError> {
        let QueuedRun { key, thread, run_id, asked, queued_at, .. } = queued;
        let run = self.store.run(&key.owner, *thread, run_id).await?;
        let is_it = |asked_of: &Option<String>, at| asked_of == asked && at >= *queued_at;
        let Some(run) = run.filter(|run| run.detached && is_it(&run.asked, run.started_at)) else {
            return Ok(None);
        };
        let permit =
            self.followers.try_take(&key.owner, 1).map_err(|_| StartError::TooManyFollowers)?;
        let logs = &self.followed_logs;
        Ok(Some(Follower::from_stored_run(logs, key.clone(), &run, 0, permit)))
    }

    /// Lists the queued runs of a thread, the next one first.
    pub(super) async fn queued_runs(
        &self,
        owner: &str,
        thread: ThreadNumber,
    ) -> Result<Vec<QueuedRun>, StoreError> {
        match self.store.store.queue() {
            Some(queue) => queue.queued_runs(owner, thread).await,
            None => Ok(Vec::new()),
        }
    }

    /// Gives the queued runs of this process to others.
    pub(super) async fn release_queued(&self) {
        if let Some(queue) = self.store.store.queue()
            && let Err(error) = queue.release_queued_runs(&self.holder).await
        {
            tracing::warn!(%error, "queued runs are not released: other servers take them later");
        }
    }
}

/// Returns the time that a queued run has left. `None` is unlimited.
fn time_left(max: Option<Duration>, queued_at: Millis) -> Option<Duration> {
    Some(max?.saturating_sub(Duration::from_millis(now().abs_diff(queued_at))))
}

/// Returns the lines of a run that was cancelled before its turn.
fn cancelled(queued: &QueuedRun) -> Vec<String> {
    let (thread, run) = (&queued.key.id, &queued.run_id);
    let started = RunStarted::new(thread.clone(), run.clone());
    let finished = RunFinished::new(thread.clone(), run.clone(), RunOutcome::Cancelled);
    vec![to_line(&started.into()), to_line(&finished.into())]
}
