//! A connection to an MCP server: the one file that knows the library which speaks the protocol.
//!
//! Answers leave it as JSON, so that a server that keeps to most of the standard is understood for the most part: one
//! tool with a broken schema does not cost the others.

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

use super::{McpTransport, child::Child};
use crate::{protocol::JsonObject, upstream};

/// More pages of tools than any server has.
const MAX_PAGES: usize = 100;
/// How long a server may take to answer a ping.
const PING: Duration = Duration::from_secs(10);
/// How long telling a server that nobody waits for an answer may take.
const CANCEL: Duration = Duration::from_secs(5);

/// How a request failed.
#[derive(Debug)]
pub(super) enum Failure {
    /// The server has refused it, and said why.
    Refused(String),
    /// The connection does not work any more.
    Broken(Box<dyn std::error::Error + Send + Sync>),
}

/// An open connection. Dropping it closes it, and kills the server if it was started for it.
pub(super) struct Connection {
    caller: Caller,
    changed: Arc<Notify>,
    running: BoxFuture<'static, ()>,
    child: Option<Child>,
}

/// What requests are made with.
#[derive(Clone)]
pub(super) struct Caller {
    peer: Peer<RoleClient>,
    trouble: Arc<Trouble>,
}

/// What those who call tell the one who watches the connection.
#[derive(Default)]
struct Trouble {
    broken: Notify,
    silent: Notify,
}

/// What a connection has to say.
pub(super) enum News {
    /// There are other tools now.
    ToolsChanged,
    /// It is of no use any more.
    Lost(String),
}

impl Connection {
    /// Connects. Whoever does not want to wait for ever sets the limit.
    pub(super) async fn open(server: &str, transport: &McpTransport) -> Result<Self, String> {
        let handler = Handler::default();
        let changed = handler.changed.clone();
        let (service, child) = match transport {
            McpTransport::Command { program, arguments, environment } => {
                let (child, stdout, stdin) = Child::spawn(server, program, arguments, environment)
                    .map_err(|error| format!("{program} cannot be started: {error}"))?;
                match handler.serve((stdout, stdin)).await {
                    Ok(service) => (service, Some(child)),
                    Err(error) => {
                        let words = child.last_words();
                        child.end().await;
                        let words = if words.is_empty() { words } else { format!("; it said: {words}") };
                        return Err(format!("{program} does not speak MCP, or has ended: {}{words}", chain(&error)));
                    }
                }
            }
            McpTransport::Http { url, headers } => {
                let client = upstream::direct_client(&upstream::ClientOptions::default())
                    .map_err(|error| format!("no client can be made: {error}"))?;
                let mut config = StreamableHttpClientTransportConfig::with_uri(url.as_str());
                config.custom_headers = headers.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
                let transport = StreamableHttpClientTransport::with_client(client, config);
                let service = handler.serve(transport).await.map_err(|error| chain(&error))?;
                (service, None)
            }
        };
        let caller = Caller { peer: service.peer().clone(), trouble: Arc::default() };
        Ok(Self { caller, changed, running: Box::pin(run(service)), child })
    }

    /// What calls are made with, for as long as the connection works.
    pub(super) fn caller(&self) -> &Caller {
        &self.caller
    }

    /// The next thing that its owner has to know.
    pub(super) async fn news(&mut self) -> News {
        loop {
            tokio::select! {
                () = &mut self.running => {
                    // Its stderr may come a moment after the end of its stdout.
                    tokio::time::sleep(Duration::from_millis(20)).await;
                    let words = self.child.as_ref().map(Child::last_words).filter(|words| !words.is_empty());
                    let words = words.map(|words| format!("; it said: {words}")).unwrap_or_default();
                    return News::Lost(format!("it has ended, or closed the connection{words}"));
                }
                () = self.caller.trouble.broken.notified() => return News::Lost("the connection broke".to_owned()),
                () = self.caller.trouble.silent.notified() => {
                    let ping = ClientRequest::PingRequest(PingRequest::default());
                    match timeout(PING, self.caller.peer.send_request(ping)).await {
                        // Whatever it answers, it answers.
                        Ok(Ok(_) | Err(ServiceError::McpError(_))) => {}
                        _ => return News::Lost("it does not answer any more".to_owned()),
                    }
                }
                () = self.changed.notified() => return News::ToolsChanged,
            }
        }
    }

    /// Closes the connection, and waits until a server that was started for it is gone.
    pub(super) async fn close(self) {
        let Self { running, child, .. } = self;
        drop(running);
        if let Some(child) = child {
            child.end().await;
        }
    }
}

impl Caller {
    /// All tools, as the server describes them, but no more than a number.
    pub(super) async fn list(&self, most: usize) -> Result<Vec<Value>, Failure> {
        let (mut tools, mut cursors) = (Vec::new(), HashSet::new());
        let mut cursor: Option<String> = None;
        for _ in 0..MAX_PAGES {
            let page = PaginatedRequestParams::default().with_cursor(cursor.take());
            let answer = self.request(ClientRequest::ListToolsRequest(ListToolsRequest::with_param(page))).await?;
            if let Some(page) = answer.get("tools").and_then(Value::as_array) {
                tools.extend(page.iter().take(most - tools.len()).cloned());
            }
            match answer.get("nextCursor").and_then(Value::as_str) {
                Some(next) if tools.len() < most && cursors.insert(next.to_owned()) => cursor = Some(next.to_owned()),
                _ => break,
            }
        }
        Ok(tools)
    }

    /// Calls a tool. Dropping the future tells the server so.
    pub(super) async fn call(&self, tool: &str, arguments: JsonObject) -> Result<Value, Failure> {
        let params = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
        let answer = self.request(ClientRequest::CallToolRequest(CallToolRequest::new(params))).await;
        if matches!(answer, Err(Failure::Broken(_))) {
            self.trouble.broken.notify_one();
        }
        answer
    }

    /// Says that the server took too long; it is asked whether it is still there.
    pub(super) fn was_silent(&self) {
        self.trouble.silent.notify_one();
    }

    async fn request(&self, request: ClientRequest) -> Result<Value, Failure> {
        let sent = self.peer.send_cancellable_request(request, PeerRequestOptions::no_options()).await;
        let mut waiting = Waiting(Some(sent.map_err(failure)?));
        let answer = match &mut waiting.0 {
            Some(handle) => (&mut handle.rx).await,
            None => return Err(Failure::Broken("nothing was sent".into())),
        };
        waiting.0 = None;
        let answer = answer.map_err(|gone| Failure::Broken(gone.into()))?.map_err(failure)?;
        serde_json::to_value(answer).map_err(|error| Failure::Refused(error.to_string()))
    }
}

/// Somebody who waits for an answer, and says so when it is no longer wanted.
struct Waiting(Option<RequestHandle<RoleClient>>);

impl Drop for Waiting {
    fn drop(&mut self) {
        if let (Some(handle), Ok(runtime)) = (self.0.take(), Handle::try_current()) {
            runtime.spawn(async move {
                let _ = timeout(CANCEL, handle.cancel(Some("the call is no longer wanted".to_owned()))).await;
            });
        }
    }
}

/// Our side of the conversation: we hear that tools have changed, and offer nothing ourselves.
#[derive(Default)]
struct Handler {
    changed: Arc<Notify>,
}

impl ClientHandler for Handler {
    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.changed.notify_one();
    }

    fn get_info(&self) -> ClientConfig {
        ClientConfig::new(
            ClientCapabilities::default(),
            Implementation::new(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION")),
        )
    }
}

async fn run(service: RunningService<RoleClient, Handler>) {
    let _ = service.waiting().await;
}

fn failure(error: ServiceError) -> Failure {
    match error {
        ServiceError::McpError(refusal) => Failure::Refused(refusal.message.into_owned()),
        error => Failure::Broken(error.into()),
    }
}

/// An error with its causes, in which the library tells what matters.
fn chain(error: &dyn std::error::Error) -> String {
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
