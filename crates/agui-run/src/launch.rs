//! Starts a run that was admitted: computes the agent's input and the first snapshots, and creates the run.

use std::{collections::HashSet, sync::Arc};

use super::{
    admission::{Admission, BegunRun},
    control::Stop,
    conversation::{
        answered_interrupts, branch::LoadedThread, match_branch::BranchCase, plan::Plan,
        resume::ResumeDecision, snapshots::snapshots,
    },
    drive::{
        agent_with_files::AgentWithFiles,
        clock::RunLimits,
        driver::{Run, run_started},
        progress::Drive as _,
        run_report::context_in_span,
        transcript::Transcript,
    },
    log::{Follower, LiveLog, live::to_line},
    options::ConcurrentRuns,
    persist::{detached, stored_run::StoredRun, transcribed_run::TranscribedRun},
    request::{RunRequest, StartedRun},
    runs::Runs,
    turn::{active::ActiveRun, held_lease::HeldLease},
};
use agui_agent::{
    Agent, RunContext,
    files::{RunFiles, names_files},
    host::{AgentEntry, ContextParts, Conversation, RunIdentity, RunJournal, owner_of},
};
use agui_base::trace::TraceScope;
use agui_observe::{RunObserver, recordings::LiveRecording};
use agui_protocol::{
    Event, Interrupt, Message, MessageId, Messages, ResumeEntry, RunAgentInput,
    event::{Custom, MessagesSnapshot, RunError, RunFinished, RunOutcome, StateSnapshot},
    own_names::ALREADY_ANSWERED,
};
use agui_store::ThreadVersion;

impl Runs {
    /// Launches a run that is not stored. `unverified` are the client's messages that only agents
    /// make.
    pub(super) fn launch_unstored(
        &self,
        request: RunRequest,
        unverified: HashSet<MessageId>,
    ) -> StartedRun {
        StartedRun::Unstored(self.create_run(
            request,
            self.limits,
            unverified,
            None,
            Conversation::Once,
        ))
    }

    /// Launches a run that ends as cancelled, without the agent.
    pub(super) fn launch_cancelled(&self, request: RunRequest) -> StartedRun {
        request.permit.live.control.stop(Stop::Cancel);
        self.launch_unstored(request, HashSet::new())
    }

    /// Creates a run. `unverified` are the client's messages that only agents make.
    pub(super) fn create_run(
        &self,
        request: RunRequest,
        limits: RunLimits,
        unverified: HashSet<MessageId>,
        journal: Option<RunJournal>,
        conversation: Conversation,
    ) -> Box<Run> {
        let RunRequest { permit, agent, mut input, principal, forwarded, .. } = request;
        // A thread can still hold instructions: stored before the option was turned off, or sent in
        // another agent's snapshot.
        let accepts_instructions = self.threads.options.accept_instructions;
        if !accepts_instructions && input.messages.iter().any(Message::is_instruction) {
            input.messages = input
                .messages
                .iter()
                .filter(|message| !message.is_instruction())
                .cloned()
                .collect();
        }
        let (thread_id, run_id) = (input.thread_id.clone(), input.run_id.clone());
        let identity = RunIdentity { thread_id, run_id, agent: agent.name.clone(), principal };
        let recording = self.recordings.as_ref();
        let recording = recording.map(|writer| {
            LiveRecording::start(writer, &agent.name, forwarded.all(), input.clone())
        });
        let trace = TraceScope::new(forwarded.trace().cloned(), self.records_content);
        let mut parts = ContextParts::new(identity);
        parts.forwarded = forwarded;
        parts.client_messages = unverified;
        parts.conversation = conversation;
        parts.upstream_key = Some(self.threads.upstream_key.clone());
        parts.accepts_instructions = accepts_instructions;
        parts.observer = Some(RunObserver { metrics: self.metrics.clone(), recording });
        let files = self.threads.files.clone();
        let files = files
            .map(|files| RunFiles { files, owner: owner_of(parts.identity.principal.as_ref()) });
        parts.files.clone_from(&files);
        let cx = context_in_span(parts, &trace).with_journal(journal);
        let agent: Arc<dyn Agent> = match files {
            Some(files) if names_files(&input.messages) => Arc::new(AgentWithFiles {
                agent: agent.agent,
                files,
                memory: permit.memory.clone(),
            }),
            _ => agent.agent,
        };
        // Boxed because it is large and moved several times before it is polled.
        Box::new(Run::new(
            agent,
            input,
            cx,
            limits,
            self.begin_drawing,
            self.taps.clone(),
            Some(permit),
        ))
    }
}

impl Admission {
    /// Responds to a request that changes nothing, with the stored thread. Stores and replaces no
    /// run.
    pub(super) fn respond_without_run(self, resume: ResumeDecision) -> StartedRun {
        let Self { runs, threads, key, mut request, loaded, .. } = self;
        let mut open = Vec::new();
        request.input.messages = Messages::default();
        request.input.state = None;
        if let Some(loaded) = loaded {
            request.input.messages = loaded.branch.messages().clone();
            request.input.state = loaded.state.as_ref().map(|(_, state)| state.clone());
            open.clone_from(&loaded.interrupts);
            threads.cache.put(key, loaded);
        }
        request.apply_resume(resume, &mut open);
        runs.launch_unstored(request, HashSet::new())
    }

    /// Launches the run that has begun with this plan.
    pub(super) fn launch(self, mut plan: Plan, begun: BegunRun) -> StartedRun {
        let BegunRun { lease, version, last_message, state_number, created_at, request_bytes } =
            begun;
        let first_run = Some(plan.first_run.unwrap_or(lease.run));
        let Self { runs, threads, key, turn, mut request, loaded, had_inline_media, .. } = self;
        let options = &threads.options;
        let (case, lacks_state) = (plan.matched.case, plan.lacks_state(&request.input));
        let (mut interrupts, state) =
            (std::mem::take(&mut plan.open_interrupts), plan.state.take());
        let resume = std::mem::replace(&mut plan.resume, ResumeDecision::StillOpen);
        let (bytes, loaded) =
            loaded.map_or((0, None), |loaded| (loaded.bytes, Some(loaded.branch)));
        let has_stored_messages = loaded.as_ref().is_some_and(|branch| branch.len() > 0);
        let lacks_messages = (matches!(case, BranchCase::NothingKnown | BranchCase::Unseen)
            || plan.matched.client_differs)
            && has_stored_messages
            || !plan.known_results.is_empty();
        let sent = std::mem::take(&mut request.input.messages);
        let has_sent_messages = !sent.is_empty();
        let branch = plan.into_branch(loaded, sent, last_message);
        request.input.messages = branch.messages().clone();
        request.input.state = state.clone();
        let transcript = Transcript::from_input(&request.input);
        // If the agent does not run, the response has its own snapshots or is an error.
        let is_answered = matches!(resume, ResumeDecision::Proceed(_));
        let snapshots = if lacks_messages && is_answered && options.sync_messages {
            let snapshots = snapshots(&request.input.messages, has_sent_messages);
            snapshots.into_iter().map(Event::from).collect()
        } else {
            Vec::new()
        };
        request.apply_resume(resume, &mut interrupts);

        let run_id = request.input.run_id.clone();
        let is_detached = request.permit.detached.is_some();
        let log = is_detached.then(|| {
            let log = LiveLog::new(lease.clone(), request_bytes, options.runs.max_run_bytes);
            Arc::new(log.begun(to_line(&run_started(&request.input))))
        });
        let (number, run_number) = (lease.thread, lease.run);
        let active =
            ActiveRun::new(run_id.clone(), lease, request.permit.live.control.clone(), log.clone());
        let held = HeldLease::new(threads.clone(), key.clone(), turn, active);
        // A cancel request or a superseding run may have come before the run was active.
        let is_superseded = options.concurrent_runs == ConcurrentRuns::Supersede
            && threads.queue.has_superseding(&key);
        if is_superseded || held.is_cancelled() {
            held.run.control.cancel();
        }
        let limits = if is_detached {
            RunLimits { max: options.runs.detached_max, heartbeat: None, ..runs.limits }
        } else {
            runs.limits
        };
        let can_continue = request.agent.agent.can_continue() && threads.store.store.is_durable();
        let journal =
            log.clone().filter(|_| can_continue).map(|log| RunJournal { log, continuation: None });
        let (version, state) = (ThreadVersion { number, version }, state_number.zip(state));
        let thread =
            LoadedThread { version, created_at, first_run, state, interrupts, bytes, branch };
        let unverified = thread.branch.unverified_messages();
        let conversation = thread.conversation(run_number);
        let run = runs.create_run(request, limits, unverified, journal, conversation);
        let first = lacks_state.then(|| StateSnapshot::new(transcript.state().clone()).into());
        let Some(log) = log else {
            let snapshots = first.into_iter().chain(snapshots).collect();
            let transcribed = TranscribedRun::new(run, transcript, thread, held, snapshots)
                .with_final_snapshot(had_inline_media);
            return StartedRun::Stored(Box::new(StoredRun::new(transcribed)));
        };
        let follower =
            Follower::from_live_log(&threads.followed_logs, key, run_id, log.clone(), None);
        let span = run.span().clone();
        let snapshots_of_log = first.into_iter().collect();
        let transcribed = TranscribedRun::new(run, transcript, thread, held, snapshots_of_log)
            .with_final_snapshot(had_inline_media);
        tokio::spawn(tracing::Instrument::instrument(detached::drive(transcribed, log), span));
        StartedRun::Detached { follower, snapshots }
    }
}

/// Returns the events for a request that changes nothing. `replies` were given before.
fn snapshot_events(
    input: &RunAgentInput,
    replies: &[ResumeEntry],
    open: &[Interrupt],
) -> Vec<Event> {
    let messages = MessagesSnapshot::new(input.messages.clone());
    let mut events = vec![StateSnapshot::new(input.state_or_empty()).into(), messages.into()];
    if !replies.is_empty() {
        events.push(Custom::new(ALREADY_ANSWERED, answered_interrupts::describe(replies)).into());
    }
    events.extend((!open.is_empty()).then(|| still_open(input, open)));
    events
}

fn still_open(input: &RunAgentInput, open: &[Interrupt]) -> Event {
    let outcome = RunOutcome::Interrupt { interrupts: open.to_vec() };
    RunFinished::new(input.thread_id.clone(), input.run_id.clone(), outcome).into()
}

impl RunRequest {
    /// If the agent must not run, replaces it by one that only emits the reason. Otherwise empties
    /// `open`: the agent gets the replies to all interrupts.
    fn apply_resume(&mut self, resume: ResumeDecision, open: &mut Vec<Interrupt>) {
        let Self { input, agent, .. } = self;
        let events: Vec<Event> = match resume {
            ResumeDecision::Proceed(replies) => {
                input.resume = replies;
                open.clear();
                return;
            }
            ResumeDecision::Repeated => snapshot_events(input, &[], open),
            ResumeDecision::AlreadyAnswered(replies) => snapshot_events(input, &replies, open),
            ResumeDecision::StillOpen => vec![still_open(input, open)],
            ResumeDecision::Refused(code, message) => vec![RunError::new(code, message).into()],
        };
        input.resume = Vec::new();
        let reason = move |_: RunAgentInput, _: RunContext| agui_agent::events(events.clone());
        *agent = AgentEntry { name: agent.name.clone(), agent: Arc::new(reason) };
    }
}
