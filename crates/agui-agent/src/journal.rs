//! What a run writes down so that another server can go on with it.

use std::{collections::HashSet, sync::Arc};

use futures::future::BoxFuture;
use serde_json::Value;

/// The log of a detached run, as its agent sees it.
pub trait Journal: Send + Sync {
    /// Notes a place after the events that were yielded so far.
    fn mark(&self, mark: Value);

    /// Completes when all events and marks so far are stored. Never completes if another server has taken the run over.
    fn written(&self) -> BoxFuture<'_, ()>;

    /// Returns whether another server goes on with the run.
    fn is_left(&self) -> bool;
}

/// The journal of one run.
pub struct RunJournal {
    /// The log that takes the run's marks.
    pub log: Arc<dyn Journal>,
    /// `None` for a run that begins.
    pub continuation: Option<Continuation>,
}

/// What a run finds that another server began, or this one before its last restart.
///
/// The run's input then ends with the messages up to its last [mark](super::RunContext::mark); without a mark, they are
/// those that the run began with. What the agent yielded after it is replaced for all clients.
#[derive(Debug, Clone, Default)]
pub struct Continuation {
    /// How often the run was continued, with this time.
    pub attempt: u32,
    /// The agent's marks, in order.
    pub marks: Vec<Value>,
    /// The ids of messages and calls that were taken back. Clients know them, so they are not used again.
    #[doc(hidden)]
    pub taken_back: HashSet<String>,
}
