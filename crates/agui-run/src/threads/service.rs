//! [`Threads`]: the stored threads of a server.

use std::sync::Arc;

use super::ThreadError;
use crate::{Runs, ThreadCore, ThreadEvents};
use agui_protocol::RunId;
use agui_store::{RunRecord, Thread, ThreadKey, ThreadParts, ThreadView};

/// The stored threads of a server. Cheap to clone.
#[derive(Clone)]
pub struct Threads {
    /// The store, the queues and the cache, which the runs use, too.
    pub core: Arc<ThreadCore>,
    /// Starts the background tasks.
    pub(super) server: Arc<Runs>,
}

impl Threads {
    /// Returns the threads of a server.
    pub fn of(server: &Arc<Runs>) -> Self {
        Self { core: server.threads.clone(), server: server.clone() }
    }

    /// Reads the changes of an owner's threads from now on.
    pub fn follow_changes(&self, owner: Arc<str>) -> ThreadEvents {
        self.server.start_tasks();
        self.core.events.subscribe(owner)
    }

    /// Reads the parts of a thread that `include` names.
    pub(super) async fn view(
        &self,
        key: &ThreadKey,
        include: ThreadParts,
    ) -> Result<ThreadView, ThreadError> {
        self.core.store.thread(key, include).await?.ok_or(ThreadError::NoThread)
    }

    /// Reads a thread without its messages and its state.
    ///
    /// # Errors
    /// A [`ThreadError`].
    pub async fn thread(&self, key: &ThreadKey) -> Result<Thread, ThreadError> {
        Ok(self.view(key, ThreadParts::default()).await?.thread)
    }

    /// Reads a run of a thread.
    pub(super) async fn run(&self, thread: &Thread, id: &RunId) -> Result<RunRecord, ThreadError> {
        let run = self.core.store.run(&thread.key.owner, thread.number, id).await?;
        run.ok_or(ThreadError::NoRun)
    }
}
