//! Starts a run that was admitted: computes the agent's input and the first snapshots, and creates the run.

use std::{collections::HashSet, sync::Arc};

use super::{
    admission::BegunRun,
    agents::AgentEntry,
    conversation::{branch::LoadedThread, decide::BranchCase, plan::ClientInput, resume::ResumeDecision},
    drive::{clock::RunLimits, driver::Run, progress::Drive as _, transcript::Transcript},
    limits::start_error::StartError,
    log::{Follower, LiveLog},
    options::ConcurrentRuns,
    persist::{
        detached,
        stored_run::StoredRun,
        transcribed_run::{RunGuards, TranscribedRun},
    },
    request::{DetachedRun, RunCaller, StartedRun},
    runs::Runs,
    turn::active::ActiveRun,
};
use crate::{
    agent::{Forwarded, InputRules, RunContext, RunIdentity, RunJournal},
    base::trace::TraceScope,
    observe::{RunObserver, recordings::LiveRecording, telemetry::begin_agent},
    protocol::{
        Event, Interrupt, Message, MessageId, Messages, RunAgentInput,
        event::{MessagesSnapshot, RunError, RunFinished, RunOutcome, StateSnapshot},
    },
    store::{StoreError, ThreadVersion},
};

impl Runs {
    /// A run that is not stored. `claims` are the messages that only agents make, but that the client sent; a server that
    /// stores no threads knows none.
    pub(crate) fn launch_unstored(
        &self,
        caller: RunCaller,
        input: RunAgentInput,
        claims: HashSet<MessageId>,
    ) -> Box<Run> {
        self.create_run(caller, input, self.limits, claims, None)
    }

    /// The run ends as cancelled, without the agent.
    pub(crate) fn launch_cancelled(&self, caller: RunCaller, input: RunAgentInput) -> Box<Run> {
        let run = self.launch_unstored(caller, input, HashSet::new());
        run.control().cancel();
        run
    }

    pub(crate) fn launch(&self, begun: BegunRun, mut caller: RunCaller) -> Result<StartedRun, StartError> {
        let is_detached = caller.slot.detached.is_some();
        let BegunRun { guard, client, loaded, mut plan, version, last_message, state_number, request_bytes } = begun;
        let (threads, key, lease) = (guard.threads.clone(), guard.key.clone(), guard.lease.clone());
        let lacks_state = plan.lacks_state(&client);
        let (case, open) = (plan.decision.case, std::mem::take(&mut plan.open_interrupts));
        let resume = std::mem::replace(&mut plan.resume, ResumeDecision::StillOpen);
        let state = plan.state.take();
        let ClientInput { messages, rest: mut input, .. } = client;

        // If the agent does not run, the response has its own snapshots or is an error.
        let is_answered = matches!(resume, ResumeDecision::Proceed(_));
        let has_stored_messages = loaded.as_ref().is_some_and(|loaded| loaded.branch.len() > 0);
        let lacks_messages = matches!(case, BranchCase::NothingKnown | BranchCase::Unseen) && has_stored_messages;
        let has_sent_messages = !messages.is_empty();

        let bytes = loaded.as_ref().map_or(0, |loaded| loaded.bytes);
        let branch = plan.into_branch(loaded.map(|loaded| loaded.branch), messages, last_message);
        input.messages = branch.messages().clone();
        input.state = state.clone();
        let snapshots = if lacks_messages && is_answered && threads.options.sync_messages {
            message_snapshots(&input.messages, has_sent_messages)
        } else {
            Vec::new()
        };
        let (agent, interrupts) = apply_resume(caller.agent, &mut input, resume, open);
        caller.agent = agent;
        let transcript = Transcript::new(input.messages.clone(), input.state_or_empty());
        let run_id = input.run_id.clone();
        let limits = match is_detached {
            true => RunLimits { max: threads.options.detached_max, heartbeat: None, ..self.limits },
            false => self.limits,
        };
        let max_run_bytes = threads.options.max_run_bytes;
        let log = is_detached.then(|| Arc::new(LiveLog::new(lease.clone(), request_bytes, max_run_bytes)));
        let can_continue = caller.agent.agent.can_continue() && threads.store.unmeasured().is_durable();
        let journal = log.clone().filter(|_| can_continue);
        let journal = journal.map(|log| RunJournal { log, continuation: None });
        let run = self.create_run(caller, input, limits, branch.client_claims(), journal);
        let Some(turn) = guard.launch() else { return Err(StoreError::LeaseLost.into()) };
        turn.activate(Arc::new(ActiveRun::new(run_id.clone(), lease.clone(), run.control(), log.clone())));
        // A cancel request or a superseding run may have come before the run was active.
        let is_superseded =
            threads.options.concurrent_runs == ConcurrentRuns::Supersede && threads.queue.has_waiting(&key);
        if is_superseded || turn.is_cancelled() {
            run.control().cancel();
        }
        let thread = LoadedThread {
            version: ThreadVersion { number: lease.thread, version },
            state: state_number.zip(state),
            interrupts,
            bytes,
            branch,
        };
        let guards = RunGuards { threads: threads.clone(), key: key.clone(), lease, _turn: turn };
        let transcribed = TranscribedRun::new(run, transcript, thread, guards);
        let transcribed = if lacks_state { transcribed.with_state_snapshot() } else { transcribed };
        let Some(log) = log else {
            return Ok(StartedRun::Stored(Box::new(StoredRun::new(transcribed.with_snapshots(snapshots)))));
        };
        let follower = Follower::from_live_log(&threads, key, run_id, log.clone(), None);
        let span = transcribed.run().span().clone();
        tokio::spawn(tracing::Instrument::instrument(detached::drive(transcribed, log), span));
        Ok(StartedRun::Detached(DetachedRun { follower, snapshots }))
    }

    /// `client_messages` are those of [`Branch::client_claims`](crate::run::conversation::branch::Branch::client_claims).
    pub(super) fn create_run(
        &self,
        caller: RunCaller,
        mut input: RunAgentInput,
        limits: RunLimits,
        client_messages: HashSet<MessageId>,
        journal: Option<RunJournal>,
    ) -> Box<Run> {
        let accepts_instructions = self.accept_instructions;
        // Those of a thread from the time before the option was changed, or of another agent's snapshot.
        if !accepts_instructions && input.messages.iter().any(Message::is_instruction) {
            input.messages = input.messages.iter().filter(|message| !message.is_instruction()).cloned().collect();
        }
        let rules = InputRules { accepts_instructions, client_messages };
        let RunCaller { slot, agent, principal, forwarded } = caller;
        let (thread_id, run_id) = (input.thread_id.clone(), input.run_id.clone());
        let identity = RunIdentity { thread_id, run_id, agent: agent.name.clone(), principal };
        let recording = self.recordings.as_ref();
        let recording =
            recording.map(|writer| LiveRecording::start(writer, &agent.name, forwarded.all(), input.clone()));
        let trace = TraceScope::new(forwarded.trace().cloned(), self.records_content);
        let observer = RunObserver { metrics: self.metrics.clone(), recording };
        let cx = observed_context(identity, forwarded, rules, &trace, observer).with_journal(journal);
        // Boxed because it is large and moved several times before it is polled.
        Box::new(Run::new(agent.agent, input, cx, limits, slot))
    }
}

/// Returns the context of a server's run, within a span of its own. `trace` is the place of the run's request.
pub(crate) fn observed_context(
    identity: RunIdentity,
    forwarded: Forwarded,
    rules: InputRules,
    trace: &TraceScope,
    observer: RunObserver,
) -> RunContext {
    let trace = begin_agent(trace, &identity.agent, &identity.thread_id, &identity.run_id);
    RunContext::observed(identity, forwarded, rules, Some(Arc::new(observer))).within(trace)
}

fn message_snapshots(messages: &Messages, client_has_messages: bool) -> Vec<Event> {
    let mut snapshots = Vec::new();
    // A client keeps the messages that it has in their places and appends the others of a snapshot. After an empty snapshot
    // it has none, and takes all of them in the order of the next snapshot.
    if client_has_messages {
        snapshots.push(MessagesSnapshot::new(Messages::default()).into());
    }
    snapshots.push(MessagesSnapshot::new(messages.clone()).into());
    snapshots
}

/// If the agent must not run, returns one that only emits the reason, and the interrupts that stay open.
fn apply_resume(
    agent: AgentEntry,
    input: &mut RunAgentInput,
    resume: ResumeDecision,
    open: Vec<Interrupt>,
) -> (AgentEntry, Vec<Interrupt>) {
    let events: Vec<Event> = match resume {
        ResumeDecision::Proceed(answers) => {
            input.resume = answers;
            return (agent, Vec::new());
        }
        ResumeDecision::Repeated => {
            let messages = MessagesSnapshot::new(input.messages.clone());
            vec![StateSnapshot::new(input.state_or_empty()).into(), messages.into()]
        }
        ResumeDecision::StillOpen => {
            let outcome = RunOutcome::Interrupt { interrupts: open.clone() };
            vec![RunFinished::new(input.thread_id.clone(), input.run_id.clone(), outcome).into()]
        }
        ResumeDecision::Refused(code, message) => vec![RunError::new(code, message).into()],
    };
    input.resume = Vec::new();
    (agent.with_fixed_events(events), open)
}
