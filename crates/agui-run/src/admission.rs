//! Begins a run in the store, once it has its turn in this process and no other process runs the
//! thread.

use std::sync::Arc;

use super::{
    conversation::{
        asked::RequestDigest,
        branch::LoadedThread,
        plan::{ClientInput, Plan, Planned, name_messages},
        snapshots::remove_placeholders,
        title::title_of,
    },
    drive::driver::run_started,
    earlier_attempt::EarlierAttempt,
    events::thread_event_hub::ThreadChange,
    limits::start_error::StartError,
    log::{live::to_line, retracted::retracted},
    persist::stored_request::StoredRequest,
    request::{RunRequest, StartedRun},
    runs::Runs,
    turn::{queue::RunPlace, thread_core::ThreadCore},
};
use agui_agent::AgentEffects;
use agui_base::RunErrorCode;
use agui_store::{
    BeginOutcome, Begun, Lease, Millis, NewRun, QueuedRun, RunNumber, RunRecord, StoreError,
    ThreadKey, ThreadNumber, ThreadSize, host::now,
};

/// A run that has its turn in this process, until it has begun in the store.
pub(super) struct Admission {
    pub(super) runs: Arc<Runs>,
    pub(super) threads: Arc<ThreadCore>,
    pub(super) key: ThreadKey,
    pub(super) place: RunPlace,
    pub(super) request: RunRequest,
    /// The positions of the client's messages that came without an id.
    pub(super) anonymous: Vec<usize>,
    /// The thread as it was last read; `None` if it is assumed to be new.
    pub(super) loaded: Option<LoadedThread>,
    /// True if `loaded` was read for this run, so that it is not older than the request.
    pub(super) is_read: bool,
    /// True if retracted messages of the client were left out.
    shows_retracted: bool,
    /// True if messages of the attempt that this one replaces were left out.
    pub(super) shows_earlier_answer: bool,
    /// True if the client sent data that were stored as files.
    pub(super) had_inline_media: bool,
    /// The newest run of the same request that is not the reason to refuse this one.
    pub(super) known: RunNumber,
    /// True if the run retries an attempt.
    pub(super) retries: bool,
    /// The attempt that the run continues.
    pub(super) earlier: Option<Box<EarlierAttempt>>,
    /// The thread on which it has waited for another run.
    pub(super) waits_for: Option<ThreadNumber>,
    /// The queued run that this one was.
    pub(super) queued: Option<QueuedRun>,
    /// The reason why the agent does not run.
    pub(super) failure: Option<(RunErrorCode, String)>,
}

/// A run as it has begun in the store.
pub(super) struct BegunRun {
    pub(super) stored: Begun,
    /// The time when the thread was created.
    pub(super) created_at: Millis,
    pub(super) request_bytes: u64,
    /// The first line of its log, if it has one from its start.
    pub(super) first_line: Option<String>,
}

/// The result of trying to begin a run.
pub(super) enum BeginAttempt {
    Begun(StartedRun),
    /// The same request has an ended run.
    Known(Box<Admission>, Box<RunRecord>),
    /// The queued run has begun elsewhere, or was removed.
    Dequeued(Box<Admission>),
    /// Another process holds a queued run of the thread before this one.
    Behind(Box<Admission>, ThreadNumber),
    /// Another process runs `run` on the thread. The lease is `Some` if that run is lost.
    Busy(Box<Admission>, Box<RunRecord>, Option<Lease>),
}

impl Runs {
    pub(super) async fn admit(
        self: &Arc<Self>,
        threads: &Arc<ThreadCore>,
        key: ThreadKey,
        place: RunPlace,
        request: RunRequest,
    ) -> Result<StartedRun, StartError> {
        let mut admission = Admission::prepare(self, threads, key, place, request).await?;
        admission.take_cached().await?;
        admission.begin_or_wait().await
    }
}

impl Admission {
    pub(super) fn new(
        runs: &Arc<Runs>,
        threads: &Arc<ThreadCore>,
        key: ThreadKey,
        place: RunPlace,
        request: RunRequest,
    ) -> Self {
        Self {
            runs: runs.clone(),
            threads: threads.clone(),
            key,
            place,
            request,
            anonymous: Vec::new(),
            loaded: None,
            is_read: false,
            shows_retracted: false,
            shows_earlier_answer: false,
            had_inline_media: false,
            known: RunNumber::default(),
            retries: false,
            earlier: None,
            waits_for: None,
            queued: None,
            failure: None,
        }
    }

    /// Stores the media of a request, and names its messages.
    pub(super) async fn prepare(
        runs: &Arc<Runs>,
        threads: &Arc<ThreadCore>,
        key: ThreadKey,
        place: RunPlace,
        mut request: RunRequest,
    ) -> Result<Box<Self>, StartError> {
        threads.check_stored_bytes(&key.owner).await?;
        let had_inline_media = threads.absorb(&key.owner, &mut request.input.messages).await?;
        remove_placeholders(&mut request.input.messages);
        let anonymous = name_messages(&mut request.input.messages);
        let new = Self::new(runs, threads, key, place, request);
        Ok(Box::new(Self { anonymous, had_inline_media, ..new }))
    }

    /// Takes the thread as the last run of this process left it.
    pub(super) async fn take_cached(&mut self) -> Result<(), StartError> {
        let (loaded, bytes) = self.threads.cache.take(&self.key).unzip();
        if let (Some(memory), Some(bytes)) = (&self.request.permit.memory, bytes) {
            memory.thread(bytes).await?;
        }
        self.loaded = loaded;
        Ok(())
    }

    /// True for a message whose run continues without its page, unless it is stored already.
    pub(super) fn is_storable(&self) -> bool {
        self.queued.is_none()
            && self.request.is_storable()
            && self.threads.store.store.queue().is_some()
    }

    /// Plans the run, begins and launches it. While the store says that the thread has changed,
    /// reads the thread and tries again.
    pub(super) async fn begin(mut self: Box<Self>) -> Result<BeginAttempt, StartError> {
        loop {
            self.leave_out_retracted().await?;
            let plan = match self.plan().await? {
                Some(Planned::Begin(plan)) => plan.failing(self.failure.clone()),
                Some(Planned::Restate(replies)) if self.is_read => {
                    return Ok(BeginAttempt::Begun(self.respond_without_run(&replies)));
                }
                Some(Planned::Restate(_)) | None => {
                    self.load().await?;
                    continue;
                }
            };
            let Self { threads, key, request, loaded, earlier, .. } = &*self;
            let has_log = request.permit.detached.is_some() || earlier.is_some();
            let stored = has_log.then(|| stored_request(request, &plan, self.had_inline_media));
            let first_line = has_log.then(|| match earlier {
                Some(earlier) => earlier.first_line(),
                None => to_line(&run_started(&request.input)),
            });
            let now = now();
            match self.begin_with(&plan, stored.as_deref(), first_line.as_deref(), now).await? {
                BeginOutcome::Known(run) => return Ok(BeginAttempt::Known(self, run)),
                BeginOutcome::Begun(begun) => {
                    if loaded.is_none() {
                        threads.count_new_thread();
                    }
                    threads.publish(key, ThreadChange::Begun);
                    let request_bytes = stored.map_or(0, |stored| stored.len() as u64);
                    let created_at = loaded.as_ref().map_or(now, |loaded| loaded.created_at);
                    let begun = BegunRun { stored: begun, created_at, request_bytes, first_line };
                    let started = self.launch(*plan, begun);
                    return Ok(BeginAttempt::Begun(started));
                }
                BeginOutcome::TooLarge(ThreadSize { messages, bytes }) => {
                    return Err(StartError::ThreadTooLarge { messages, bytes });
                }
                BeginOutcome::Busy { run, lost } => {
                    return Ok(BeginAttempt::Busy(self, Box::new(run), lost));
                }
                BeginOutcome::Dequeued => return Ok(BeginAttempt::Dequeued(self)),
                BeginOutcome::Behind => {
                    let thread = self.queued.as_ref().map(|queued| queued.thread);
                    return Ok(BeginAttempt::Behind(self, thread.unwrap_or_default()));
                }
                BeginOutcome::Changed => self.load().await?,
            }
        }
    }

    /// Plans the run. Returns `None` if the thread has to be read first.
    async fn plan(&mut self) -> Result<Option<Planned>, StoreError> {
        if let (Some(earlier), Some(loaded)) = (&self.earlier, &self.loaded) {
            if earlier.version == loaded.version {
                return Ok(Some(Planned::Begin(Box::new(earlier.plan(loaded)))));
            }
            // The thread has moved, so the request is compared again.
            (self.earlier, self.known, self.retries) = (None, RunNumber::default(), false);
        } else if self.earlier.is_some() {
            return Ok(None);
        }
        let Self { threads, key, place, request, anonymous, loaded, shows_retracted, .. } = self;
        let client = ClientInput {
            owner: &key.owner,
            input: &request.input,
            anonymous,
            came_during: place.run.came_during(),
            shows_retracted: *shows_retracted,
            is_reply: request.is_reply,
        };
        Plan::make(&threads.store, key, loaded.as_ref(), client).await
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
        let number = self.loaded.as_ref().map(|loaded| loaded.version.number);
        if self.waits_for.is_some() && self.waits_for != number {
            return Err(StartError::ThreadDeleted);
        }
        if let (Some(memory), Some(loaded)) = (memory, &self.loaded) {
            memory.read_thread(loaded.memory_bytes());
        }
        Ok(())
    }

    async fn begin_with(
        &self,
        plan: &Plan,
        stored: Option<&str>,
        first_line: Option<&str>,
        now: Millis,
    ) -> Result<BeginOutcome, StartError> {
        let Self { threads, loaded, request: RunRequest { input, agent, .. }, .. } = self;
        let branch = plan.branch_write(loaded.as_ref());
        let interrupts = if plan.resume.is_ok() { &[][..] } else { &plan.open_interrupts };
        let title = branch.new.iter().find_map(|(message, _)| title_of(message));
        let run = NewRun {
            key: &self.key,
            run_id: &input.run_id,
            agent: agent.name(),
            detached: first_line.is_some(),
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
            queued: self.queued.as_ref().map(|queued| queued.number),
            continues: self.retries
                || (!input.resume.is_empty() && plan.matched.appended.is_empty()),
            request: stored,
            started: first_line,
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
            && self.earlier.is_none()
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
    let stored =
        if request.agent.agent.can_continue() { caller_of(stored, request) } else { stored };
    stored.to_json()
}

/// Adds the caller of a request to its stored part.
pub(super) fn caller_of<'a>(
    stored: StoredRequest<'a>,
    request: &'a RunRequest,
) -> StoredRequest<'a> {
    stored.with_caller(request.principal.as_ref(), &request.forwarded)
}
