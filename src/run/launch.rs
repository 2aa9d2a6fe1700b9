//! Starts a run: the agent gets the conversation that was decided on, and the run its record.

use std::sync::Arc;

use super::{
    AgentEntry, ConcurrentRuns, DetachedRun, Run, RunLimits, RunRequest, Runs, Slot, StartError, StartedRun, StoredRun,
    Transcript,
    active::ActiveRun,
    admission::BegunRun,
    branch::LoadedThread,
    conversation::Case,
    detached,
    drive::Drive as _,
    log::{Follower, LiveLog},
    plan::ClientInput,
    recorder::{RunGuards, RunRecorder},
    resume::ResumeDecision,
};
use crate::{
    agent::{Forwarded, Principal, RunContext, RunIdentity},
    protocol::{
        Event, Interrupt, Messages, RunAgentInput,
        event::{MessagesSnapshot, RunError, RunFinished, RunOutcome, StateSnapshot},
    },
    store::{StoreError, ThreadVersion},
};

impl Runs {
    /// Launches a run of a server without stored threads.
    pub(super) fn launch_stateless(&self, request: RunRequest) -> Box<Run> {
        let RunRequest { slot, agent, input, principal, forwarded, .. } = request;
        self.run(slot, agent, input, principal, forwarded, self.limits)
    }

    /// Launches a run that was cancelled before it began: it says so and does nothing.
    pub(super) fn launch_cancelled(&self, request: RunRequest) -> Box<Run> {
        let run = self.launch_stateless(request);
        run.control().cancel();
        run
    }

    /// Launches a run that the store has begun.
    pub(super) fn launch(
        &self,
        begun: BegunRun,
        slot: Slot,
        agent: AgentEntry,
        principal: Option<Principal>,
        forwarded: Forwarded,
    ) -> Result<StartedRun, StartError> {
        let is_detached = slot.detached.is_some();
        let BegunRun { guard, client, loaded, mut plan, version, last_message, state_number } = begun;
        let (threads, key, lease) = (guard.threads.clone(), guard.key.clone(), guard.lease.clone());
        let (case, open) = (plan.decision.case, std::mem::take(&mut plan.open));
        let resume = std::mem::replace(&mut plan.resume, ResumeDecision::StillOpen);
        let state = plan.state.take();
        let ClientInput { messages, rest: mut input, .. } = client;
        // A client that sends no state takes it for empty.
        let lacks_state = input.state.is_none() && state.as_ref().is_some_and(|it| *it != serde_json::json!({}));
        let has_messages = loaded.as_ref().is_some_and(|loaded| loaded.branch.len() > 0);
        let shows_messages = !messages.is_empty();
        let bytes = loaded.as_ref().map_or(0, |loaded| loaded.bytes);
        let branch = plan.into_branch(loaded.map(|loaded| loaded.branch), messages, last_message);
        input.messages = branch.messages().clone();
        input.state = state.clone();

        let mut snapshots = Vec::new();
        // Without the agent the run restates the thread anyway, or fails.
        let is_answered = matches!(resume, ResumeDecision::Proceed(_));
        let lacks_messages = matches!(case, Case::NothingKnown | Case::Unseen) && has_messages && is_answered;
        if lacks_messages && threads.options.sync_messages {
            // A client keeps the messages that it has in their places and puts the others after them. Only one that has
            // none puts all of them in the order of the snapshot.
            if shows_messages {
                snapshots.push(MessagesSnapshot::new(Messages::default()).into());
            }
            snapshots.push(MessagesSnapshot::new(input.messages.clone()).into());
        }
        let (agent, interrupts) = answering(agent, &mut input, resume, open);
        let transcript = Transcript::new(input.messages.clone(), input.state_or_empty());
        let run_id = input.run_id.clone();
        let limits = match is_detached {
            true => RunLimits { max: threads.options.detached_max, heartbeat: None, ..self.limits },
            false => self.limits,
        };
        let run = self.run(slot, agent, input, principal, forwarded, limits);

        let log = is_detached.then(|| Arc::new(LiveLog::new(lease.clone(), threads.options.max_run_bytes)));
        let Some(turn) = guard.launch() else { return Err(StoreError::LeaseLost.into()) };
        turn.activate(Arc::new(ActiveRun::new(run_id.clone(), lease.clone(), run.control(), log.clone())));
        // A cancel, or a run that supersedes this one, came while it began.
        let is_superseded =
            threads.options.concurrent_runs == ConcurrentRuns::Supersede && threads.queue.has_waiting(&key);
        if is_superseded || turn.is_cancelled() {
            run.control().cancel();
        }
        let thread = LoadedThread {
            version: ThreadVersion { number: lease.thread, version },
            run_id: run_id.clone(),
            state: state_number.zip(state),
            interrupts,
            bytes,
            branch,
        };
        let guards = RunGuards { threads: threads.clone(), key: key.clone(), lease, _turn: turn };
        let recorder = RunRecorder::new(run, transcript, thread, guards);
        let recorder = if lacks_state { recorder.with_state_snapshot() } else { recorder };
        let Some(log) = log else {
            return Ok(StartedRun::Stored(Box::new(StoredRun::new(recorder.with_snapshots(snapshots)))));
        };
        let follower = Follower::of_live(threads.store.clone(), key, run_id, log.clone());
        let span = recorder.run().span().clone();
        tokio::spawn(tracing::Instrument::instrument(detached::drive(recorder, log), span));
        Ok(StartedRun::Detached(DetachedRun { follower, snapshots }))
    }

    fn run(
        &self,
        slot: Slot,
        agent: AgentEntry,
        input: RunAgentInput,
        principal: Option<Principal>,
        forwarded: Forwarded,
        limits: RunLimits,
    ) -> Box<Run> {
        let (thread_id, run_id) = (input.thread_id.clone(), input.run_id.clone());
        let identity = RunIdentity { thread_id, run_id, agent: agent.name, principal };
        let cx = RunContext::with_forwarded(identity, forwarded);
        // It is large, and moved several times before it is polled.
        Box::new(Run::new(agent.agent, input, cx, limits, self.live.enter(), slot))
    }
}

/// Gives the agent the answers to open interrupts. If it is not to be called, returns one that only says why. The
/// interrupts are those that stay open.
fn answering(
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
