//! A connection to an MCP server. This is the only file that uses the protocol library, `rmcp`.
//!
//! Results are returned as JSON and not as the library's types, so that one tool with an invalid schema does not make
//! the whole list unreadable.

use std::{collections::HashSet, sync::Arc, time::Duration};

use futures::future::BoxFuture;
use rmcp::{
    ClientHandler, Peer, RoleClient, ServiceExt as _,
    model::{
        CallToolRequest, CallToolRequestParams, ClientCapabilities, ClientConfig, ClientRequest, Implementation,
        ListToolsRequest, PaginatedRequestParams, PingRequest,
    },
    service::{NotificationContext, PeerRequestOptions, RequestHandle, RunningService, ServiceError},
    transport::{StreamableHttpClientTransport, streamable_http_client::StreamableHttpClientTransportConfig},
};
use serde_json::Value;
use tokio::{runtime::Handle, sync::Notify, time::timeout};

use super::{options::McpTransport, process::ServerProcess};
use crate::{protocol::JsonObject, upstream};

/// A server could send cursors for ever.
const MAX_TOOL_PAGES: usize = 100;
const PING_TIMEOUT: Duration = Duration::from_secs(10);
const CANCEL_TIMEOUT: Duration = Duration::from_secs(5);
/// The time to wait for the last lines of stderr after the end of stdout.
const STDERR_DELAY: Duration = Duration::from_millis(20);

#[derive(Debug)]
pub(super) enum RequestError {
    Refused(String),
    Disconnected(Box<dyn std::error::Error + Send + Sync>),
}

/// An open connection. Dropping it closes the connection, and kills the process of a server that was started for it.
pub(super) struct Connection {
    client: McpClient,
    tools_changed: Arc<Notify>,
    ended: BoxFuture<'static, ()>,
    process: Option<ServerProcess>,
}

#[derive(Clone)]
pub(super) struct McpClient {
    peer: Peer<RoleClient>,
    health: Arc<HealthSignals>,
}

#[derive(Default)]
struct HealthSignals {
    disconnected: Notify,
    timed_out: Notify,
}

pub(super) enum ConnectionEvent {
    ToolsChanged,
    Lost(String),
}

impl Connection {
    /// Connects, without a time limit.
    pub(super) async fn open(server: &str, transport: &McpTransport) -> Result<Self, String> {
        let handler = NotificationHandler::default();
        let tools_changed = handler.tools_changed.clone();
        let (service, process) = match transport {
            McpTransport::Command { program, arguments, environment } => {
                let (process, stdout, stdin) = ServerProcess::spawn(server, program, arguments, environment)
                    .map_err(|error| format!("{program} cannot be started: {error}"))?;
                match handler.serve((stdout, stdin)).await {
                    Ok(service) => (service, Some(process)),
                    Err(error) => {
                        let stderr = stderr_note(Some(&process));
                        process.end().await;
                        let cause = error_chain(&error);
                        return Err(format!("{program} does not speak MCP, or has ended: {cause}{stderr}"));
                    }
                }
            }
            McpTransport::Http { url, headers } => {
                let client = upstream::direct_client(&upstream::ClientOptions::default())
                    .map_err(|error| format!("the HTTP client cannot be created: {error}"))?;
                let mut config = StreamableHttpClientTransportConfig::with_uri(url.as_str());
                config.custom_headers = headers.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
                let transport = StreamableHttpClientTransport::with_client(client, config);
                let service = handler.serve(transport).await.map_err(|error| error_chain(&error))?;
                (service, None)
            }
        };
        let client = McpClient { peer: service.peer().clone(), health: Arc::default() };
        Ok(Self { client, tools_changed, ended: Box::pin(run(service)), process })
    }

    pub(super) fn client(&self) -> &McpClient {
        &self.client
    }

    pub(super) async fn next_event(&mut self) -> ConnectionEvent {
        loop {
            tokio::select! {
                () = &mut self.ended => {
                    tokio::time::sleep(STDERR_DELAY).await;
                    let stderr = stderr_note(self.process.as_ref());
                    return ConnectionEvent::Lost(format!("it has ended, or closed the connection{stderr}"));
                }
                () = self.client.health.disconnected.notified() => {
                    return ConnectionEvent::Lost("the connection broke".to_owned());
                }
                () = self.client.health.timed_out.notified() => {
                    let ping = ClientRequest::PingRequest(PingRequest::default());
                    match timeout(PING_TIMEOUT, self.client.peer.send_request(ping)).await {
                        // An error is an answer, too: not every server knows `ping`.
                        Ok(Ok(_) | Err(ServiceError::McpError(_))) => {}
                        _ => return ConnectionEvent::Lost("it does not answer a ping".to_owned()),
                    }
                }
                () = self.tools_changed.notified() => return ConnectionEvent::ToolsChanged,
            }
        }
    }

    pub(super) async fn close(self) {
        let Self { ended, process, .. } = self;
        // This closes stdin.
        drop(ended);
        if let Some(process) = process {
            process.end().await;
        }
    }
}

impl McpClient {
    pub(super) async fn list_tools(&self, max: usize) -> Result<Vec<Value>, RequestError> {
        let (mut tools, mut cursors) = (Vec::new(), HashSet::new());
        let mut cursor: Option<String> = None;
        for _ in 0..MAX_TOOL_PAGES {
            let page = PaginatedRequestParams::default().with_cursor(cursor.take());
            let answer = self.request(ClientRequest::ListToolsRequest(ListToolsRequest::with_param(page))).await?;
            if let Some(page) = answer.get("tools").and_then(Value::as_array) {
                tools.extend(page.iter().take(max - tools.len()).cloned());
            }
            match answer.get("nextCursor").and_then(Value::as_str) {
                Some(next) if tools.len() < max && cursors.insert(next.to_owned()) => cursor = Some(next.to_owned()),
                _ => break,
            }
        }
        Ok(tools)
    }

    /// Calls a tool. Dropping the future cancels the call at the server.
    pub(super) async fn call_tool(&self, tool: &str, arguments: JsonObject) -> Result<Value, RequestError> {
        let params = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
        let answer = self.request(ClientRequest::CallToolRequest(CallToolRequest::new(params))).await;
        if matches!(answer, Err(RequestError::Disconnected(_))) {
            self.health.disconnected.notify_one();
        }
        answer
    }

    /// Makes the supervisor ping the server.
    pub(super) fn report_timeout(&self) {
        self.health.timed_out.notify_one();
    }

    async fn request(&self, request: ClientRequest) -> Result<Value, RequestError> {
        let sent = self.peer.send_cancellable_request(request, PeerRequestOptions::no_options()).await;
        let mut pending = CancelOnDrop(Some(sent.map_err(request_error)?));
        let answer = match &mut pending.0 {
            Some(handle) => (&mut handle.rx).await,
            None => return Err(RequestError::Disconnected("the request was not sent".into())),
        };
        pending.0 = None;
        let answer = answer.map_err(|closed| RequestError::Disconnected(closed.into()))?.map_err(request_error)?;
        serde_json::to_value(answer).map_err(|error| RequestError::Refused(error.to_string()))
    }
}

/// A request without an answer yet. Dropping this cancels the request at the server.
struct CancelOnDrop(Option<RequestHandle<RoleClient>>);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        if let (Some(handle), Ok(runtime)) = (self.0.take(), Handle::try_current()) {
            runtime.spawn(async move {
                let _ = timeout(CANCEL_TIMEOUT, handle.cancel(Some("the call is no longer wanted".to_owned()))).await;
            });
        }
    }
}

#[derive(Default)]
struct NotificationHandler {
    tools_changed: Arc<Notify>,
}

impl ClientHandler for NotificationHandler {
    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.tools_changed.notify_one();
    }

    fn get_info(&self) -> ClientConfig {
        ClientConfig::new(
            ClientCapabilities::default(),
            Implementation::new(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION")),
        )
    }
}

async fn run(service: RunningService<RoleClient, NotificationHandler>) {
    let _ = service.waiting().await;
}

fn request_error(error: ServiceError) -> RequestError {
    match error {
        ServiceError::McpError(refusal) => RequestError::Refused(refusal.message.into_owned()),
        error => RequestError::Disconnected(error.into()),
    }
}

fn stderr_note(process: Option<&ServerProcess>) -> String {
    match process.map(ServerProcess::stderr_tail) {
        Some(tail) if !tail.is_empty() => format!("; its last lines on stderr: {tail}"),
        _ => String::new(),
    }
}

/// Returns an error with its causes. In the library's errors the causes have the information.
fn error_chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let more = error.to_string();
        if !text.contains(&more) {
            text.push_str(": ");
            text.push_str(&more);
        }
        cause = error.source();
    }
    text
}
