//! The journal of a run, from which another server can continue it.

use std::{collections::HashSet, sync::Arc};

use futures::future::BoxFuture;
use serde_json::Value;

/// What is kept of a run for another server, as its agent sees it.
pub trait Journal: Send + Sync {
    /// Marks the place after the events that were yielded so far.
    fn mark(&self, mark: Value);

    /// Completes when all events and marks so far are stored, so that a call may run which must not be repeated. Never completes
    /// if another server has continued the run.
    fn written(&self) -> BoxFuture<'_, ()>;

    /// Returns whether another server would continue the run.
    fn is_kept(&self) -> bool;

    /// Returns whether another server continues the run.
    fn is_left(&self) -> bool;
}

/// The journal of one run.
pub struct RunJournal {
    /// Takes the run's marks.
    pub log: Arc<dyn Journal>,
    /// `None` for a run that begins.
    pub continuation: Option<Continuation>,
}

/// The stored progress of a run that another server, or this server before its last restart, has
/// begun.
///
/// The run's input ends with the messages up to its last [mark](super::RunContext::mark), or
/// without a mark, with the messages at its start. Later events of the agent are replaced for all
/// clients.
#[derive(Debug, Clone, Default)]
pub struct Continuation {
    /// The number of times that the run was continued, including this time.
    pub attempt: u32,
    /// The agent's marks, in order.
    pub marks: Vec<Value>,
    /// The number of these marks that an earlier attempt has made. Their tokens count there.
    #[doc(hidden)]
    pub earlier_marks: usize,
    /// The ids of retracted messages and calls. Clients know them, so they are not used again.
    #[doc(hidden)]
    pub retracted: HashSet<String>,
}
