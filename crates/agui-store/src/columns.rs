//! The columns that a store writes. SQLite gets them one by one, Postgres as one JSON argument with
//! the fields' names.

use std::{collections::BTreeSet, sync::Arc};

use serde::Serialize;
use serde_json::Value;

use super::{
    BranchWrite, CopiedMessage, CopiedRun, EndReason, EventBatch, Lease, MessageNumber, Millis,
    NewRun, QueueNumber, RunEnd, RunNumber, StateNumber, StoreResult, ThreadContent, ThreadKey,
    ThreadSize, ThreadUpdate, ThreadVersion,
    files::named_files,
    text::{lines, list_to_json, name_to_text, times, to_json},
};
use agui_protocol::{Interrupt, Message};

/// Returns the words by which Postgres finds a text. SQLite makes its index from stored messages.
#[derive(Debug, Clone, Copy)]
pub(super) struct Indexing {
    pub(super) message: fn(&Message) -> Option<String>,
    pub(super) title: fn(&str) -> Option<String>,
}

/// New messages of a write whose words are indexed. With 500 words each they take a loaded server 2
/// s.
const MAX_INDEXED: i64 = 400;
/// The value for SQLite, which makes its index from stored messages (`sqlite::search`).
pub(super) const NO_WORDS: Indexing = Indexing { message: |_| None, title: |_| None };

/// Declares a struct of columns, and its function `new`, which makes each column by the expression beside it.
macro_rules! columns {
    ($(#[$meta:meta])* $name:ident from ($($argument:ident: $argument_type:ty),+)
    $(where { $(let $local:ident = $local_value:expr;)+ })? {
        $($(#[$column_meta:meta])* $column:ident: $type:ty = $value:expr,)+
    }) => {
        $(#[$meta])*
        #[derive(Debug, Serialize)]
        pub(super) struct $name {
            $($(#[$column_meta])* pub(super) $column: $type,)+
        }

        impl $name {
            pub(super) fn new($($argument: $argument_type),+) -> StoreResult<Self> {
                $($(let $local = $local_value;)+)?
                Ok(Self { $($column: $value,)+ })
            }
        }
    };
}

columns! {
    /// The columns of a message that is new, or has a new body.
    MessageColumns from (number: MessageNumber, message: &Message, run: Option<RunNumber>, indexing: Indexing) {
        /// The number of a stored message, or the position of a new message among the new ones,
        /// from 1.
        number: MessageNumber = number,
        id: String = text(message.id()),
        role: &'static str = message.role().as_str(),
        run: Option<RunNumber> = run,
        body: String = to_json(message),
        words: Option<String> = (indexing.message)(message),
    }
}

columns! {
    BranchColumns from (
        branch: &BranchWrite<'_>, state: Option<&Value>, interrupts: &[Interrupt], indexing: Indexing
    ) where {
        let new = branch.new.iter().zip(1..);
        let new = new.map(|((message, run), position)| {
            let indexing = if position > MAX_INDEXED { NO_WORDS } else { indexing };
            MessageColumns::new(MessageNumber(position), message, *run, indexing)
        });
        let messages = new.collect::<StoreResult<Vec<_>>>()?;
        let updated = branch.updated.iter();
        let updated = updated.map(|(number, message)| MessageColumns::new(*number, message, None, indexing));
        let updated = updated.collect::<StoreResult<Vec<_>>>()?;
        let state = state.map(to_json);
        let named = branch.updated.iter().map(|(_, message)| *message);
        let named = branch.new.iter().map(|(message, _)| *message).chain(named);
    } {
        /// The length of the new messages and the state.
        bytes: u64 =
            messages.iter().map(|new| &new.body).chain(&state).map(|text| text.len() as u64).sum(),
        /// The length of all updated bodies: the upper limit of what they add to the thread.
        updated_bytes: u64 = updated.iter().map(|message| message.body.len() as u64).sum(),
        base: MessageNumber = branch.base,
        messages: Vec<MessageColumns> = messages,
        updated: Vec<MessageColumns> = updated,
        state: Option<String> = state,
        interrupts: Option<String> = list_to_json(interrupts),
        /// The ids of the files that the messages name.
        #[serde(skip)]
        files: BTreeSet<String> = named_files(named),
    }
}

impl BranchColumns {
    /// Returns the size of a thread after this write, at most.
    pub(super) fn size_after(&self, before: ThreadSize) -> ThreadSize {
        ThreadSize {
            messages: before.messages + self.messages.len() as u64,
            bytes: before.bytes + self.bytes + self.updated_bytes,
        }
    }
}

columns! {
    BeginColumns from (run: &NewRun<'_>, indexing: Indexing) {
        owner: Arc<str> = run.key.owner.clone(),
        id: String = text(&run.key.id),
        run_id: String = text(run.run_id),
        asked: Option<String> = run.asked.map(text),
        known: RunNumber = run.known,
        queued: Option<QueueNumber> = run.queued,
        continues: bool = run.continues,
        agent: String = text(run.agent),
        title: Option<String> = run.title.map(text),
        title_words: Option<String> = run.title.and_then(indexing.title),
        detached: bool = run.detached,
        holder: Arc<str> = run.holder.clone(),
        now: Millis = run.now,
        lease_until: Millis = run.lease_until,
        #[serde(flatten)]
        expected: Option<ThreadVersion> = run.expected,
        #[serde(flatten)]
        branch: BranchColumns = BranchColumns::new(&run.branch, run.state, run.interrupts, indexing)?,
        state_number: Option<StateNumber> = run.state_number,
        first_run: Option<RunNumber> = run.first_run,
        answered: Option<String> = list_to_json(&run.answered),
        request: Option<String> = run.request.map(str::to_owned),
        started: Option<String> = run.started.map(str::to_owned),
        max_messages: u64 = run.max_size.messages,
        max_bytes: u64 = run.max_size.bytes,
        #[serde(skip)]
        max_size: ThreadSize = run.max_size,
    }
}

columns! {
    BatchColumns from (batch: &EventBatch) {
        lease: Lease = batch.lease.clone(),
        first: i64 = batch.first.cast_signed(),
        last: i64 = (batch.first + batch.events.len() as u64).saturating_sub(1).cast_signed(),
        body: String = lines(&batch.events)?,
        times: String = times(batch)?,
    }
}

impl BeginColumns {
    /// Returns the approximate bytes of the write.
    pub(super) fn bytes(&self) -> u64 {
        self.branch.bytes
            + self.branch.updated_bytes
            + self.request.as_ref().map_or(0, |request| request.len() as u64)
    }
}

impl FinishColumns {
    /// Returns the approximate bytes of the write.
    pub(super) fn bytes(&self) -> u64 {
        let events = self.last_events.as_ref().map_or(0, |batch| batch.body.len() as u64);
        self.branch.bytes + self.branch.updated_bytes + events
    }
}

impl BatchColumns {
    /// Returns the batch of a run with this lease.
    pub(super) fn of(self, lease: &Lease) -> Self {
        Self { lease: lease.clone(), ..self }
    }

    /// Returns the first batch of a log.
    pub(super) fn begin(lease: Lease, line: &str) -> Self {
        Self { lease, first: 1, last: 1, body: line.to_owned(), times: "0".to_owned() }
    }
}

columns! {
    FinishColumns from (lease: &Lease, end: &RunEnd<'_>, indexing: Indexing) where {
        let last_events = end.last_events.filter(|batch| !batch.events.is_empty());
    } {
        #[serde(flatten)]
        lease: Lease = lease.clone(),
        status: &'static str = end.status.as_str(),
        ended_at: Millis = end.ended_at,
        events: u64 = end.events,
        usage: Option<String> = list_to_json(end.usage),
        failure: Option<String> = end.failure.map(to_json),
        end_reason: Option<&'static str> = end.reason.map(EndReason::as_str),
        has_unsafe_calls: bool = end.has_unsafe_calls,
        #[serde(flatten)]
        branch: BranchColumns = BranchColumns::new(&end.branch, end.state, end.interrupts, indexing)?,
        delivered: bool = end.delivered,
        last_events: Option<BatchColumns> = last_events.map(BatchColumns::new).transpose()?,
    }
}

columns! {
    /// Each nullable part has a flag that says whether it is set.
    UpdateColumns from (expected: ThreadVersion, update: &ThreadUpdate<'_>, indexing: Indexing) where {
        let title = update.title.flatten();
    } {
        #[serde(flatten)]
        expected: ThreadVersion = expected,
        sets_title: bool = update.title.is_some(),
        title: Option<String> = title.map(text),
        title_words: Option<String> = title.and_then(indexing.title),
        archived: Option<bool> = update.archived,
        sets_metadata: bool = update.metadata.is_some(),
        metadata: Option<String> = update.metadata.filter(|metadata| !metadata.is_empty()).map(to_json),
        head: Option<MessageNumber> = update.head.map(|head| head.head),
        state: Option<StateNumber> = update.head.and_then(|head| head.state_number),
        interrupts: Option<String> = update.head.and_then(|head| list_to_json(head.interrupts)),
    }
}

columns! {
    /// States and runs are named by their positions, from 0.
    ContentColumns from (key: &ThreadKey, content: &ThreadContent, indexing: Indexing) where {
        let messages = content.messages.iter().zip(1..);
        let messages = messages.map(|(copied, number)| CopiedMessageColumns::new(MessageNumber(number), copied, indexing));
        let messages = messages.collect::<StoreResult<Vec<_>>>()?;
        let states = content.states.iter().map(to_json).collect::<Vec<_>>();
        let runs = content.runs.iter().enumerate().map(|(position, run)| CopiedRunColumns::new(position, run));
    } {
        owner: Arc<str> = key.owner.clone(),
        id: String = text(&key.id),
        agent: String = text(&content.agent),
        title: Option<String> = content.title.as_deref().map(text),
        title_words: Option<String> = content.title.as_deref().and_then(indexing.title),
        archived: bool = content.archived,
        metadata: Option<String> = Some(&content.metadata).filter(|metadata| !metadata.is_empty()).map(to_json),
        head: MessageNumber = content.head,
        state: Option<usize> = content.state,
        interrupts: Option<String> = list_to_json(&content.interrupts),
        bytes: u64 = content.bytes(),
        created_at: Millis = content.created_at,
        updated_at: Millis = content.updated_at,
        messages: Vec<CopiedMessageColumns> = messages,
        states: Vec<String> = states,
        runs: Vec<CopiedRunColumns> = runs.collect::<StoreResult<_>>()?,
        /// The ids of the files that the messages name.
        #[serde(skip)]
        files: BTreeSet<String> = named_files(content.messages.iter().map(|copied| &copied.message)),
    }
}

columns! {
    CopiedMessageColumns from (number: MessageNumber, copied: &CopiedMessage, indexing: Indexing) where {
        let run = copied.run.map(|run| RunNumber(run as i64));
    } {
        #[serde(flatten)]
        message: MessageColumns = MessageColumns::new(number, &copied.message, run, indexing)?,
        parent: MessageNumber = copied.parent,
        feedback: Option<String> = copied.feedback.as_ref().map(to_json),
    }
}

columns! {
    CopiedRunColumns from (position: usize, run: &CopiedRun) {
        position: usize = position,
        id: String = text(&run.record.id),
        attempt: u32 = run.record.attempt,
        continues: bool = run.record.continues,
        agent: String = text(&run.record.agent),
        status: &'static str = run.record.status.as_str(),
        delivered: bool = run.record.delivered,
        head: MessageNumber = run.head,
        state: Option<usize> = run.state,
        interrupts: Option<String> = list_to_json(&run.interrupts),
        answered: Option<String> = list_to_json(&run.answered),
        started_at: Millis = run.record.started_at,
        ended_at: Option<Millis> = run.record.ended_at,
        events: u64 = run.record.events,
        usage: Option<String> = list_to_json(&run.record.usage),
        failure: Option<String> = run.record.failure.as_ref().map(to_json),
        end_reason: Option<&'static str> = run.record.end_reason.map(EndReason::as_str),
        has_unsafe_calls: bool = run.record.has_unsafe_calls,
    }
}

fn text(name: &str) -> String {
    name_to_text(name).into_owned()
}
