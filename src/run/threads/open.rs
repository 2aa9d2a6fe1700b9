//! How a request becomes a run on a thread.

use std::{sync::Arc, time::Duration};

use futures::future::BoxFuture;
use tokio::{
    sync::{OwnedSemaphorePermit, TryAcquireError},
    time::{Instant, sleep, timeout_at},
};

use super::{
    ConcurrentRuns, ForegroundRun, OnDisconnect, Threads,
    active::{ActiveRun, Registration},
    detached,
    lanes::{Entered, Turn},
    reconcile::reconcile,
    recorded::{Hold, Recorded},
    resume::{Verdict, judge},
    through::Through,
};
use crate::{
    agent::{Forwarded, Principal},
    protocol::{
        Event, Message, RunAgentInput,
        event::{MessagesSnapshot, RunError, RunFinished, RunOutcome, StateSnapshot},
    },
    run::{
        AgentEntry, Drive as _, RunLimits, Slot, Transcript,
        log::{LiveLog, Tail},
    },
    store::{Begin, Lease, NewRun, RunEnd, RunRecord, RunStatus, StoreError, Thread, ThreadContent, now},
};

/// How often a thread that another process runs is asked for, at first and at most.
const POLL: [Duration; 2] = [Duration::from_millis(25), Duration::from_millis(400)];

/// What is asked of a thread.
pub struct RunRequest {
    /// The right to a run.
    pub slot: Slot,
    /// The agent that answers.
    pub agent: AgentEntry,
    /// The client's input.
    pub input: RunAgentInput,
    /// Who asks.
    pub principal: Option<Principal>,
    /// The request's headers that are meant for agents.
    pub forwarded: Forwarded,
    /// What happens when the client leaves; `None` leaves it to the configuration.
    pub on_disconnect: Option<OnDisconnect>,
}

/// A run that was opened.
#[allow(clippy::large_enum_variant, reason = "it is taken apart at once, and nearly all of them are the large one")]
pub enum Opened {
    /// It lives in its response.
    Foreground(ForegroundRun),
    /// It has a log, which is the response: from its first event on.
    Detached(Tail),
}

/// Why a run was not opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The thread is somebody else's, of whom nothing is said.
    #[error("there is no such thread")]
    NotFound,
    /// This very run is running, and lives in another response.
    #[error("this run is running already")]
    Running,
    /// Another run of the thread is running, and runs do not wait.
    #[error("another run of this thread is running")]
    Busy,
    /// Too many runs wait for the thread, or this one has waited for too long.
    #[error("too many runs of this thread are waiting")]
    QueueFull,
    /// As many detached runs as may be are running.
    #[error("the server has as many detached runs as it may")]
    TooManyDetached,
    /// The client sent instructions, which it may not; at this place in its messages.
    #[error("messages of this role are not accepted from clients")]
    Instructions(usize),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Threads {
    /// Opens a run: waits for its turn, if need be, and stores that it has begun.
    ///
    /// # Errors
    /// An [`OpenError`]; nothing has happened then.
    pub fn open(self: &Arc<Self>, request: RunRequest) -> BoxFuture<'_, Result<Opened, OpenError>> {
        // It is large, and whoever waits for it, such as a request's handler, is moved from place to place before.
        Box::pin(self.open_here(request))
    }

    async fn open_here(self: &Arc<Self>, request: RunRequest) -> Result<Opened, OpenError> {
        self.start();
        self.check_instructions(&request.input.messages)?;
        let detached = request
            .on_disconnect
            .or_else(|| self.options.on_disconnect_of.get(request.agent.name()).copied())
            .unwrap_or(self.options.on_disconnect)
            == OnDisconnect::Continue;
        let new = NewRun {
            thread_id: request.input.thread_id.clone(),
            run_id: request.input.run_id.clone(),
            owner: request.principal.as_ref().map(|principal| principal.name().to_owned()),
            agent: request.agent.name().to_owned(),
            detached,
            holder: self.holder.clone(),
            now: now(),
            until: 0,
        };
        // Before the queue: what is running in this process is known without asking, and a stranger must not take
        // anybody's place.
        if let Some(active) = self.active.of(&new.thread_id) {
            if active.owner != new.owner {
                return Err(OpenError::NotFound);
            }
            if *active.run_id() == new.run_id {
                let log = active.log.clone().ok_or(OpenError::Running)?;
                return Ok(self.attach(active.lease.run_number, &new, Some(log)));
            }
        }
        let permit = if detached { Some(self.detached_permit()?) } else { None };
        let deadline = Instant::now() + self.options.queue_timeout;
        let turn = self.turn(&new, deadline).await?;
        match self.begin(new, turn, deadline).await? {
            Begun::Fresh(begun, thread) => self.run(request, *begun, *thread, permit).await,
            Begun::Elsewhere(run, new) => Ok(self.attach(run.number, &new, None)),
        }
    }

    fn check_instructions(&self, messages: &[Message]) -> Result<(), OpenError> {
        if self.options.accept_instructions {
            return Ok(());
        }
        let place = messages.iter().position(|m| matches!(m, Message::System(_) | Message::Developer(_)));
        place.map_or(Ok(()), |place| Err(OpenError::Instructions(place)))
    }

    fn detached_permit(&self) -> Result<OwnedSemaphorePermit, OpenError> {
        self.detached.clone().try_acquire_owned().map_err(|error| match error {
            TryAcquireError::NoPermits | TryAcquireError::Closed => OpenError::TooManyDetached,
        })
    }

    /// Follows the run that is running, from its beginning.
    fn attach(&self, number: i64, new: &NewRun, log: Option<Arc<LiveLog>>) -> Opened {
        tracing::info!(thread = ?new.thread_id, run = ?new.run_id, "following a run that is running already");
        let run = (new.thread_id.clone(), new.run_id.clone(), number);
        Opened::Detached(Tail::new(self.store.clone(), run, 0, log))
    }

    /// Waits for the turn among the runs of this process.
    async fn turn(&self, new: &NewRun, deadline: Instant) -> Result<Turn, OpenError> {
        let max = match self.options.concurrent_runs {
            ConcurrentRuns::Reject => 0,
            _ => self.options.max_queued,
        };
        let place = match self.lanes.enter(&new.thread_id, &new.run_id, max) {
            Entered::Place(place) => place,
            // It would wait for itself, and then run twice.
            Entered::Twice => return Err(OpenError::Running),
            Entered::Full if max == 0 => return Err(OpenError::Busy),
            Entered::Full => return Err(OpenError::QueueFull),
        };
        if self.options.concurrent_runs == ConcurrentRuns::Supersede
            && let Some(active) = self.active.of(&new.thread_id)
        {
            active.control.cancel();
        }
        timeout_at(deadline, place.turn()).await.map_err(|_| OpenError::QueueFull)
    }

    /// Begins the run in the store, when no other process has one on the thread any more.
    async fn begin(self: &Arc<Self>, mut new: NewRun, mut turn: Turn, deadline: Instant) -> Result<Begun, OpenError> {
        let [mut poll, slowest] = POLL;
        let asked_at = now();
        loop {
            new.now = now();
            new.until = self.until(new.now);
            // Also when the client leaves in the middle: what the store has begun must be ended.
            let (threads, asked) = (self.clone(), new.clone());
            let (run, lost) = match Through::new(async move { threads.begin_once(&asked, turn).await }).await? {
                Attempt::Begun(begun, thread) => return Ok(Begun::Fresh(begun, thread)),
                Attempt::NotYours => return Err(OpenError::NotFound),
                Attempt::Busy { run, lost, turn: back } => {
                    turn = back;
                    (run, lost)
                }
            };
            if let Some(lost) = lost {
                self.recover(&lost).await?;
                continue;
            }
            if run.run_id == new.run_id {
                return if run.detached { Ok(Begun::Elsewhere(run, new)) } else { Err(OpenError::Running) };
            }
            match self.options.concurrent_runs {
                ConcurrentRuns::Reject => return Err(OpenError::Busy),
                ConcurrentRuns::Supersede => {
                    self.store.request_cancel(&run.thread_id, &run.run_id).await?;
                }
                ConcurrentRuns::Queue => {}
            }
            if Instant::now() >= deadline {
                return Err(OpenError::QueueFull);
            }
            sleep(poll).await;
            poll = (poll * 2).min(slowest);
            // Another process may have run this very run meanwhile.
            let same = self.store.run(&new.thread_id, &new.run_id).await?;
            if let Some(same) = same.filter(|same| same.started_at >= asked_at) {
                return if same.detached { Ok(Begun::Elsewhere(Box::new(same), new)) } else { Err(OpenError::Running) };
            }
        }
    }

    async fn begin_once(self: &Arc<Self>, new: &NewRun, turn: Turn) -> Result<Attempt, StoreError> {
        Ok(match self.store.begin(new).await? {
            Begin::NotYours => Attempt::NotYours,
            Begin::Busy { run, lost } => Attempt::Busy { run: Box::new(run), lost, turn },
            Begin::Begun { lease, thread, replaced } => {
                if replaced {
                    tracing::warn!(thread = ?new.thread_id, run = ?new.run_id, "a run with the id of an ended one replaces it");
                }
                let begun = BegunRun { threads: self.clone(), owner: new.owner.clone(), lease, turn: Some(turn) };
                Attempt::Begun(Box::new(begun), Box::new(thread))
            }
        })
    }

    /// Starts what has begun.
    async fn run(
        self: &Arc<Self>,
        request: RunRequest,
        mut begun: BegunRun,
        thread: Thread,
        permit: Option<OwnedSemaphorePermit>,
    ) -> Result<Opened, OpenError> {
        let RunRequest { slot, mut agent, mut input, principal, forwarded, .. } = request;
        let ThreadContent { messages, state, interrupts } = thread.content;
        let known = messages.len();
        input.messages = reconcile(messages, std::mem::take(&mut input.messages));
        let brings_answers = !input.resume.is_empty();
        // A client that sends no state takes it for empty.
        let announce_state =
            input.state.is_none() && state.as_ref().is_some_and(|state| *state != serde_json::json!({}));
        input.state = input.state.or(state);
        let mut still_open = Vec::new();
        match judge(&interrupts, std::mem::take(&mut input.resume), jiff::Timestamp::now()) {
            // Answers that were acted on before, and nothing else: sent again, as their response was lost.
            Verdict::Proceed(entries) if brings_answers && entries.is_empty() && input.messages.len() == known => {
                agent = agent.stand_in(restated(&input));
            }
            Verdict::Proceed(entries) => input.resume = entries,
            Verdict::StillOpen => {
                still_open = interrupts;
                let outcome = RunOutcome::Interrupt { interrupts: still_open.clone() };
                let finished = RunFinished::new(input.thread_id.clone(), input.run_id.clone(), outcome);
                agent = agent.stand_in(vec![finished.into()]);
            }
            Verdict::Refused(code, message) => {
                still_open = interrupts;
                agent = agent.stand_in(vec![RunError::new(code, message).into()]);
            }
        }
        let content =
            ThreadContent { messages: input.messages.clone(), state: input.state.clone(), interrupts: still_open };
        // What is answered is no longer open before anything is done about it; and whoever follows a run has to find
        // what it began with.
        if permit.is_some() || !input.resume.is_empty() {
            self.store.save(&begun.lease, &content).await?;
        }
        let mut messages = content.messages;
        // Most runs add one, and there are many runs.
        messages.reserve_exact(1);
        let transcript = Transcript::new(messages, input.state_or_empty());
        let mut limits = self.runner.limits();
        if permit.is_some() {
            limits = RunLimits { max: self.options.detached_max, heartbeat: None, ..limits };
        }
        let run = self.runner.start_within(slot, agent, input, principal, limits).with_forwarded(forwarded);
        let log = permit.as_ref().map(|_| Arc::new(LiveLog::new(begun.lease.clone(), self.options.max_run_bytes)));
        let Some(hold) = begun.hold(run.control(), log.clone()) else { return Err(StoreError::LeaseLost.into()) };
        // Known as the active one first, so that whoever enters the lane now either sees it or is seen.
        if self.options.concurrent_runs == ConcurrentRuns::Supersede && self.lanes.has_waiting(&hold.lease.thread_id) {
            run.control().cancel();
        }
        let lease = hold.lease.clone();
        let recorded = Recorded::new(run, transcript, announce_state, content.interrupts, hold);
        let (Some(log), Some(permit)) = (log, permit) else {
            return Ok(Opened::Foreground(ForegroundRun::new(recorded)));
        };
        let span = recorded.run().span().clone();
        let follow = log.clone();
        tokio::spawn(tracing::Instrument::instrument(detached::drive(recorded, log, permit), span));
        let run = (lease.thread_id, lease.run_id, lease.run_number);
        Ok(Opened::Detached(Tail::new(self.store.clone(), run, 0, Some(follow))))
    }
}

/// The thread as it is, for a client that has missed something.
fn restated(input: &RunAgentInput) -> Vec<Event> {
    vec![StateSnapshot::new(input.state_or_empty()).into(), MessagesSnapshot::new(input.messages.clone()).into()]
}

enum Begun {
    Fresh(Box<BegunRun>, Box<Thread>),
    /// It is running already, and can be followed.
    Elsewhere(Box<RunRecord>, NewRun),
}

enum Attempt {
    Begun(Box<BegunRun>, Box<Thread>),
    Busy { run: Box<RunRecord>, lost: Option<Lease>, turn: Turn },
    NotYours,
}

/// A run that the store has begun and nobody drives yet. If nobody ever does, it is ended in the store.
struct BegunRun {
    threads: Arc<Threads>,
    owner: Option<String>,
    lease: Lease,
    /// Taken when the run is started.
    turn: Option<Turn>,
}

impl BegunRun {
    fn hold(&mut self, control: Arc<crate::run::RunControl>, log: Option<Arc<LiveLog>>) -> Option<Hold> {
        let turn = self.turn.take()?;
        let active = ActiveRun::new(self.lease.clone(), self.owner.clone(), control, log);
        let registration: Registration = self.threads.active.enter(active);
        Some(Hold { threads: self.threads.clone(), lease: self.lease.clone(), registration, turn })
    }
}

impl Drop for BegunRun {
    fn drop(&mut self) {
        let Some(turn) = self.turn.take() else { return };
        let (threads, lease) = (self.threads.clone(), self.lease.clone());
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        runtime.spawn(async move {
            let end = RunEnd { status: RunStatus::Cancelled, at: now(), events: 0, usage: Vec::new(), failure: None };
            if let Err(error) = threads.store.finish(&lease, None, None, &end).await {
                // The keeper closes it.
                tracing::warn!(?error, "a run that was never started could not be ended");
            }
            drop(turn);
        });
    }
}
