//! Copies of threads: a fork of a branch, an export of everything, an import.
//!
//! A copy is not a run, but it is stored with one, so that a thread always has a newest run: its id
//! names the copy, and it has the state and the open interrupts at its end. In a fork, messages of
//! runs stay messages of runs. In an import they become messages of the client, which wrote it: its
//! calls are never run, and its interrupts are not open.

use std::{collections::HashMap, fmt};

use super::{
    ThreadError, Threads,
    edits::BranchEnd,
    error::{MAX_COMMENT_BYTES, MAX_METADATA_BYTES},
};
use crate::{
    conversation::{
        ids::{check_id, check_message_ids},
        title::{MAX_TITLE_CHARS, on_one_line},
    },
    events::thread_event_hub::ThreadChange,
};
use agui_agent::files::AbsorbError;
use agui_protocol::{MessageId, RunId, ThreadId};
use agui_store::{
    CopiedMessage, CopiedRun, MessageNode, MessageNumber, MessageOrigin, Millis, RunNumber,
    RunRecord, RunStatus, Thread, ThreadContent, ThreadKey, ThreadNumber, ThreadView,
    host::{branch_of, json_len, now},
};

/// The highest attempt of an import.
const MAX_ATTEMPT: u32 = 1 << 30;

impl Threads {
    /// Creates a thread as a copy of another one: of the branch up to the message `at`, or of the
    /// current branch.
    ///
    /// # Errors
    /// A [`ThreadError`].
    pub async fn fork(
        &self,
        key: &ThreadKey,
        new_id: ThreadId,
        at: Option<&MessageId>,
    ) -> Result<Thread, ThreadError> {
        let ThreadView { thread, nodes, .. } = self.read(key).await?;
        let head = match at {
            Some(at) => message_number(&nodes, thread.head, at).ok_or(ThreadError::NoMessage)?,
            None => thread.head,
        };
        let branch = branch_of(&nodes, head);
        let BranchEnd { state, interrupts, .. } = if head == thread.head {
            BranchEnd { head, state: thread.state, interrupts: thread.interrupts }
        } else {
            self.end_of_branch(&thread, head).await?
        };
        let messages = branch.iter().zip(0..).map(|(node, parent)| CopiedMessage {
            parent: MessageNumber(parent),
            run: (node.origin != MessageOrigin::Client).then_some(0),
            message: node.message.clone(),
            feedback: None,
        });
        let now = now();
        let mut content = ThreadContent {
            agent: thread.agent,
            title: thread.title,
            metadata: thread.metadata,
            head: MessageNumber(branch.len() as i64),
            state: state.as_ref().map(|_| 0),
            interrupts,
            messages: messages.collect(),
            states: state.into_iter().map(|(_, state)| state).collect(),
            created_at: now,
            updated_at: now,
            ..ThreadContent::default()
        };
        // A person's decision also holds in the copy.
        let answered = self.core.store.answered(&key.owner, thread.number).await?;
        content.runs.push(CopiedRun { answered, ..run_of_copy("fork", &content, now) });
        self.create(&ThreadKey { owner: key.owner.clone(), id: new_id }, &content).await
    }

    /// Reads all stored data of a thread except the logs of its runs and a run that has not ended.
    ///
    /// # Errors
    /// A [`ThreadError`].
    pub async fn export(&self, key: &ThreadKey) -> Result<ThreadContent, ThreadError> {
        self.wait_if_abandoned(key).await;
        self.core.store.content(key).await?.ok_or(ThreadError::NoThread)
    }

    /// Creates a thread with the content of an export. All messages count as sent by the client, and no interrupt is open.
    ///
    /// # Errors
    /// A [`ThreadError`].
    pub async fn import(
        &self,
        key: &ThreadKey,
        mut content: ThreadContent,
    ) -> Result<Thread, ThreadError> {
        content.title = content.title.as_deref().and_then(on_one_line);
        content.interrupts = Vec::new();
        let now = now();
        for CopiedMessage { run, feedback, .. } in &mut content.messages {
            *run = None;
            feedback.iter_mut().for_each(|feedback| feedback.at = feedback.at.min(now));
        }
        for CopiedRun { record, interrupts, answered, .. } in &mut content.runs {
            (*interrupts, *answered) = (Vec::new(), Vec::new());
            record.started_at = record.started_at.min(now);
            record.ended_at = record.ended_at.map(|ended_at| ended_at.min(now));
        }
        // A time in the future would protect the thread from removal by age.
        content.created_at = content.created_at.min(now);
        // Retention removes old threads; this one is new.
        content.updated_at = now;
        content.runs.push(run_of_copy("import", &content, content.updated_at));
        self.check_content(&content)?;
        if let Some(files) = &self.core.files {
            let messages: Vec<_> =
                content.messages.iter_mut().map(|copied| &mut copied.message).collect();
            files.absorb(&key.owner, messages).await.map_err(|error| match error {
                AbsorbError::UnknownFile { message, part } => ThreadError::Invalid {
                    path: format!("messages[{message}].message.content[{part}].source.value"),
                    problem: "there is no such file".to_owned(),
                },
                AbsorbError::Store(error) => error.into(),
            })?;
        }
        self.create(key, &content).await
    }

    async fn create(
        &self,
        key: &ThreadKey,
        content: &ThreadContent,
    ) -> Result<Thread, ThreadError> {
        check_id(&key.id, || "threadId".to_owned())?;
        let size = content.bytes();
        let count = content.messages.len();
        if count as u64 > self.core.options.max_messages || size > self.core.options.max_bytes {
            return Err(ThreadError::TooLarge { messages: count, bytes: size });
        }
        let core = &self.core;
        core.stored_bytes
            .check::<ThreadError>(&core.store, &core.options.retention, &key.owner)
            .await?;
        if !self.core.store.insert(key, content).await? {
            return Err(ThreadError::Exists);
        }
        self.core.count_new_thread();
        self.core.publish(key, ThreadChange::Created);
        self.thread(key).await
    }

    /// Checks the properties that each export of this server has.
    fn check_content(&self, content: &ThreadContent) -> Result<(), ThreadError> {
        check_id(&content.agent, || "agent".to_owned())?;
        let title_chars = content.title.as_ref().map_or(0, |title| title.chars().count());
        let too_long = format_args!("longer than {MAX_TITLE_CHARS} characters");
        check("title", title_chars <= MAX_TITLE_CHARS, too_long)?;
        let too_large = format_args!("larger than {MAX_METADATA_BYTES} bytes");
        check("metadata", json_len(&content.metadata) <= MAX_METADATA_BYTES as u64, too_large)?;
        let (messages, states) = (content.messages.len() as i64, content.states.len());
        let is_head = |head: MessageNumber| (0..=messages).contains(&head.0);
        let is_state = |state: Option<usize>| state.is_none_or(|state| state < states);
        check("head", is_head(content.head), "no number of a message")?;
        check("state", is_state(content.state), "no position of a state")?;
        // The last one is the run of this import.
        let max_runs = self.core.options.max_messages.saturating_add(1);
        check(
            "runs",
            content.runs.len() as u64 <= max_runs,
            "more than [threads] max_messages allows",
        )?;
        check("states", states <= 2 * content.runs.len(), "more than two for each run")?;
        for (copied, number) in content.messages.iter().zip(1..) {
            let path = |member: &str| format!("messages[{}].{member}", number - 1);
            let is_parent = (0..number).contains(&copied.parent.0);
            check(&path("parent"), is_parent, "no number of an earlier message")?;
            check_message_ids(&copied.message, || path("message"))?;
            let is_accepted =
                self.core.options.accept_instructions || !copied.message.is_instruction();
            check(
                &path("message.role"),
                is_accepted,
                "this server accepts no instructions from clients",
            )?;
            let comment_bytes = copied
                .feedback
                .as_ref()
                .and_then(|given| given.comment.as_ref())
                .map_or(0, String::len);
            let too_long = format_args!("longer than {MAX_COMMENT_BYTES} bytes");
            check(&path("feedback.comment"), comment_bytes <= MAX_COMMENT_BYTES, too_long)?;
        }
        let mut newest = HashMap::new();
        for (at, run) in content.runs.iter().enumerate() {
            let path = |member: &str| format!("runs[{at}].{member}");
            check_id(&run.record.id, || path("runId"))?;
            let before = newest.insert(&run.record.id, run.record.attempt).unwrap_or(0);
            let is_next = (before + 1..=MAX_ATTEMPT).contains(&run.record.attempt);
            check(&path("attempt"), is_next, "no number after those of earlier runs with this id")?;
            check_id(&run.record.agent, || path("agent"))?;
            check(
                &path("status"),
                run.record.status != RunStatus::Running,
                "not the status of an ended run",
            )?;
            check(&path("head"), is_head(run.head), "no number of a message")?;
            check(&path("state"), is_state(run.state), "no position of a state")?;
        }
        Ok(())
    }
}

fn check(path: &str, is_valid: bool, problem: impl fmt::Display) -> Result<(), ThreadError> {
    if is_valid {
        Ok(())
    } else {
        Err(ThreadError::Invalid { path: path.to_owned(), problem: problem.to_string() })
    }
}

/// Returns the run that a copied thread ends with.
fn run_of_copy(kind: &str, content: &ThreadContent, at: Millis) -> CopiedRun {
    let id = RunId::from(format!("{kind}_{}", uuid::Uuid::new_v4().simple()));
    let record = RunRecord {
        status: if content.interrupts.is_empty() {
            RunStatus::Finished
        } else {
            RunStatus::Interrupted
        },
        delivered: true,
        started_at: at,
        ended_at: Some(at),
        ..RunRecord::new(RunNumber::default(), ThreadNumber::default(), id, content.agent.clone())
    };
    let interrupts = content.interrupts.clone();
    CopiedRun { record, head: content.head, state: content.state, interrupts, answered: Vec::new() }
}

/// Returns the number of the message with this id on the current branch, or of the newest one with
/// it.
fn message_number(
    nodes: &[MessageNode],
    head: MessageNumber,
    id: &MessageId,
) -> Option<MessageNumber> {
    let has_id = |node: &&MessageNode| node.message.id() == id;
    let current = branch_of(nodes, head).into_iter().rev().find(has_id);
    current.or_else(|| nodes.iter().rev().find(has_id)).map(|node| node.number)
}
