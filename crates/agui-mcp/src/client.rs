//! Requests over a session. Results are returned as JSON and not as the library's types, so that one tool with an
//! invalid schema does not make the whole list unreadable.

use std::{collections::HashSet, sync::Arc, time::Duration};

use reqwest::header::HeaderMap;
use rmcp::{
    Peer, RoleClient,
    model::{
        CancelTaskParams, CancelTaskRequest, CancelledNotification, CancelledNotificationParam,
        ClientRequest, GetExtensions as _, GetMeta as _, ListToolsRequest, PaginatedRequestParams,
        PingRequest, ProgressToken, ProtocolVersion, RequestId, ServerResult,
    },
    service::{PeerRequestOptions, ServiceError},
};
use serde_json::Value;
use tokio::{runtime::Handle, sync::oneshot, time::timeout};

use super::{
    handler::SessionState,
    http_client::{MessageHeaders, is_away, is_expired, is_rate_limit, is_refusal},
    in_flight::StartedCall,
    message_form::OTHER_RESPONSE,
    tokens::Tokens,
};
use agui_base::text::error_chain;
use agui_tools::{ToolContext, host::digest};

/// A server could send cursors for ever.
const MAX_PAGES: usize = 100;
/// The largest list of tools that is read, in bytes of JSON.
const MAX_LIST_BYTES: usize = 8 * 1024 * 1024;
/// The length of the idempotency key of a round, before base64.
const ROUND_KEY_BYTES: usize = 24;
const CANCEL_TIMEOUT: Duration = Duration::from_secs(5);
/// The wait for the response to a cancelled call that can become a task: only the response has the task's id.
const TASK_ID_TIMEOUT: Duration = Duration::from_secs(1);

/// The code of a refusal until a person has visited pages, before 2026-07-28.
const URL_ELICITATION_REQUIRED: i32 = -32042;

#[derive(Debug)]
pub(super) enum RequestError {
    /// `visits`: the pages that a person has to visit before the server accepts the request.
    Refused { reason: String, visits: Vec<Value> },
    /// The server has not taken the request.
    NotTaken(Box<dyn std::error::Error + Send + Sync>),
    /// The server has not taken the request, and takes none in this session.
    Away(Box<dyn std::error::Error + Send + Sync>),
    /// It is unknown what the server has done.
    Unknown(Box<dyn std::error::Error + Send + Sync>),
}

impl RequestError {
    pub(super) fn reason(self) -> String {
        match self {
            Self::Refused { reason, .. } => reason,
            Self::NotTaken(error) | Self::Away(error) | Self::Unknown(error) => {
                error_chain(&*error)
            }
        }
    }
}

#[derive(Clone)]
pub(super) struct McpClient {
    pub(super) peer: Peer<RoleClient>,
    pub(super) state: Arc<SessionState>,
    pub(super) tokens: Option<Tokens>,
}

impl McpClient {
    pub(super) async fn list_tools(&self, max: usize) -> Result<Vec<Value>, RequestError> {
        let mut tools = Vec::new();
        let mut cursors = HashSet::new();
        let mut space = MAX_LIST_BYTES;
        let mut cursor: Option<String> = None;
        for _ in 0..MAX_PAGES {
            let page = PaginatedRequestParams::default().with_cursor(cursor.take());
            let response = self.request(ListToolsRequest::with_param(page).into()).await?;
            let age = Duration::from_millis(
                response.get("ttlMs").and_then(Value::as_u64).unwrap_or_default(),
            );
            *self.state.list_age.lock() = age;
            for tool in response.get("tools").and_then(Value::as_array).into_iter().flatten() {
                let size = tool.to_string().len();
                if tools.len() == max || size > space {
                    return Ok(tools);
                }
                space -= size;
                tools.push(tool.clone());
            }
            match response.get("nextCursor").and_then(Value::as_str) {
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
        if let ClientRequest::CallToolRequest(call) = &request {
            // Each round of a call has an effect of its own.
            let key = match &call.params.request_state {
                None => cx.idempotency_key().to_owned(),
                Some(state) => digest(cx.idempotency_key(), state, ROUND_KEY_BYTES),
            };
            request.get_meta_mut().insert("idempotencyKey".to_owned(), key.into());
        }
        if !headers.is_empty() {
            request.extensions_mut().insert(MessageHeaders(headers.clone()));
        }
        let conversation = (cx.principal().cloned(), cx.thread_id().clone());
        let begun =
            self.state.calls.begin(conversation, max_duration, self.send(request, headers)).await;
        begun.map_err(send_error)
    }

    /// Returns the revision of the protocol.
    pub(super) fn revision(&self) -> ProtocolVersion {
        self.peer.peer_info().map(|info| info.protocol_version.clone()).unwrap_or_default()
    }

    /// Returns whether the revision has `initialize` and `ping`, as all before 2026-07-28.
    pub(super) fn has_initialize(&self) -> bool {
        self.revision().has_initialize()
    }

    /// Returns whether the server responds in time, to a ping if there is one. An error is a response, too: not every server
    /// knows `ping`, and one that has too many requests is there.
    pub(super) async fn responds(&self, limit: Duration) -> bool {
        let request = match self.has_initialize() {
            true => PingRequest::default().into(),
            false => ListToolsRequest::with_param(PaginatedRequestParams::default()).into(),
        };
        let response = timeout(limit, self.peer.send_request(request)).await;
        match response {
            Ok(Ok(_) | Err(ServiceError::McpError(_))) => true,
            Ok(Err(ServiceError::TransportSend(error))) if is_expired(&*error.error) => {
                self.state.lost.notify_one();
                true
            }
            Ok(Err(ServiceError::TransportSend(error))) => is_rate_limit(&*error.error),
            _ => false,
        }
    }

    async fn request(&self, request: ClientRequest) -> Result<Value, RequestError> {
        let (mut pending, _, _) = self.send(request, HeaderMap::new()).await.map_err(send_error)?;
        pending.response().await
    }

    async fn send(
        &self,
        request: ClientRequest,
        headers: HeaderMap,
    ) -> Result<(PendingRequest, RequestId, ProgressToken), ServiceError> {
        let sent =
            self.peer.send_cancellable_request(request, PeerRequestOptions::no_options()).await?;
        let (id, peer) = (sent.id.clone(), self.peer.clone());
        let request = Unanswered { id, received: sent.rx, peer, headers };
        Ok((PendingRequest(Some(request)), sent.id, sent.progress_token))
    }
}

/// A request without a response yet. Dropping this cancels the request at the server, or the task that it has become.
pub(super) struct PendingRequest(Option<Unanswered>);

struct Unanswered {
    id: RequestId,
    received: oneshot::Receiver<Result<ServerResult, ServiceError>>,
    peer: Peer<RoleClient>,
    headers: HeaderMap,
}

impl PendingRequest {
    /// Waits for the response. Can be dropped and called again until it has returned.
    pub(super) async fn response(&mut self) -> Result<Value, RequestError> {
        let Some(request) = &mut self.0 else {
            return Err(RequestError::Unknown("the response was already read".into()));
        };
        let response = (&mut request.received).await;
        self.0 = None;
        let response = response
            .map_err(|closed| RequestError::Unknown(closed.into()))?
            .map_err(request_error)?;
        serde_json::to_value(response).map_err(|error| RequestError::Refused {
            reason: error.to_string(),
            visits: Vec::new(),
        })
    }

    /// Cancels the request, and waits until the server has been told.
    pub(super) async fn cancel(mut self) {
        if let Some(request) = self.0.take() {
            request.cancel().await;
        }
    }
}

impl Unanswered {
    async fn cancel(mut self) {
        let server = self.peer.peer_info();
        let has_tasks = server.is_some_and(|info| info.capabilities.supports_tasks());
        if has_tasks && let Some(task) = self.task().await {
            return cancel_task(&self.peer, task, self.headers).await;
        }
        let reason = Some("the call is no longer wanted".to_owned());
        let params = CancelledNotificationParam::new(Some(self.id), reason);
        let mut cancelled = CancelledNotification::new(params);
        if !self.headers.is_empty() {
            cancelled.extensions.insert(MessageHeaders(self.headers));
        }
        let _ = timeout(CANCEL_TIMEOUT, self.peer.send_notification(cancelled.into())).await;
    }

    /// Returns the id of the task that the request has become, if the response comes in time.
    async fn task(&mut self) -> Option<String> {
        let response = timeout(TASK_ID_TIMEOUT, &mut self.received).await.ok()?.ok()?.ok()?;
        let response = serde_json::to_value(response).ok()?;
        response.get("taskId").and_then(Value::as_str).map(str::to_owned)
    }
}

impl Drop for PendingRequest {
    fn drop(&mut self) {
        if let (Some(request), Ok(runtime)) = (self.0.take(), Handle::try_current()) {
            runtime.spawn(request.cancel());
        }
    }
}

/// Cancels a task of the server.
pub(super) async fn cancel_task(peer: &Peer<RoleClient>, task: String, headers: HeaderMap) {
    let mut cancel = CancelTaskRequest::new(CancelTaskParams::new(task));
    if !headers.is_empty() {
        cancel.extensions.insert(MessageHeaders(headers));
    }
    let _ = timeout(CANCEL_TIMEOUT, peer.send_request(cancel.into())).await;
}

/// Returns the error of a request that has not been sent.
fn send_error(error: ServiceError) -> RequestError {
    match error {
        ServiceError::TransportClosed => RequestError::Away(error.into()),
        error => request_error(error),
    }
}

fn request_error(error: ServiceError) -> RequestError {
    match error {
        ServiceError::McpError(refusal) if refusal.code == OTHER_RESPONSE => {
            RequestError::Unknown(refusal.message.into())
        }
        ServiceError::McpError(refusal) => {
            let data = refusal.data.filter(|_| refusal.code.0 == URL_ELICITATION_REQUIRED);
            let visits = data.as_ref().and_then(|data| data.get("elicitations")?.as_array());
            let visits = visits.cloned().unwrap_or_default();
            RequestError::Refused { reason: refusal.message.into_owned(), visits }
        }
        ServiceError::TransportSend(error) if is_away(&*error.error) => {
            RequestError::Away(error.error)
        }
        ServiceError::TransportSend(error) if is_refusal(&*error.error) => {
            RequestError::NotTaken(error.error)
        }
        error => RequestError::Unknown(error.into()),
    }
}
