//! Goes on with a detached run whose server was stopped or lost.
//!
//! The log is the journal: its events are applied to messages and state again, up to the last mark of the agent. What
//! came after that mark is taken back for all clients, and the agent is called again, in the same run and the same log.

use std::{collections::HashSet, sync::Arc, time::Duration};

use futures::FutureExt as _;
use serde_json::json;
use tokio::time::timeout;

use super::{
    drive::{clock::RunLimits, guard::RunClosing, progress::Drive as _, transcript::Transcript},
    limits::{memory::RequestSize, run_permit::RunPermit},
    log::{LiveLog, live::to_line, log_replay::LogReplay, mark::LogMark},
    persist::{detached, stored_request::StoredRequest, transcribed_run::TranscribedRun},
    request::RunRequest,
    runs::Runs,
    turn::{active::ActiveRun, held_lease::HeldLease, thread_runs::ThreadRuns},
};
use agui_agent::{
    Continuation, Principal,
    host::{AgentEntry, RunJournal},
};
use agui_base::{RunErrorCode, json_values::count_values};
use agui_protocol::{
    Event, Message, MessageId,
    event::{Custom, MessagesSnapshot, RunStarted, StateSnapshot, ToolCallResult},
    own_names::RUN_CONTINUED,
};
use agui_store::{
    EventBatch, Lease, LostRun, RunRecord, RunStatus, StoreError, ThreadKey, host::now,
};

/// The time before a run goes on whose server was lost, for the first time, the second and so on: a run that kills its
/// server must not walk through all servers at once.
const BACKOFF: [Duration; 3] =
    [Duration::from_secs(1), Duration::from_secs(5), Duration::from_secs(25)];

const TAKEN_BACK: &str = "The server was lost before this call ran.";

/// A lost run whose agent can go on.
struct ContinuableRun {
    record: RunRecord,
    request: StoredRequest<'static>,
    request_bytes: u64,
    principal: Option<Principal>,
    agent: AgentEntry,
    permit: RunPermit,
}

/// Whether a lost run goes on.
enum Continuable {
    Yes(Box<ContinuableRun>),
    /// Its agent cannot, or what it was given is not stored.
    No,
    /// The server is at its limit of runs, or of their memory.
    NotNow,
}

impl Runs {
    /// Takes a lost run over, and goes on with it or closes it. Returns `false` if the run could go on, but this server is
    /// at a limit.
    pub(crate) async fn recover(
        &self,
        threads: &Arc<ThreadRuns>,
        lost: &LostRun,
    ) -> Result<bool, StoreError> {
        let LostRun { key, run_id, lease } = lost;
        let _under_way = threads.recovery_backoff.begin(lease.run);
        let continuable = match self.continuable(threads, lost).await {
            Err(StoreError::Failed(error)) => {
                tracing::error!(thread = key.id.as_str(), run = run_id.as_str(), %error, "a lost run cannot be read, and does not go on");
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
                "a lost run waits: the server is at its limit of runs, or of their memory"
            );
            return Ok(false);
        }
        let now = now();
        // `None`: the run is not lost, or another process has taken it over.
        let until = threads.lease_until(now);
        let take_over = threads
            .store
            .call("take_over", |store| store.take_over(lease, &threads.holder, now, until));
        let Some(taken) = take_over.await? else { return Ok(true) };
        threads.metrics.runs.leases_taken_over.inc();
        let from = if lease.holder.is_empty() {
            "a server that has handed it over"
        } else {
            &lease.holder
        };
        tracing::info!(thread = key.id.as_str(), run = run_id.as_str(), from, to = %threads.holder, "took over a lost run");
        let recovered = match continuable {
            Continuable::Yes(run) => self.continue_run(threads, key, taken.clone(), *run).await,
            _ => threads.close_lost(key, run_id, &taken).await,
        };
        // Otherwise the run would be closed as one that this server has lost.
        if recovered.is_err()
            && let Some(shared) = threads.store.shared()
        {
            shared.release(&taken).await?;
        }
        recovered.map(|()| true)
    }

    /// Takes memory and a permit for a lost run before its lease is taken. Does not wait for them, because the caller has the
    /// leases of this server to renew.
    async fn continuable(
        &self,
        threads: &ThreadRuns,
        lost: &LostRun,
    ) -> Result<Continuable, StoreError> {
        let LostRun { key, run_id, lease } = lost;
        let record =
            threads.store.call("run", |store| store.run(&key.owner, lease.thread, run_id)).await?;
        let can_go_on = |record: &RunRecord| {
            record.number == lease.run && record.detached && record.status == RunStatus::Running
        };
        let Some(record) = record.filter(can_go_on) else {
            return Ok(Continuable::No);
        };
        let Some(agent) =
            self.agents.get(Some(&record.agent)).filter(|entry| entry.agent.can_continue())
        else {
            return Ok(Continuable::No);
        };
        let start = threads
            .store
            .call("run_start", |store| store.run_start(&key.owner, record.number))
            .await?;
        let Some(start) = start else { return Ok(Continuable::No) };
        let request = match StoredRequest::from_json(&start.request) {
            Ok(request) => request,
            Err(error) => {
                tracing::error!(thread = key.id.as_str(), run = run_id.as_str(), %error, "the stored request of a run cannot be read");
                return Ok(Continuable::No);
            }
        };
        let principal = request.principal(&key.owner);
        let size = RequestSize {
            body_bytes: start.request.len(),
            values: count_values(start.request.as_bytes()),
        };
        let request_bytes = size.body_bytes as u64;
        let thread = threads.size(key).await?.unwrap_or_default();
        let memory = async {
            let memory = self.memory.request(principal.as_ref(), size).await?;
            memory.unread_thread(thread).await.map(|()| memory)
        };
        // Before the permit, which counts as one of the principal's runs of this minute.
        let Some(Ok(memory)) = memory.now_or_never() else { return Ok(Continuable::NotNow) };
        let Ok(mut permit) = self.reserve(principal.as_ref()) else {
            return Ok(Continuable::NotNow);
        };
        permit.memory = Some(memory);
        let Ok(detached) = threads.detached.try_take(&key.owner, 1) else {
            return Ok(Continuable::NotNow);
        };
        permit.detached = Some(detached);
        Ok(Continuable::Yes(Box::new(ContinuableRun {
            record,
            request,
            request_bytes,
            principal,
            agent,
            permit,
        })))
    }

    /// Goes on with a run whose lease this process has taken, or closes it.
    async fn continue_run(
        &self,
        threads: &Arc<ThreadRuns>,
        key: &ThreadKey,
        lease: Lease,
        run: ContinuableRun,
    ) -> Result<(), StoreError> {
        let (thread, mut replay) = match threads.replay(key, &run.record).await {
            // Reads it again, and ends it as one that cannot be read.
            Err(StoreError::Failed(_)) => {
                return threads.close_lost(key, &run.record.id, &lease).await;
            }
            replayed => replayed?,
        };
        if let Some(memory) = &run.permit.memory {
            memory.read_thread(thread.memory_bytes());
        }
        let (cause, backoff) = (replay.cause(), replay.backoff());
        let is_given_up =
            !replay.is_handed_over && replay.lost >= threads.options.runs.max_continuations;
        if is_given_up || replay.is_damaged {
            threads.metrics.runs.continued(cause, "given_up");
            return threads.close_lost(key, &run.record.id, &lease).await;
        }
        replay.attempt += 1;
        replay.lost += u32::from(!replay.is_handed_over);
        let elapsed = Duration::from_millis(now().abs_diff(run.record.started_at));
        // Counted before the run goes on, because it may be the run that its servers are lost by.
        let batch = replay.take_back(key, &lease, &run.record, &run.request, cause);
        let (lines, bytes) = (replay.lines + batch.events.len() as u64, replay.bytes);
        if threads.store.append(&[batch]).await? != [true] {
            return Err(StoreError::LeaseLost);
        }
        threads.metrics.runs.continued(cause, "continued");

        let max_run_bytes = threads.options.runs.max_run_bytes;
        let log = Arc::new(
            LiveLog::new(lease.clone(), run.request_bytes + bytes, max_run_bytes)
                .continued(elapsed, lines),
        );
        let has_sent_data = run.request.has_sent_data;
        let (record, request) = run.into_request(key, &replay.kept);
        let taken_back = replay.taken_back();
        let continuation =
            Continuation { attempt: replay.attempt, marks: replay.marks, taken_back };
        let journal = RunJournal { log: log.clone(), continuation: Some(continuation) };
        let max = threads.options.runs.detached_max.map(|max| max.saturating_sub(elapsed));
        let limits = RunLimits { max, heartbeat: None, ..self.limits };
        let claims = thread.branch.client_claims();
        let mut run = self.create_run(
            request,
            limits,
            claims,
            Some(journal),
            thread.conversation(record.number),
        );
        run.skip_start();
        let (span, control) = (run.span().clone(), run.control());
        let turn = threads.queue.enter_first(key, &record.id);
        let active = ActiveRun::new(record.id, lease, control.clone(), Some(log.clone()));
        let held = HeldLease::new(threads.clone(), key.clone(), turn, active);
        let transcribed = TranscribedRun::new(run, replay.seen, thread, held, Vec::new())
            .naming_files(has_sent_data);
        span.in_scope(
            || tracing::warn!(cause, attempt = replay.attempt, holder = %threads.holder, "the run goes on here"),
        );
        let driven = async move {
            // A stop of the run ends the wait: at shutdown the run is handed over.
            let _ = timeout(backoff, control.stopped()).await;
            detached::drive(transcribed, log).await;
        };
        tokio::spawn(tracing::Instrument::instrument(driven, span));
        Ok(())
    }
}

impl ContinuableRun {
    /// Returns the request to go on from what the last mark kept, beside the record of the run.
    fn into_request(self, key: &ThreadKey, kept: &Transcript) -> (RunRecord, RunRequest) {
        let Self { record, request, principal, agent, permit, .. } = self;
        let forwarded = request.forwarded();
        let mut input = request.into_input(key.id.clone(), record.id.clone(), kept.messages());
        input.state = Some(kept.state().clone());
        let request = RunRequest {
            permit,
            agent,
            input,
            principal,
            forwarded,
            on_disconnect: None,
            is_reply: false,
        };
        (record, request)
    }
}

impl LogReplay {
    /// Returns why the run goes on here.
    fn cause(&self) -> &'static str {
        if self.is_handed_over { "handed_over" } else { RunErrorCode::ServerLost.as_str() }
    }

    /// Returns the time before the run goes on.
    fn backoff(&self) -> Duration {
        if self.is_handed_over {
            Duration::ZERO
        } else {
            BACKOFF[BACKOFF.len().min(self.lost as usize + 1) - 1]
        }
    }

    /// Closes what the lost server left open, and takes back what it sent after the last mark. Returns the lines to append.
    fn take_back(
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
        // `RUN_STARTED` is stored with the begin, what follows it later.
        if self.lines <= 1 && request.adds_state {
            events.push(StateSnapshot::new(self.kept.state().clone()).into());
        }
        self.guard.close_all(&RunClosing::Failed, &mut events);
        let kept = self.kept.messages();
        let kept: HashSet<_> =
            kept.iter().flat_map(Message::tool_calls).map(|call| &call.id).collect();
        for call in self.guard.pending_calls().into_iter().filter(|call| !kept.contains(call)) {
            // Some clients count the calls without a result, also those that a snapshot has removed.
            events.push(ToolCallResult::new(MessageId::random(), call, TAKEN_BACK).into());
        }
        let value = json!({ "attempt": self.attempt, "cause": cause });
        events.push(Custom::new(RUN_CONTINUED, value).into());
        if self.seen.messages() != self.kept.messages() {
            let mut snapshot = Event::from(MessagesSnapshot::new(self.kept.messages()));
            // Activities that the snapshot does not have are taken back, too.
            let scope = json!({ "authoritativeActivityTypes": null });
            snapshot
                .base_mut()
                .set_metadata(Some([("@ag-ui/client".to_owned(), scope)].into_iter().collect()));
            events.push(snapshot);
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
