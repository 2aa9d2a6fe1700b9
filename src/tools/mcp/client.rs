//! Requests over a connection. Results are returned as JSON and not as the library's types, so that one tool with an
//! invalid schema does not make the whole list unreadable.

use std::{collections::HashSet, sync::Arc, time::Duration};

use reqwest::header::HeaderMap;
use rmcp::{
    Peer, RoleClient,
    model::{
        CancelledNotification, CancelledNotificationParam, ClientNotification, ClientRequest, GetExtensions as _,
        GetMeta as _, ListToolsRequest, PaginatedRequestParams, PingRequest, RequestId, ServerResult,
    },
    service::{PeerRequestOptions, ServiceError},
};
use serde_json::Value;
use tokio::{
    runtime::Handle,
    sync::{Notify, oneshot},
    time::timeout,
};

use super::{
    http_client::MessageHeaders,
    in_flight::{CallsInFlight, StartedCall},
    oauth::AccessTokens,
};
use crate::tools::ToolContext;

/// A server could send cursors for ever.
const MAX_PAGES: usize = 100;
/// The largest list of tools that is read, in bytes of JSON.
const MAX_LIST_BYTES: usize = 8 * 1024 * 1024;
const CANCEL_TIMEOUT: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub(super) enum RequestError {
    Refused(String),
    Disconnected(Box<dyn std::error::Error + Send + Sync>),
}

#[derive(Clone)]
pub(super) struct McpClient {
    peer: Peer<RoleClient>,
    pub(super) calls: Arc<CallsInFlight>,
    tokens: Option<Arc<AccessTokens>>,
    pub(super) health: Arc<HealthSignals>,
}

#[derive(Default)]
pub(super) struct HealthSignals {
    pub(super) disconnected: Notify,
    pub(super) timed_out: Notify,
}

impl McpClient {
    pub(super) fn new(peer: Peer<RoleClient>, calls: Arc<CallsInFlight>, tokens: Option<Arc<AccessTokens>>) -> Self {
        Self { peer, calls, tokens, health: Arc::default() }
    }

    pub(super) fn offers_resources(&self) -> bool {
        self.peer.peer_info().is_some_and(|info| info.capabilities.resources.is_some())
    }

    pub(super) fn offers_prompts(&self) -> bool {
        self.peer.peer_info().is_some_and(|info| info.capabilities.prompts.is_some())
    }

    /// Returns the words of access tokens, which must not appear in results.
    pub(super) fn secrets(&self) -> Vec<String> {
        self.tokens.as_ref().map(|tokens| tokens.secrets()).unwrap_or_default()
    }

    pub(super) async fn list_tools(&self, max: usize) -> Result<Vec<Value>, RequestError> {
        let (mut tools, mut cursors, mut room) = (Vec::new(), HashSet::new(), MAX_LIST_BYTES);
        let mut cursor: Option<String> = None;
        for _ in 0..MAX_PAGES {
            let page = PaginatedRequestParams::default().with_cursor(cursor.take());
            let answer = self.request(ListToolsRequest::with_param(page).into()).await?;
            for tool in answer.get("tools").and_then(Value::as_array).into_iter().flatten() {
                let size = tool.to_string().len();
                if tools.len() == max || size > room {
                    return Ok(tools);
                }
                room -= size;
                tools.push(tool.clone());
            }
            match answer.get("nextCursor").and_then(Value::as_str) {
                Some(next) if cursors.insert(next.to_owned()) => cursor = Some(next.to_owned()),
                _ => break,
            }
        }
        Ok(tools)
    }

    /// Sends a request of a run, with headers for a server over HTTP. Dropping the request cancels it at the server. The
    /// place in a trace is also a part of the request itself (SEP-414), for servers that are processes.
    pub(super) async fn send_for_run(
        &self,
        mut request: ClientRequest,
        headers: HeaderMap,
        cx: &ToolContext,
        max_duration: Duration,
    ) -> Result<(PendingRequest, StartedCall), RequestError> {
        if let Some(trace) = cx.trace().context() {
            let meta = request.get_meta_mut();
            meta.set_traceparent(trace.traceparent());
            trace.tracestate().into_iter().for_each(|state| meta.set_tracestate(state));
        }
        if let ClientRequest::CallToolRequest(_) = &request {
            request.get_meta_mut().insert("idempotencyKey".to_owned(), cx.idempotency_key().into());
        }
        if !headers.is_empty() {
            request.extensions_mut().insert(MessageHeaders(headers.clone()));
        }
        let conversation = (cx.principal().cloned(), cx.thread_id().clone());
        let begun = self.calls.begin(conversation, max_duration, async {
            let sent = self.peer.send_cancellable_request(request, PeerRequestOptions::no_options()).await?;
            let (id, progress_token) = (sent.id.clone(), sent.progress_token.clone());
            let pending = PendingRequest { id: Some(id.clone()), received: sent.rx, peer: self.peer.clone(), headers };
            Ok((pending, id, progress_token))
        });
        begun.await.map_err(request_error)
    }

    /// Returns an error if the server does not answer a ping.
    pub(super) async fn ping(&self) -> Result<(), ServiceError> {
        match self.peer.send_request(PingRequest::default().into()).await {
            // An error is an answer, too: not every server knows `ping`.
            Ok(_) | Err(ServiceError::McpError(_)) => Ok(()),
            Err(error) => Err(error),
        }
    }

    async fn request(&self, request: ClientRequest) -> Result<Value, RequestError> {
        let sent = self.peer.send_cancellable_request(request, PeerRequestOptions::no_options()).await;
        let sent = sent.map_err(request_error)?;
        let peer = self.peer.clone();
        PendingRequest { id: Some(sent.id), received: sent.rx, peer, headers: HeaderMap::new() }.answer().await
    }
}

/// A request without an answer yet. Dropping this cancels the request at the server.
pub(super) struct PendingRequest {
    /// `None` after the answer.
    id: Option<RequestId>,
    received: oneshot::Receiver<Result<ServerResult, ServiceError>>,
    peer: Peer<RoleClient>,
    headers: HeaderMap,
}

impl PendingRequest {
    /// Can be dropped and called again until it has returned.
    pub(super) async fn answer(&mut self) -> Result<Value, RequestError> {
        let answer = (&mut self.received).await;
        self.id = None;
        let answer = answer.map_err(|closed| RequestError::Disconnected(closed.into()))?.map_err(request_error)?;
        serde_json::to_value(answer).map_err(|error| RequestError::Refused(error.to_string()))
    }

    /// Cancels the request, and waits until the server has been told.
    pub(super) async fn cancel(mut self) {
        if let Some(cancelled) = self.cancellation() {
            let _ = timeout(CANCEL_TIMEOUT, self.peer.send_notification(cancelled)).await;
        }
    }

    fn cancellation(&mut self) -> Option<ClientNotification> {
        let reason = Some("the call is no longer wanted".to_owned());
        let params = CancelledNotificationParam::new(Some(self.id.take()?), reason);
        let mut cancelled = CancelledNotification::new(params);
        if !self.headers.is_empty() {
            cancelled.extensions.insert(MessageHeaders(std::mem::take(&mut self.headers)));
        }
        Some(cancelled.into())
    }
}

impl Drop for PendingRequest {
    fn drop(&mut self) {
        if let (Some(cancelled), Ok(runtime)) = (self.cancellation(), Handle::try_current()) {
            let peer = self.peer.clone();
            runtime.spawn(async move {
                let _ = timeout(CANCEL_TIMEOUT, peer.send_notification(cancelled)).await;
            });
        }
    }
}

fn request_error(error: ServiceError) -> RequestError {
    match error {
        ServiceError::McpError(refusal) => RequestError::Refused(refusal.message.into_owned()),
        error => RequestError::Disconnected(error.into()),
    }
}
