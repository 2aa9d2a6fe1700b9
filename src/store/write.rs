//! What is written to a store, and what a write returns.

use std::sync::Arc;

use serde_json::Value;

use super::model::{Lease, Millis, RunFailure, RunRecord, RunStatus, ThreadKey, ThreadSize, ThreadVersion, now};
use crate::protocol::{Interrupt, InterruptId, Message, RunId, TokenUsage};

/// Messages to write: a chain of new ones below an existing one, and new texts for existing ones.
#[derive(Debug, Clone, Default)]
pub struct BranchWrite<'a> {
    /// The message that the new ones follow; 0 is the root. Without new ones it becomes the head.
    pub base: i64,
    /// The new messages, each the child of the one before it, and the number of the run that made it.
    pub new: Vec<(&'a Message, Option<i64>)>,
    /// Messages whose body is replaced, by number.
    pub updated: Vec<(i64, &'a Message)>,
}

/// A run to begin.
#[derive(Debug, Clone)]
pub struct NewRun<'a> {
    /// The thread.
    pub key: &'a ThreadKey,
    /// The run's id.
    pub run_id: &'a RunId,
    /// The agent that answers.
    pub agent: &'a str,
    /// Whether the run outlives its connection, and so has a log.
    pub detached: bool,
    /// The process that drives the run.
    pub holder: &'a Arc<str>,
    /// The time now.
    pub now: Millis,
    /// Until when the lease is taken, if the store is shared.
    pub lease_until: Millis,
    /// The thread as the caller has read it; `None` when the run is to make it.
    pub expected: Option<ThreadVersion>,
    /// What the client brought.
    pub branch: BranchWrite<'a>,
    /// The state that the run starts from, if it is another one than the thread's.
    pub state: Option<&'a Value>,
    /// What the state of the branch is without that: the number of a stored state.
    pub state_number: Option<i64>,
    /// The interrupts that stay open.
    pub interrupts: &'a [Interrupt],
    /// The interrupts that the run answers.
    pub answered: Vec<&'a InterruptId>,
    /// How large the thread may become. An updated message counts with its new text, beside its old one.
    pub max_size: ThreadSize,
}

/// The result of beginning a run.
#[derive(Debug)]
pub enum BeginOutcome {
    /// It has begun.
    Begun {
        /// The right to write.
        lease: Lease,
        /// The thread's version now.
        version: i64,
        /// The number of the last new message; the new ones are numbered consecutively.
        last_message: i64,
        /// The number of the state that the run starts from.
        state_number: Option<i64>,
        /// Whether an ended run of the same id was replaced.
        replaced: bool,
    },
    /// The thread is not as the caller knows it: it exists, is gone, or has another version.
    Changed,
    /// The thread has a running run.
    Busy {
        /// That run.
        run: RunRecord,
        /// Its lease, if it can be taken over.
        lost: Option<Lease>,
    },
    /// The thread would become larger than `run.max_size`: this large.
    TooLarge(ThreadSize),
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
}

/// How a run ended.
#[derive(Debug, Clone)]
pub struct RunEnd<'a> {
    /// Anything but [`RunStatus::Running`].
    pub status: RunStatus,
    /// When. Together with the status it identifies a repeated write of the same end.
    pub ended_at: Millis,
    /// The number of events that the run sent.
    pub events: u64,
    /// What its model calls cost.
    pub usage: &'a [TokenUsage],
    /// How it failed.
    pub failure: Option<&'a RunFailure>,
    /// The messages that the run made.
    pub branch: BranchWrite<'a>,
    /// The state, if the run has changed it.
    pub state: Option<&'a Value>,
    /// The interrupts that are open now.
    pub interrupts: &'a [Interrupt],
    /// Whether the response is on its way to a client. [`Store::set_delivered`](super::Store::set_delivered) corrects it.
    pub delivered: bool,
    /// The last events of the log.
    pub last_events: Option<&'a EventBatch>,
}

impl RunEnd<'_> {
    /// The end of a run that has made nothing: its branch stays at `head`.
    pub fn new(status: RunStatus, head: i64) -> Self {
        Self {
            status,
            ended_at: now(),
            events: 0,
            usage: &[],
            failure: None,
            branch: BranchWrite { base: head, ..BranchWrite::default() },
            state: None,
            interrupts: &[],
            delivered: false,
            last_events: None,
        }
    }
}

/// What a run left behind when it ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FinishedRun {
    /// The thread's version now.
    pub version: i64,
    /// The number of the last new message; the new ones are numbered consecutively.
    pub last_message: i64,
    /// The number of the state that the run left.
    pub state_number: Option<i64>,
    /// The bytes of the thread's messages and states.
    pub bytes: u64,
}
