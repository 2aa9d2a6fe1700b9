//! The routes of a server beside that for runs: stored threads, and cancelling a run.

use std::{error::Error, time::Duration};

use futures::StreamExt as _;
use reqwest::{Client, Method, StatusCode, header::AUTHORIZATION};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::Value;

use super::printable::excerpt;
use crate::{
    cli::target::Target,
    protocol::{Interrupt, Message, RunId, ThreadId},
    upstream::{self, ClientError, ClientOptions},
};

const TIMEOUT: Duration = Duration::from_secs(10);
/// The largest answer that is read.
const MAX_BODY_BYTES: usize = 64 * 1024 * 1024;
const MAX_LISTED_THREADS: &str = "20";
const MAX_SHOWN_CHARS: usize = 300;

pub(super) struct ServerRoutes<'a> {
    target: &'a Target,
    client: Client,
}

#[derive(Deserialize)]
pub(super) struct ThreadList {
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
pub(super) struct StoredThread {
    pub(super) thread_id: ThreadId,
    pub(super) agent: String,
    pub(super) messages: Vec<Message>,
    pub(super) state: Option<Value>,
    pub(super) interrupts: Vec<Interrupt>,
    pub(super) active_run_id: Option<RunId>,
    /// Absent if these are all messages.
    pub(super) before: Option<String>,
}

impl<'a> ServerRoutes<'a> {
    pub(super) fn new(target: &'a Target) -> Result<Self, ClientError> {
        Ok(Self { target, client: upstream::client(&ClientOptions::default())? })
    }

    /// Returns the newest threads, of one agent if it is named.
    pub(super) async fn threads(&self, agent: Option<&str>) -> Result<ThreadList, Box<dyn Error>> {
        let mut query = vec![("limit", MAX_LISTED_THREADS)];
        query.extend(agent.map(|agent| ("agent", agent)));
        self.read(&["threads"], &query).await
    }

    /// Returns a thread with its newest messages.
    pub(super) async fn thread(&self, id: &ThreadId) -> Result<StoredThread, Box<dyn Error>> {
        self.read(&["threads", id], &[]).await
    }

    /// Cancels a run. Fails if the target is no server with this route.
    pub(super) async fn cancel(&self, thread: &ThreadId, run: &RunId) -> Result<(), Box<dyn Error>> {
        self.request(Method::POST, &["threads", thread, "runs", run, "cancel"], &[]).await.map(drop)
    }

    async fn read<T: DeserializeOwned>(&self, segments: &[&str], query: &[(&str, &str)]) -> Result<T, Box<dyn Error>> {
        let body = self.request(Method::GET, segments, query).await?;
        Ok(serde_json::from_slice(&body).map_err(|error| format!("the server's answer cannot be read: {error}"))?)
    }

    async fn request(
        &self,
        method: Method,
        segments: &[&str],
        query: &[(&str, &str)],
    ) -> Result<Vec<u8>, Box<dyn Error>> {
        let mut request = self.client.request(method, self.target.route(segments)?).query(query).timeout(TIMEOUT);
        if let Some(authorization) = self.target.authorization() {
            request = request.header(AUTHORIZATION, authorization);
        }
        let response = request.send().await.map_err(|error| format!("the server cannot be reached: {error:?}"))?;
        let status = response.status();
        let mut body = Vec::new();
        let mut pieces = response.bytes_stream();
        while let Some(piece) = pieces.next().await {
            body.extend_from_slice(&piece?);
            if body.len() > MAX_BODY_BYTES {
                return Err(format!("the server's answer has more than {MAX_BODY_BYTES} bytes").into());
            }
        }
        if matches!(status, StatusCode::OK | StatusCode::ACCEPTED) {
            return Ok(body);
        }
        let text = excerpt(&String::from_utf8_lossy(&body), MAX_SHOWN_CHARS);
        Err(format!("the server answered {status}: {text}").into())
    }
}
