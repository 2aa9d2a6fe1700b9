//! Continues a detached run whose server was lost, or handed the run over.
//!
//! The log is the journal: its events are applied to messages and state again, up to the last mark
//! of the agent. Everything after that mark is retracted for all clients, and the agent is called
//! again, in the same run and the same log.
//!
//! A request that comes again, after its run had started a call and then broke off, continues in the same way: in a new attempt
//! with a log of its own, which begins with the marks of the earlier one.

use std::{collections::HashSet, sync::Arc, time::Duration};

use futures::FutureExt as _;
use tokio::time::timeout;

use super::{
    control::RunControl,
    conversation::asked::RequestDigest,
    drive::{
        clock::RunLimits,
        driver::RunSource,
        guard::RunClosing,
        progress::Drive as _,
        transcript::{Transcript, replaced_messages},
    },
    earlier_attempt::run_continued,
    launch::unsafe_unless_in,
    limits::{memory::RequestSize, run_permit::RunPermit},
    log::{LiveLog, live::to_line, mark::LogMark, restored_run::RestoredRun},
    persist::{
        agent_journal::AgentJournal, detached, stored_request::StoredRequest,
        transcribed_run::TranscribedRun,
    },
    request::RunRequest,
    runs::Runs,
    turn::{held_lease::HeldLease, thread_core::ThreadCore},
};
use agui_agent::{
    Principal,
    host::{AgentEntry, RunJournal},
};
use agui_base::{RunErrorCode, json_values::count_values};
use agui_protocol::{
    Event, Message, MessageId,
    event::{RunStarted, StateSnapshot, ToolCallResult},
};
use agui_store::{
    EventBatch, Lease, LostRun, RunRecord, RunStatus, StoreError, ThreadKey, host::now,
};

/// The pauses before a lost run is continued: the first, the second and each later one. A run that
/// kills its server must not reach all servers at once.
const BACKOFF: [Duration; 3] =
    [Duration::from_secs(1), Duration::from_secs(5), Duration::from_secs(25)];

const RETRACTED: &str = "The server was lost before this call ran.";

/// A lost run whose agent can continue it.
struct ContinuableRun {
    record: RunRecord,
    request: StoredRequest<'static>,
    request_bytes: u64,
    principal: Option<Principal>,
    agent: AgentEntry,
    permit: RunPermit,
}

/// Tells whether this server continues a lost run.
enum Continuable {
    Yes(Box<ContinuableRun>),
    /// The agent cannot continue it, or its request is not stored.
    No,
    /// The server is at its limit of runs or of their memory.
    NotNow,
}

impl Runs {
    /// Takes over the lease of a lost run, and continues or closes the run. Returns `false` if the
    /// run can be continued, but this server is stopping or at a limit.
    pub(crate) async fn continue_or_close(
        &self,
        threads: &Arc<ThreadCore>,
        lost: &LostRun,
    ) -> Result<bool, StoreError> {
        let LostRun { key, run_id, lease } = lost;
        let _under_way = threads.lost_run_backoff.begin(lease.run);
        let continuable = match self.continuable(threads, lost).await {
            Err(StoreError::Failed(error)) => {
                tracing::error!(thread = key.id.as_str(), run = run_id.as_str(), %error, "a lost run cannot be read, and is not continued");
                Continuable::No
            }
            continuable => continuable?,
        };
        if threads.is_stopping() {
            return Ok(false);
        }
        if matches!(continuable, Continuable::NotNow) {
            tracing::warn!(
                thread = key.id.as_str(),
                run = run_id.as_str(),
                "a lost run is not continued now: the server is at its limit of runs or of their memory"
            );
            return Ok(false);
        }
        let now = now();
        // `None`: the run is not lost, or another process took over its lease.
        let until = threads.lease_until(now);
        let take_over = threads.store.take_over(lease, &threads.holder, now, until);
        let Some(taken) = take_over.await? else { return Ok(true) };
        threads.metrics.runs.leases_taken_over.inc();
        let from =
            if lease.holder.is_empty() { "the server that handed it over" } else { &lease.holder };
        tracing::info!(thread = key.id.as_str(), run = run_id.as_str(), from, to = %threads.holder, "took over the lease of a lost run");
        let done = match continuable {
            Continuable::Yes(run) => self.continue_run(threads, key, taken.clone(), *run).await,
            _ => threads.close_lost(key, run_id, &taken).await,
        };
        // Otherwise maintenance would close the run as one that this server failed to launch.
        if done.is_err()
            && let Some(shared) = threads.store.shared()
            && let Err(error) = shared.release(&taken).await
        {
            tracing::warn!(thread = key.id.as_str(), run = run_id.as_str(), %error, "the lease of a lost run is not released");
        }
        done.map(|()| true)
    }

    /// Takes memory and a permit for a lost run before its lease is taken. Does not wait for them,
    /// because the caller also handles other lost runs.
    async fn continuable(
        &self,
        threads: &ThreadCore,
        lost: &LostRun,
    ) -> Result<Continuable, StoreError> {
        let LostRun { key, run_id, lease } = lost;
        let record = threads.store.run(&key.owner, lease.thread, run_id).await?;
        let is_lost = |record: &RunRecord| {
            record.number == lease.run && record.detached && record.status == RunStatus::Running
        };
        let Some(record) = record.filter(is_lost) else {
            return Ok(Continuable::No);
        };
        let Some(agent) =
            self.agents.get(Some(&record.agent)).filter(|entry| entry.agent.can_continue())
        else {
            return Ok(Continuable::No);
        };
        let start = threads.store.run_start(&key.owner, record.number).await?;
        let Some(start) = start else { return Ok(Continuable::No) };
        let request = match StoredRequest::from_json(&start.request) {
            Ok(request) => request,
            Err(error) => {
                tracing::error!(thread = key.id.as_str(), run = run_id.as_str(), %error, "the stored request of a run cannot be read");
                return Ok(Continuable::No);
            }
        };
        if request.ends_with_clients {
            return Ok(Continuable::No);
        }
        let principal = request.principal(&key.owner);
        let request_bytes = start.request.len() as u64;
        let permit = self.lost_permit(threads, key, principal.as_ref(), &start.request).await?;
        let Some(permit) = permit else { return Ok(Continuable::NotNow) };
        Ok(Continuable::Yes(Box::new(ContinuableRun {
            record,
            request,
            request_bytes,
            principal,
            agent,
            permit,
        })))
    }

    /// Takes memory and permits for a lost run. Returns `None` at a limit.
    pub(super) async fn lost_permit(
        &self,
        threads: &ThreadCore,
        key: &ThreadKey,
        principal: Option<&Principal>,
        request: &str,
    ) -> Result<Option<RunPermit>, StoreError> {
        let size =
            RequestSize { body_bytes: request.len(), values: count_values(request.as_bytes()) };
        let thread = threads.size(key).await?.unwrap_or_default();
        let memory = async {
            let memory = self.memory.request(principal, size).await?;
            memory.unread_thread(thread).await.map(|()| memory)
        };
        // Before the permit, which counts for the principal's runs of this minute.
        let Some(Ok(memory)) = memory.now_or_never() else { return Ok(None) };
        let Ok(mut permit) = self.reserve(principal) else { return Ok(None) };
        permit.memory = Some(memory);
        let Ok(detached) = threads.detached.try_take(&key.owner, 1) else { return Ok(None) };
        permit.detached = Some(detached);
        Ok(Some(permit))
    }

    /// Continues a run whose lease this process has taken, or closes it.
    async fn continue_run(
        &self,
        threads: &Arc<ThreadCore>,
        key: &ThreadKey,
        lease: Lease,
        run: ContinuableRun,
    ) -> Result<(), StoreError> {
        let (thread, mut restored) = match threads.restore(key, &run.record).await {
            // Reads it again, and ends it as unreadable.
            Err(StoreError::Failed(_)) => {
                return threads.close_lost(key, &run.record.id, &lease).await;
            }
            result => result?,
        };
        if let Some(memory) = &run.permit.memory {
            memory.read_thread(thread.memory_bytes());
        }
        let (cause, backoff) = (restored.cause(), restored.backoff());
        let is_given_up =
            !restored.is_handed_over && restored.lost >= threads.options.runs.max_continuations;
        if is_given_up || restored.is_damaged {
            threads.metrics.runs.continued(cause, "given_up");
            return threads.close_lost(key, &run.record.id, &lease).await;
        }
        restored.attempt += 1;
        restored.lost += u32::from(!restored.is_handed_over);
        let elapsed = Duration::from_millis(now().abs_diff(run.record.started_at));
        // Counted before the run is continued, because the run may be the reason that servers are
        // lost.
        let batch = restored.retract(key, &lease, &run.record, &run.request, cause);
        let (lines, bytes) = (restored.lines + batch.events.len() as u64, restored.bytes);
        if threads.store.append(&[batch]).await? != [true] {
            return Err(StoreError::LeaseLost);
        }
        threads.metrics.runs.continued(cause, "continued");

        let max_run_bytes = threads.options.runs.max_run_bytes;
        let log = LiveLog::new(lease.clone(), run.request_bytes + bytes, max_run_bytes);
        let log = Arc::new(log.continued(lines).begun_before(elapsed));
        let had_inline_media = run.request.had_inline_media;
        let (record, request) = run.into_request(key, &restored.kept);
        let continuation = restored.continuation();
        let control = request.permit.live.control.clone();
        control.restore_unsafe_calls(restored.has_unsafe_calls);
        let journal = AgentJournal::new(control.clone(), threads.store.store.is_durable());
        let of_agent = RunJournal { log: journal.clone(), continuation: Some(continuation) };
        let asked = record.asked.as_deref().map(RequestDigest::stored);
        let watched = unsafe_unless_in(&*request.agent.agent, &request.input);
        let max = threads.options.runs.detached_max.map(|max| max.saturating_sub(elapsed));
        let limits = RunLimits { max, heartbeat: None, ..self.limits };
        let unverified = thread.branch.unverified_messages();
        let source = RunSource::Agent(request.agent.agent.clone());
        let mut run = self.create_run(
            request,
            source,
            limits,
            unverified,
            Some(of_agent),
            thread.conversation(record.number),
        );
        run.skip_start();
        let span = run.span().clone();
        let place = threads.queue.enter_first(key, &record.id, asked, &control);
        let held = HeldLease::new(threads.clone(), key.clone(), place, lease, Some(log.clone()));
        held.run.let_continue();
        let transcribed = TranscribedRun::new(run, restored.seen, thread, held, Vec::new())
            .with_final_snapshot(had_inline_media)
            .with_journal(Some(journal))
            .watching_calls(watched);
        span.in_scope(
            || tracing::warn!(cause, attempt = restored.attempt, holder = %threads.holder, "the run continues here"),
        );
        let driven = drive_after(backoff, control, transcribed, log);
        tokio::spawn(tracing::Instrument::instrument(driven, span));
        Ok(())
    }
}

async fn drive_after(
    pause: Duration,
    control: Arc<RunControl>,
    transcribed: TranscribedRun,
    log: Arc<LiveLog>,
) {
    // A stop of the run ends the pause: at shutdown the run is handed over.
    let _ = timeout(pause, control.stopped()).await;
    detached::drive(transcribed, log).await;
}

impl ContinuableRun {
    /// Returns the request that continues from the last mark, with the record of the run.
    fn into_request(self, key: &ThreadKey, kept: &Transcript) -> (RunRecord, RunRequest) {
        let Self { record, request, principal, agent, permit, .. } = self;
        let forwarded = request.forwarded();
        let mut input = request.into_input(key.id.clone(), record.id.clone(), kept.messages());
        input.state = Some(kept.state().clone());
        let request = RunRequest { principal, forwarded, ..RunRequest::new(permit, agent, input) };
        (record, request)
    }
}

impl RestoredRun {
    /// Returns the reason for continuing the run.
    fn cause(&self) -> &'static str {
        if self.is_handed_over { "handed_over" } else { RunErrorCode::ServerLost.as_str() }
    }

    /// Returns the pause before the run is continued.
    fn backoff(&self) -> Duration {
        if self.is_handed_over {
            Duration::ZERO
        } else {
            BACKOFF[BACKOFF.len().min(self.lost as usize + 1) - 1]
        }
    }

    /// Closes the items that the lost server left open, and retracts the messages and the state
    /// after the last mark. Returns the lines to append.
    fn retract(
        &mut self,
        key: &ThreadKey,
        lease: &Lease,
        run: &RunRecord,
        request: &StoredRequest<'_>,
        cause: &str,
    ) -> EventBatch {
        let mut events: Vec<Event> = Vec::new();
        if !self.has_started {
            events.push(RunStarted::new(key.id.clone(), run.id.clone()).into());
        }
        // `RUN_STARTED` is stored with the begin, and this snapshot later.
        if self.lines <= 1 && request.adds_state {
            events.push(StateSnapshot::new(self.kept.state().clone()).into());
        }
        self.guard.close_all(&RunClosing::Failed, &mut events);
        let kept = self.kept.messages();
        let kept: HashSet<_> =
            kept.iter().flat_map(Message::tool_calls).map(|call| &call.id).collect();
        for call in self.guard.pending_calls().into_iter().filter(|call| !kept.contains(call)) {
            // Some clients count calls without a result, even after a snapshot has removed them.
            events.push(ToolCallResult::new(MessageId::random(), call, RETRACTED).into());
        }
        events.push(run_continued(self.attempt, cause));
        if self.seen.messages() != self.kept.messages() {
            events.push(replaced_messages(self.kept.messages()));
        }
        if self.seen.state() != self.kept.state() {
            events.push(StateSnapshot::new(self.kept.state().clone()).into());
        }
        events.iter().for_each(|event| self.seen.apply(event));
        let mut lines: Vec<_> = events.iter().map(to_line).collect();
        lines.push(LogMark::Continued { attempt: self.attempt, lost: self.lost }.to_line());
        let times = vec![now().abs_diff(run.started_at); lines.len()];
        self.bytes += lines.iter().map(|line| line.len() as u64).sum::<u64>();
        EventBatch { lease: lease.clone(), first: self.lines + 1, events: lines, times }
    }
}
