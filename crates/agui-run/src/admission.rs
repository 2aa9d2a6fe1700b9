//! Begins a run in the store, once it has its turn in this process and no other process runs the
//! thread.

use std::{sync::Arc, time::Duration};

use tokio::time::{Instant, sleep, timeout};

use super::{
    control::Stop,
    conversation::{
        asked::RequestDigest,
        branch::LoadedThread,
        plan::{ClientInput, Plan, Planned, name_messages},
        repeated::{Repeated, newest_continuing},
        snapshots::remove_placeholders,
        title::title_of,
    },
    drive::driver::run_started,
    events::thread_event_hub::ThreadChange,
    limits::start_error::StartError,
    log::{Follower, live::to_line, retracted::retracted},
    options::ConcurrentRuns,
    persist::stored_request::StoredRequest,
    request::{RunRequest, StartedRun},
    restate::{RestatedRun, StoredEnd},
    runs::Runs,
    turn::{live_run::RunTrigger, queue::RunPlace, thread_core::ThreadCore},
};
use agui_agent::AgentEffects;
use agui_base::complete_on_drop::CompleteOnDrop;
use agui_protocol::Message;
use agui_store::{
    BeginOutcome, Begun, EndedRun, Lease, LostRun, MessageNumber, Millis, NewRun, RunNumber,
    RunRecord, RunStatus, SharedStore, StoreError, ThreadKey, ThreadNumber, ThreadParts,
    ThreadSize, Topic, host::now,
};

/// The first and the longest interval of polling a thread that another process uses, while no signals arrive.
const POLL_BACKOFF: [Duration; 2] = [Duration::from_millis(25), Duration::from_millis(400)];
/// The interval while signals arrive. Signals can be lost.
const SLOW_POLL: Duration = Duration::from_secs(2);

/// A run that has its turn in this process, until it has begun in the store.
pub(super) struct Admission {
    pub(super) runs: Arc<Runs>,
    pub(super) threads: Arc<ThreadCore>,
    pub(super) key: ThreadKey,
    pub(super) place: RunPlace,
    pub(super) request: RunRequest,
    /// The positions of the client's messages that came without an id.
    anonymous: Vec<usize>,
    /// The thread as it was last read; `None` if it is assumed to be new.
    pub(super) loaded: Option<LoadedThread>,
    /// True if `loaded` was read for this run, so that it is not older than the request.
    is_read: bool,
    /// True if retracted messages of the client were left out.
    shows_retracted: bool,
    /// True if the client sent data that were stored as files.
    pub(super) had_inline_media: bool,
    /// The newest run of the same request that is not the reason to refuse this one.
    known: RunNumber,
    /// True if the run retries an attempt.
    retries: bool,
}

/// A run as it has begun in the store.
pub(super) struct BegunRun {
    pub(super) stored: Begun,
    /// The time when the thread was created.
    pub(super) created_at: Millis,
    pub(super) request_bytes: u64,
}

/// What a request gets whose earlier run has ended.
enum Repetition {
    Restated(RestatedRun),
    /// It begins a new attempt.
    Anew(Box<Admission>),
}

/// The result of trying to begin a run.
enum BeginAttempt {
    Begun(StartedRun),
    /// The same request has an ended run.
    Known(Box<Admission>, Box<RunRecord>),
    /// Another process runs `run` on the thread. The lease is `Some` if that run is lost.
    Busy(Box<Admission>, Box<RunRecord>, Option<Lease>),
}

impl Runs {
    pub(super) async fn admit(
        self: &Arc<Self>,
        threads: &Arc<ThreadCore>,
        key: ThreadKey,
        place: RunPlace,
        mut request: RunRequest,
    ) -> Result<StartedRun, StartError> {
        threads.check_stored_bytes(&key.owner).await?;
        let deadline = Instant::now() + threads.options.queue_timeout;
        let [mut poll, longest] = POLL_BACKOFF;
        let had_inline_media = threads.absorb(&key.owner, &mut request.input.messages).await?;
        let (loaded, bytes) = threads.cache.take(&key).unzip();
        if let (Some(memory), Some(bytes)) = (&request.permit.memory, bytes) {
            memory.thread(bytes).await?;
        }
        remove_placeholders(&mut request.input.messages);
        let anonymous = name_messages(&mut request.input.messages);
        let (runs, threads) = (self.clone(), threads.clone());
        let mut admission = Box::new(Admission {
            runs,
            threads,
            key,
            place,
            request,
            anonymous,
            loaded,
            is_read: false,
            shows_retracted: false,
            had_inline_media,
            known: RunNumber::default(),
            retries: false,
        });
        loop {
            // Completes even if the client leaves, because a run that was begun has to be ended.
            let (same, run, lost) = match CompleteOnDrop::new(admission.begin()).await? {
                BeginAttempt::Begun(started) => return Ok(started),
                BeginAttempt::Known(same, run) => match same.repeat(*run).await? {
                    Repetition::Restated(restated) => return Ok(StartedRun::Restated(restated)),
                    Repetition::Anew(same) => {
                        admission = same;
                        continue;
                    }
                },
                BeginAttempt::Busy(admission, run, lost) => (admission, run, lost),
            };
            admission = same;
            let Admission { threads, key, place, request, .. } = &*admission;
            // Maintenance closes lost runs of this process.
            if let Some(lost) = lost.filter(|lost| lost.holder != threads.holder) {
                let lost = LostRun { key: key.clone(), run_id: run.id.clone(), lease: lost };
                // Boxed because it is large and rare.
                match Box::pin(self.continue_or_close(threads, &lost)).await {
                    // `LeaseLost`: another process closed the run, or the thread was deleted.
                    Ok(true) | Err(StoreError::LeaseLost) => continue,
                    // Another server may be able to continue it.
                    Ok(false) => {}
                    Err(error) => return Err(error.into()),
                }
            }
            if run.id == request.input.run_id
                && let Some(followed) = admission.follow_or_reject(&run)?
            {
                return Ok(followed);
            }
            admission.reject_or_supersede(&run).await?;
            if Instant::now() >= deadline {
                return Err(StartError::QueueFull);
            }
            tokio::select! {
                () = threads.wait_for_free_thread(run.thread, poll) => {}
                () = place.run.control.stopped() => {}
            }
            match place.run.control.requested() {
                None => {}
                Some(Stop::Shutdown) => return Err(StartError::ShuttingDown),
                Some(_) => return Ok(self.launch_cancelled(admission.request)),
            }
            poll = (poll * 2).min(longest);
        }
    }
}

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
    /// Plans the run, begins and launches it. While the store says that the thread has changed,
    /// reads the thread and tries again.
    async fn begin(mut self: Box<Self>) -> Result<BeginAttempt, StartError> {
        loop {
            self.leave_out_retracted().await?;
            let Self { threads, key, request, anonymous, loaded, shows_retracted, .. } = &*self;
            let client = ClientInput {
                owner: &key.owner,
                input: &request.input,
                anonymous,
                shows_retracted: *shows_retracted,
                is_reply: request.is_reply,
            };
            let plan = match Plan::make(&threads.store, key, loaded.as_ref(), client).await? {
                Some(Planned::Begin(plan)) => plan,
                Some(Planned::Restate(replies)) if self.is_read => {
                    return Ok(BeginAttempt::Begun(self.respond_without_run(&replies)));
                }
                Some(Planned::Restate(_)) | None => {
                    self.load().await?;
                    continue;
                }
            };
            let stored = request
                .permit
                .detached
                .is_some()
                .then(|| stored_request(request, &plan, self.had_inline_media));
            let now = now();
            match self.begin_with(&plan, stored.as_deref(), now).await? {
                BeginOutcome::Known(run) => return Ok(BeginAttempt::Known(self, run)),
                BeginOutcome::Begun(begun) => {
                    if loaded.is_none() {
                        threads.count_new_thread();
                    }
                    threads.publish(key, ThreadChange::Begun);
                    let request_bytes = stored.map_or(0, |stored| stored.len() as u64);
                    let created_at = loaded.as_ref().map_or(now, |loaded| loaded.created_at);
                    let begun = BegunRun { stored: begun, created_at, request_bytes };
                    let started = self.launch(*plan, begun);
                    return Ok(BeginAttempt::Begun(started));
                }
                BeginOutcome::TooLarge(ThreadSize { messages, bytes }) => {
                    return Err(StartError::ThreadTooLarge { messages, bytes });
                }
                BeginOutcome::Busy { run, lost } => {
                    return Ok(BeginAttempt::Busy(self, Box::new(run), lost));
                }
                BeginOutcome::Changed => self.load().await?,
            }
        }
    }

    /// Follows a run of another process that has the id of this one. Returns `None` if its end has to be awaited.
    fn follow_or_reject(&self, run: &RunRecord) -> Result<Option<StartedRun>, StartError> {
        let Self { threads, key, place, .. } = self;
        let asked = place.run.asked.as_ref().map(RequestDigest::as_str);
        if asked.is_none() || run.asked.as_deref() != asked {
            let is_reply = self.request.trigger() == RunTrigger::Reply;
            return if is_reply { Ok(None) } else { Err(StartError::RunIsRunning) };
        }
        if !run.detached {
            return Ok(None);
        }
        let permit =
            threads.followers.try_take(&key.owner, 1).map_err(|_| StartError::TooManyFollowers)?;
        let logs = &threads.followed_logs;
        let follower = Follower::from_stored_run(logs, key.clone(), run, 0, permit);
        Ok(Some(StartedRun::Detached { follower, snapshots: Vec::new() }))
    }

    /// Decides what this request gets, after the same request's run has ended.
    async fn repeat(mut self: Box<Self>, same: RunRecord) -> Result<Repetition, StartError> {
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

    /// Fails, or requests the cancellation of the run of another process, by `concurrent_runs`.
    async fn reject_or_supersede(&self, run: &RunRecord) -> Result<(), StartError> {
        match self.threads.options.concurrent_runs {
            ConcurrentRuns::Reject => return Err(StartError::ThreadIsBusy),
            ConcurrentRuns::Supersede if self.request.trigger() == RunTrigger::Message => {
                if let Some(shared) = self.threads.store.shared() {
                    shared.request_cancel(run.thread, &run.id).await?;
                }
            }
            ConcurrentRuns::Queue | ConcurrentRuns::Supersede => {}
        }
        Ok(())
    }

    /// Leaves out the client's messages that a run of the thread has retracted.
    async fn leave_out_retracted(&mut self) -> Result<(), StoreError> {
        let Self { threads, key, request, anonymous, loaded, .. } = self;
        let Some(loaded) = loaded else { return Ok(()) };
        let messages = &mut request.input.messages;
        let retracted = retracted(&threads.store, key, &loaded.branch, messages).await?;
        if retracted.is_empty() {
            return Ok(());
        }
        tracing::info!(
            count = retracted.len(),
            "left out messages of the client that a run has retracted"
        );
        let mut is_anonymous: Vec<_> =
            (0..messages.len()).map(|at| anonymous.binary_search(&at).is_ok()).collect();
        let mut kept = messages.iter().map(|message| !retracted.contains(message.id()));
        is_anonymous.retain(|_| kept.next().unwrap_or_default());
        *anonymous = (0..)
            .zip(is_anonymous)
            .filter_map(|(at, is_anonymous)| is_anonymous.then_some(at))
            .collect();
        messages.to_mut().retain(|message| !retracted.contains(message.id()));
        self.shows_retracted = true;
        Ok(())
    }

    /// Reads the thread, after it has waited for the memory.
    async fn load(&mut self) -> Result<(), StartError> {
        self.loaded = None;
        let memory = self.request.permit.memory.as_ref();
        if let Some(memory) = memory
            && let Some(size) = self.threads.size(&self.key).await?
        {
            memory.unread_thread(size).await?;
        }
        self.loaded = self.threads.load(&self.key).await?;
        self.is_read = true;
        if let (Some(memory), Some(loaded)) = (memory, &self.loaded) {
            memory.read_thread(loaded.memory_bytes());
        }
        Ok(())
    }

    async fn begin_with(
        &self,
        plan: &Plan,
        stored: Option<&str>,
        now: Millis,
    ) -> Result<BeginOutcome, StartError> {
        let Self { threads, loaded, request: RunRequest { input, agent, permit, .. }, .. } = self;
        let branch = plan.branch_write(loaded.as_ref());
        let interrupts = if plan.resume.is_ok() { &[][..] } else { &plan.open_interrupts };
        let title = branch.new.iter().find_map(|(message, _)| title_of(message));
        let started = permit.detached.is_some().then(|| to_line(&run_started(input)));
        let run = NewRun {
            key: &self.key,
            run_id: &input.run_id,
            agent: agent.name(),
            detached: permit.detached.is_some(),
            holder: &threads.holder,
            now,
            lease_until: threads.lease_until(now),
            expected: loaded.as_ref().map(|loaded| loaded.version),
            title: title.as_deref(),
            branch,
            first_run: plan.first_run,
            state: plan.state.as_ref().filter(|_| plan.state_number.is_none()),
            state_number: plan.state_number,
            interrupts,
            answered: plan.stored_replies(loaded.as_ref()),
            asked: self.place.run.asked.as_ref().map(RequestDigest::as_str),
            known: self.known,
            continues: self.retries
                || (!input.resume.is_empty() && plan.matched.appended.is_empty()),
            request: stored,
            started: started.as_deref(),
            max_size: ThreadSize {
                messages: threads.options.max_messages,
                bytes: threads.options.max_bytes,
            },
        };
        Ok(threads.store.begin(&run).await?)
    }
}

impl Admission {
    /// Returns the request for the server that continues the run, to be stored when the run gets a log. `None` if the run has one
    /// from its start, or if nothing has to be continued.
    pub(super) fn later_request(&self, plan: &Plan) -> Option<String> {
        let Self { threads, request, had_inline_media, .. } = self;
        let agent = &request.agent.agent;
        let is_needed = request.permit.detached.is_none()
            && agent.can_continue()
            && agent.effects() != AgentEffects::None
            && threads.store.store.is_durable();
        is_needed.then(|| stored_request(request, plan, *had_inline_media))
    }
}

/// Returns the stored part of a detached run's request, without messages and state.
fn stored_request(request: &RunRequest, plan: &Plan, had_inline_media: bool) -> String {
    let stored = StoredRequest::new(&request.input, plan, had_inline_media);
    let stored =
        if request.permit.detached.is_none() { stored.ending_with_clients() } else { stored };
    if request.agent.agent.can_continue() {
        stored.with_caller(request.principal.as_ref(), &request.forwarded).to_json()
    } else {
        stored.to_json()
    }
}
