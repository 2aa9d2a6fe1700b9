//! The routes of a server beside that for runs: stored threads, and cancelling a run.

use std::error::Error;

use serde::Deserialize;
use serde_json::Value;

use crate::{
    protocol::{Interrupt, Message, RunId, ThreadId},
    server::cli::server_client::ServerClient,
};

const MAX_LISTED_THREADS: &str = "20";

#[derive(Deserialize)]
pub(super) struct ListedThreads {
    pub(super) threads: Vec<ListedThread>,
    /// Present if there are more.
    pub(super) next: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ListedThread {
    pub(super) thread_id: ThreadId,
    pub(super) agent: String,
    pub(super) title: Option<String>,
    pub(super) updated_at: String,
}

/// A thread with its newest messages.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ContinuedThread {
    pub(super) thread_id: ThreadId,
    pub(super) agent: String,
    pub(super) messages: Vec<Message>,
    pub(super) state: Option<Value>,
    pub(super) interrupts: Vec<Interrupt>,
    pub(super) active_run_id: Option<RunId>,
    /// Absent if these are all messages.
    pub(super) before: Option<String>,
}

impl ServerClient<'_> {
    /// Returns the newest threads, of one agent if it is named.
    pub(super) async fn threads(&self, agent: Option<&str>) -> Result<ListedThreads, Box<dyn Error>> {
        let mut query = vec![("limit", MAX_LISTED_THREADS)];
        query.extend(agent.map(|agent| ("agent", agent)));
        self.read(&["threads"], &query).await
    }

    /// Returns a thread with its newest messages.
    pub(super) async fn thread(&self, id: &ThreadId) -> Result<ContinuedThread, Box<dyn Error>> {
        self.read(&["threads", id], &[]).await
    }

    /// Cancels a run. Fails if the target is no server with this route.
    pub(super) async fn cancel(&self, thread: &ThreadId, run: &RunId) -> Result<(), Box<dyn Error>> {
        self.post(&["threads", thread, "runs", run, "cancel"]).await
    }
}
