//! The arguments and results of the writes of a store.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::{
    MessageNumber, QueueNumber, RunNumber, StateNumber,
    model::{
        EndReason, Lease, Millis, RunFailure, RunRecord, RunStatus, ThreadKey, ThreadSize,
        ThreadVersion, now,
    },
};
use agui_protocol::{Interrupt, Message, ResumeEntry, RunId, TokenUsage};

/// Messages to write: new ones, each below the one before it, and new bodies of stored ones.
#[derive(Debug, Clone, Default)]
pub struct BranchWrite<'a> {
    /// The number of the message before the first new one; 0 is the root. Without new messages it becomes the head.
    pub base: MessageNumber,
    /// The new messages, each with the number of the run that made it; `None` for a message of a client.
    pub new: Vec<(&'a Message, Option<RunNumber>)>,
    /// The new bodies of stored messages, by number.
    pub updated: Vec<(MessageNumber, &'a Message)>,
}

/// A run to begin.
#[derive(Debug, Clone)]
pub struct NewRun<'a> {
    /// The thread.
    pub key: &'a ThreadKey,
    /// The run's id.
    pub run_id: &'a RunId,
    /// A digest of the request. A run with the same id and digest answers the same request.
    pub asked: Option<&'a str>,
    /// The number of the newest run that the caller has compared with `asked`; 0 by default.
    pub known: RunNumber,
    /// The number of the queued run that it was.
    pub queued: Option<QueueNumber>,
    /// True if the run continues the attempt of its id before it.
    pub continues: bool,
    /// The name of its agent.
    pub agent: &'a str,
    /// True if the run continues when its client leaves; such a run has a log.
    pub detached: bool,
    /// The process that runs it.
    pub holder: &'a Arc<str>,
    /// The current time.
    pub now: Millis,
    /// The end of the lease in a shared store.
    pub lease_until: Millis,
    /// The version of the thread that the caller has read; `None` if the run creates the thread.
    pub expected: Option<ThreadVersion>,
    /// The title, if the thread has none.
    pub title: Option<&'a str>,
    /// The messages of the client.
    pub branch: BranchWrite<'a>,
    /// The first run of the branch that this run extends; `None` if this run is the first one.
    pub first_run: Option<RunNumber>,
    /// The state that the run starts from, if it has to be stored.
    pub state: Option<&'a Value>,
    /// The number of the stored state that the run starts from, if `state` is `None`.
    pub state_number: Option<StateNumber>,
    /// The interrupts that stay open.
    pub interrupts: &'a [Interrupt],
    /// The replies that the run brings, in the form for [`Store::answered`](super::Store::answered).
    pub answered: Vec<ResumeEntry>,
    /// The input of a detached run beside messages and state, as JSON. It is kept with the log, for
    /// [`Store::run_start`](super::Store::run_start).
    pub request: Option<&'a str>,
    /// The first event of a detached run's log, as one line of JSON. Its time is 0.
    pub started: Option<&'a str>,
    /// The maximum size of the thread. An updated message counts with its old and its new body.
    pub max_size: ThreadSize,
}

impl<'a> NewRun<'a> {
    /// Returns a run without messages on a new thread, which begins now and has no limits.
    pub fn new(
        key: &'a ThreadKey,
        run_id: &'a RunId,
        agent: &'a str,
        holder: &'a Arc<str>,
    ) -> Self {
        Self {
            key,
            run_id,
            asked: None,
            known: RunNumber::default(),
            queued: None,
            continues: false,
            agent,
            detached: false,
            holder,
            now: now(),
            lease_until: Millis::MAX,
            expected: None,
            title: None,
            branch: BranchWrite::default(),
            first_run: None,
            state: None,
            state_number: None,
            interrupts: &[],
            answered: Vec::new(),
            request: None,
            started: None,
            max_size: ThreadSize { messages: u64::MAX, bytes: u64::MAX },
        }
    }
}

/// A run that has begun.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Begun {
    /// The lease of the run.
    pub lease: Lease,
    /// The new version of the thread.
    pub version: i64,
    /// The number of the last message of the thread. The new messages are the last ones.
    pub last_message: MessageNumber,
    /// The number of the state that the run starts from.
    pub state_number: Option<StateNumber>,
}

/// The result of beginning a run.
#[derive(Debug)]
pub enum BeginOutcome {
    /// It has begun.
    Begun(Begun),
    /// The thread has another version than expected, or does not exist, or exists already.
    Changed,
    /// The thread has a running run.
    Busy {
        /// The running run.
        run: RunRecord,
        /// Its lease, if the run is lost and another process can take the lease.
        lost: Option<Lease>,
    },
    /// The queued run has begun, or was removed.
    Dequeued,
    /// Another process holds a queued run of the thread before the first one of this process.
    Behind,
    /// The newest run with the id and the digest of this one, and a number above `run.known`.
    Known(Box<RunRecord>),
    /// The size that the thread would have, above `run.max_size`.
    TooLarge(ThreadSize),
}

/// Changes of a thread by its owner. `None` leaves a part as it is.
#[derive(Debug, Clone, Default)]
pub struct ThreadUpdate<'a> {
    /// The new title; `Some(None)` removes it.
    pub title: Option<Option<&'a str>>,
    /// True archives the thread, false undoes it.
    pub archived: Option<bool>,
    /// The new metadata as a whole.
    pub metadata: Option<&'a Map<String, Value>>,
    /// The new end of the current branch.
    pub head: Option<HeadUpdate<'a>>,
}

/// A new end of the current branch, with the state and the interrupts there.
#[derive(Debug, Clone, Copy, Default)]
pub struct HeadUpdate<'a> {
    /// The number of the last message.
    pub head: MessageNumber,
    /// The number of the state in the store; `None` if there is no state.
    pub state_number: Option<StateNumber>,
    /// The open interrupts.
    pub interrupts: &'a [Interrupt],
}

/// A batch of events for a run's log.
#[derive(Debug, Clone)]
pub struct EventBatch {
    /// The run's lease.
    pub lease: Lease,
    /// The number of the first event; a run's events are numbered from 1.
    pub first: u64,
    /// Each event as one line of JSON.
    pub events: Vec<String>,
    /// The time of each event, in milliseconds since the run's start.
    pub times: Vec<u64>,
}

/// The end of a run.
#[derive(Debug, Clone, Default)]
pub struct RunEnd<'a> {
    /// The status, which must not be [`RunStatus::Running`].
    pub status: RunStatus,
    /// The time of the end. A repeated write of the same end has the same time and status.
    pub ended_at: Millis,
    /// The number of events that the run sent.
    pub events: u64,
    /// The tokens that its model calls used.
    pub usage: &'a [TokenUsage],
    /// The failure of a failed run.
    pub failure: Option<&'a RunFailure>,
    /// Why the run ended before its agent had finished.
    pub reason: Option<EndReason>,
    /// True if a call started in the run that must not be repeated.
    pub has_unsafe_calls: bool,
    /// The messages that the run made.
    pub branch: BranchWrite<'a>,
    /// The state, if the run has changed it.
    pub state: Option<&'a Value>,
    /// The interrupts that are open after the run.
    pub interrupts: &'a [Interrupt],
    /// True while the response is sent to a client.
    /// [`Store::set_delivered`](super::Store::set_delivered) corrects it.
    pub delivered: bool,
    /// The last events of the log.
    pub last_events: Option<&'a EventBatch>,
}

impl RunEnd<'_> {
    /// Returns the end of a run that has made nothing: the branch ends at the message `head`.
    pub fn new(status: RunStatus, head: MessageNumber) -> Self {
        let branch = BranchWrite { base: head, ..BranchWrite::default() };
        Self { status, ended_at: now(), branch, ..Self::default() }
    }
}

/// The result of ending a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FinishedRun {
    /// The new version of the thread.
    pub version: i64,
    /// The number of the last message of the thread. The new messages are the last ones.
    pub last_message: MessageNumber,
    /// The number of the thread's state.
    pub state_number: Option<StateNumber>,
    /// The bytes of the thread's messages and states.
    pub bytes: u64,
}

pub(super) fn unanswered<'a>(
    interrupts: Vec<Interrupt>,
    answered: impl Iterator<Item = &'a ResumeEntry>,
) -> Vec<Interrupt> {
    let answered: Vec<_> = answered.map(|reply| &reply.interrupt_id).collect();
    interrupts.into_iter().filter(|interrupt| !answered.contains(&&interrupt.id)).collect()
}
