//! Pages of a thread's messages, from the newest one backwards.

use indexmap::IndexMap;
use serde::{Serialize, Serializer};
use utoipa::ToSchema;

use super::{ThreadError, Threads};
use agui_protocol::{Message, MessageId, RunId};
use agui_store::{
    Feedback, MessageNode, MessageNumber, MessageQuery, QueuedRun, RunRecord, StoreError, Thread,
    ThreadKey, ThreadParts,
};

/// Messages of a thread.
#[derive(Debug, Clone, Default, PartialEq, Serialize, ToSchema)]
#[schema(as = MessagePage)]
pub struct MessageList {
    /// The oldest first.
    pub messages: Vec<Message>,
    /// The `before` of the page with the earlier messages. `null` if these are the first messages.
    #[serde(serialize_with = "as_text")]
    #[schema(required, value_type = Option<String>)]
    pub before: Option<MessageNumber>,
    /// By message id: the ids of all messages in its place.
    // In the order in which they were stored. Messages without alternatives have no entry.
    #[schema(value_type = BTreeMap<String, Vec<MessageId>>)]
    pub alternatives: IndexMap<MessageId, Vec<MessageId>>,
    /// By message id.
    #[serde(skip_serializing_if = "IndexMap::is_empty")]
    #[schema(value_type = BTreeMap<String, Feedback>)]
    pub feedback: IndexMap<MessageId, Feedback>,
}

fn as_text<S: Serializer>(
    number: &Option<MessageNumber>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    number.map(|number| number.to_string()).serialize(serializer)
}

/// A thread with its newest runs and a page of its messages.
#[derive(Debug)]
pub struct ThreadOverview {
    /// The thread.
    pub thread: Thread,
    /// The newest runs, the newest first.
    pub runs: Vec<RunRecord>,
    /// The queued runs, the next one first.
    pub queued: Vec<QueuedRun>,
    /// The page of messages.
    pub messages: MessageList,
}

impl Threads {
    /// Reads a page of at most `limit` messages of a thread, at the cursor `before`: without one,
    /// the newest messages of the current branch, or with `run` the messages of this run.
    ///
    /// # Errors
    /// A [`ThreadError`].
    pub async fn messages(
        &self,
        key: &ThreadKey,
        before: Option<MessageNumber>,
        run: Option<&RunId>,
        limit: usize,
    ) -> Result<MessageList, ThreadError> {
        self.wait_if_abandoned(key).await;
        let thread = self.thread(key).await?;
        let run = match run {
            Some(run) => Some(self.run(&thread, run).await?.number),
            None => None,
        };
        let last = if run.is_some() { MessageNumber(i64::MAX) } else { thread.head };
        let query = MessageQuery { newest: before.unwrap_or(last), run, limit };
        Ok(self.message_list(&thread, &query).await?)
    }

    /// Reads a thread with its newest runs, and the page of messages at the cursor `before`: without one, the
    /// newest messages of the current branch.
    ///
    /// # Errors
    /// A [`ThreadError`].
    pub async fn overview(
        &self,
        key: &ThreadKey,
        runs: usize,
        before: Option<MessageNumber>,
        limit: usize,
    ) -> Result<ThreadOverview, ThreadError> {
        self.wait_if_abandoned(key).await;
        let view =
            self.view(key, ThreadParts { state: true, runs, ..ThreadParts::default() }).await?;
        let query = MessageQuery { newest: before.unwrap_or(view.thread.head), run: None, limit };
        let messages = self.message_list(&view.thread, &query).await?;
        let queued = self.core.queued_runs(&key.owner, view.thread.number).await?;
        Ok(ThreadOverview { thread: view.thread, runs: view.runs, queued, messages })
    }

    /// Returns the id of the run that left the open interrupts of a thread's current branch; `None`
    /// if no interrupt is open. Another branch may have the newest run.
    ///
    /// # Errors
    /// The error of the store.
    pub async fn asking_run(&self, thread: &Thread) -> Result<Option<RunId>, StoreError> {
        if thread.interrupts.is_empty() {
            return Ok(None);
        }
        let left =
            self.left_on_branch(thread, thread.head).await?.filter(|left| left.head == thread.head);
        Ok(Some(left.map_or_else(|| thread.run_id.clone(), |left| left.run_id)))
    }

    async fn message_list(
        &self,
        thread: &Thread,
        query: &MessageQuery,
    ) -> Result<MessageList, StoreError> {
        let page = self.core.store.messages(thread, query).await?;
        let mut list = MessageList { before: page.before, ..MessageList::default() };
        for MessageNode { message, parent, feedback, .. } in page.nodes {
            if let Some(siblings) = page.siblings.get(&parent) {
                list.alternatives.insert(message.id().clone(), siblings.clone());
            }
            list.feedback.extend(feedback.map(|given| (message.id().clone(), given)));
            list.messages.push(message);
        }
        Ok(list)
    }
}
