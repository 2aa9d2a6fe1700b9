//! Starts a run that was admitted: computes the agent's input and the first snapshots, and creates the run.

use std::{collections::HashSet, sync::Arc};

use super::{
    admission::{Admission, BegunRun},
    control::Stop,
    conversation::{
        answered_interrupts, branch::LoadedThread, plan::Plan, resume::ResumeRefusal,
        snapshots::snapshots as conversation_snapshots,
    },
    drive::{
        agent_with_files::AgentWithFiles,
        clock::RunLimits,
        driver::{Run, RunSource, run_started},
        progress::Drive as _,
        run_report::context_in_span,
        transcript::Transcript,
    },
    limits::start_error::StartError,
    log::{Follower, LiveLog, live::to_line},
    persist::{
        agent_journal::AgentJournal, detached, stored_run::StoredRun,
        transcribed_run::TranscribedRun,
    },
    request::{RunRequest, StartedRun},
    runs::Runs,
    turn::{held_lease::HeldLease, thread_core::ThreadCore},
};
use agui_agent::{
    Agent, AgentEffects,
    files::{RunFiles, names_files},
    host::{ContextParts, Conversation, RunIdentity, RunJournal, owner_of},
};
use agui_base::trace::TraceScope;
use agui_observe::{RunObserver, recordings::LiveRecording};
use agui_protocol::{
    Event, Interrupt, Message, MessageId, Messages, ResumeEntry, RunAgentInput,
    event::{Custom, MessagesSnapshot, RunError, RunFinished, RunOutcome, StateSnapshot},
    own_names::ALREADY_ANSWERED,
};
use agui_store::{Begun, ThreadVersion};

impl Runs {
    /// Launches a run that is not stored. `unverified` are the client's messages that only agents
    /// make.
    pub(super) fn launch_unstored(
        &self,
        request: RunRequest,
        source: RunSource,
        unverified: HashSet<MessageId>,
    ) -> StartedRun {
        StartedRun::Unstored(self.create_run(
            request,
            source,
            self.limits,
            unverified,
            None,
            Conversation::Once,
        ))
    }

    /// Launches a run that ends as cancelled, without the agent.
    pub(super) fn launch_cancelled(&self, request: RunRequest) -> StartedRun {
        request.permit.live.control.stop(Stop::Cancel);
        self.launch_unstored(request, RunSource::Events(Vec::new()), HashSet::new())
    }

    /// Ends a run that was stopped before it began.
    pub(super) fn launch_stopped(
        &self,
        stop: Stop,
        request: RunRequest,
    ) -> Result<StartedRun, StartError> {
        match stop {
            Stop::Shutdown => Err(StartError::ShuttingDown),
            Stop::ThreadDeleted => Err(StartError::ThreadDeleted),
            _ => Ok(self.launch_cancelled(request)),
        }
    }

    fn limits_of(&self, is_detached: bool, has_log: bool) -> RunLimits {
        let detached_max = self.threads.options.runs.detached_max;
        let max = if is_detached { detached_max } else { self.limits.max };
        // The responses that follow a log have keep-alives of their own.
        let heartbeat = self.limits.heartbeat.filter(|_| !has_log);
        RunLimits { max, heartbeat, ..self.limits }
    }

    /// Creates a run. `unverified` are the client's messages that only agents make.
    pub(super) fn create_run(
        &self,
        request: RunRequest,
        source: RunSource,
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
        let source = match (source, files) {
            (RunSource::Agent(agent), Some(files)) if names_files(&input.messages) => {
                let memory = permit.memory.clone();
                RunSource::Agent(Arc::new(AgentWithFiles { agent, files, memory }))
            }
            (source, _) => source,
        };
        // Boxed because it is large and moved several times before it is polled.
        Box::new(Run::new(
            source,
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
    /// Responds to a request that changes nothing, with the stored thread and the replies that were
    /// given before. Stores and replaces no run.
    pub(super) fn respond_without_run(self, replies: &[ResumeEntry]) -> StartedRun {
        let Self { runs, threads, key, mut request, loaded, .. } = self;
        let mut open = Vec::new();
        request.input.resume = Vec::new();
        request.input.messages = Messages::default();
        request.input.state = None;
        if let Some(loaded) = loaded {
            request.input.messages = loaded.branch.messages().clone();
            request.input.state = loaded.state.as_ref().map(|(_, state)| state.clone());
            open.clone_from(&loaded.interrupts);
            threads.cache.put(key, loaded);
        }
        let events = snapshot_events(&request.input, replies, &open);
        runs.launch_unstored(request, RunSource::Events(events), HashSet::new())
    }

    /// Launches the run that has begun with this plan.
    pub(super) fn launch(self, mut plan: Plan, begun: BegunRun) -> StartedRun {
        let later_request = self.later_request(&plan);
        let BegunRun { stored, created_at, request_bytes, first_line } = begun;
        let Begun { lease, version, last_message, state_number, .. } = stored;
        let first_run = Some(plan.first_run.unwrap_or(lease.run));
        let shows_earlier_answer = self.shows_earlier_answer;
        let Self {
            runs, threads, key, place, mut request, loaded, had_inline_media, earlier, ..
        } = self;
        let lacks_state = plan.lacks_state(&request.input);
        let (open, state) = (std::mem::take(&mut plan.open_interrupts), plan.state.take());
        let resume = std::mem::replace(&mut plan.resume, Ok(Vec::new()));
        let (bytes, loaded) =
            loaded.map_or((0, None), |loaded| (loaded.bytes, Some(loaded.branch)));
        let shows_other = plan.lacks_messages(loaded.as_ref()) || shows_earlier_answer;
        let has_sent_messages = !request.input.messages.is_empty();
        let branch = plan.into_branch(loaded, last_message);
        request.input.messages = branch.messages().clone();
        request.input.state = state.clone();
        let transcript = Transcript::from_input(&request.input);
        // If the agent does not run, the response has its own snapshots or is an error.
        let sends_messages = shows_other && earlier.is_none() && resume.is_ok();
        let mut snapshots = match sends_messages && threads.options.sync_messages {
            true => message_snapshots(&request.input.messages, has_sent_messages),
            false => Vec::new(),
        };
        let (source, interrupts) = request.apply_resume(resume, open);
        let run_id = request.input.run_id.clone();
        let is_detached = request.permit.detached.is_some();
        let log = first_line.map(|line| {
            let max_bytes = threads.options.runs.max_run_bytes;
            Arc::new(LiveLog::new(lease.clone(), request_bytes, max_bytes).begun_with(line))
        });
        let (number, run_number) = (lease.thread, lease.run);
        let mut held = HeldLease::new(threads.clone(), key.clone(), place, lease, log.clone());
        if is_detached {
            held.run.let_continue();
        }
        // A superseding run may have come before the run was running.
        if threads.is_superseded(&key) {
            held.run.control.stop(Stop::Superseded);
        }
        let limits = runs.limits_of(is_detached, log.is_some());
        let mut first: Vec<Event> = Vec::new();
        if let (Some(earlier), Some(log)) = (&earlier, &log) {
            held.run.control.restore_unsafe_calls(true);
            log.push(to_line(&run_started(&request.input)), 0);
            first = earlier.snapshots(&request.input);
        } else if lacks_state {
            first.push(StateSnapshot::new(transcript.state().clone()).into());
        }
        let (journal, watched) = watch_of(&source, &request, &threads);
        let continuation = earlier.map(|earlier| earlier.continuation);
        let of_agent = journal.clone().map(|log| RunJournal { log, continuation });
        let (version, state) = (ThreadVersion { number, version }, state_number.zip(state));
        let thread =
            LoadedThread { version, created_at, first_run, state, interrupts, bytes, branch };
        let unverified = thread.branch.unverified_messages();
        let conversation = thread.conversation(run_number);
        let run = runs.create_run(request, source, limits, unverified, of_agent, conversation);
        let client = if log.is_some() && !is_detached { held.take_client() } else { None };
        if log.is_none() {
            first.append(&mut snapshots);
        }
        let span = run.span().clone();
        let transcribed = TranscribedRun::new(run, transcript, thread, held, first)
            .with_final_snapshot(had_inline_media)
            .with_journal(journal)
            .with_request(later_request)
            .watching_calls(watched);
        let Some(log) = log else {
            return StartedRun::Stored(Box::new(StoredRun::new(transcribed)));
        };
        let logs = &threads.followed_logs;
        let follower = Follower::from_live_log(logs, key, run_id, log.clone(), None)
            .holding(client)
            .with_snapshots(snapshots);
        tokio::spawn(tracing::Instrument::instrument(detached::drive(transcribed, log), span));
        StartedRun::Detached { follower }
    }
}

fn message_snapshots(messages: &Messages, has_sent_messages: bool) -> Vec<Event> {
    let snapshots = conversation_snapshots(messages, has_sent_messages);
    snapshots.into_iter().map(Event::from).collect()
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
    /// Gives the agent the replies to all open interrupts, or puts the reason in its place. Returns
    /// the interrupts that stay open, too.
    fn apply_resume(
        &mut self,
        resume: Result<Vec<ResumeEntry>, ResumeRefusal>,
        open: Vec<Interrupt>,
    ) -> (RunSource, Vec<Interrupt>) {
        self.input.resume = Vec::new();
        let reason = match resume {
            Ok(replies) => {
                self.input.resume = replies;
                return (RunSource::Agent(self.agent.agent.clone()), Vec::new());
            }
            Err(ResumeRefusal::StillOpen) => still_open(&self.input, &open),
            Err(ResumeRefusal::Invalid(code, message)) => RunError::new(code, message).into(),
        };
        (RunSource::Events(vec![reason]), open)
    }
}

/// Returns the journal of an agent that can continue, and the page's tools for one that does not announce what it changes.
fn watch_of(
    source: &RunSource,
    request: &RunRequest,
    threads: &ThreadCore,
) -> (Option<Arc<AgentJournal>>, Option<HashSet<String>>) {
    let RunSource::Agent(agent) = source else { return (None, None) };
    let is_durable = threads.store.store.is_durable();
    let journal = agent
        .can_continue()
        .then(|| AgentJournal::new(request.permit.live.control.clone(), is_durable));
    (journal, unsafe_unless_in(&**agent, &request.input))
}

/// Returns the names of the page's tools, if all other calls of the agent may change something.
pub(super) fn unsafe_unless_in(
    agent: &dyn Agent,
    input: &RunAgentInput,
) -> Option<HashSet<String>> {
    (agent.effects() == AgentEffects::Unknown)
        .then(|| input.tools.iter().map(|tool| tool.name.clone()).collect())
}
