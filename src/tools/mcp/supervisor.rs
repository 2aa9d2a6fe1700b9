//! Keeps an MCP server connected: connects, lists its tools, follows its notifications, and connects again.

use std::{future::pending, sync::Arc, time::Duration};

use serde_json::Value;
use tokio::{
    sync::{oneshot, watch},
    time::{Instant, sleep, timeout},
};

use super::{
    call::McpCaller,
    client::{McpClient, RequestError},
    connection::{ConnectionEvent, McpConnection, Opening},
    features,
    options::McpTransport,
    tool::McpTool,
};

const MAX_TOOLS: usize = 256;
/// `npx` and `uvx` download programs before they start.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(60);
const LIST_TIMEOUT: Duration = Duration::from_secs(30);
/// The pause before the first restart; it doubles with each restart up to `MAX_RESTART_PAUSE`.
const FIRST_RESTART_PAUSE: Duration = Duration::from_secs(1);
const MAX_RESTART_PAUSE: Duration = Duration::from_secs(60);
/// After this uptime the restart back-off is reset.
const STABLE_UPTIME: Duration = Duration::from_secs(60);
/// The shortest time between two lists of tools, for servers that announce changes in a loop.
const MIN_LIST_INTERVAL: Duration = Duration::from_millis(200);
/// The reason why a stopped server is not available.
pub(super) const STOPPED: &str = "it is stopped";

enum ListChange {
    Same,
    Changed,
}

#[derive(Default)]
pub(super) struct ToolList {
    /// Set when the first attempt to connect is over, with or without success.
    pub(super) is_settled: bool,
    /// Set when the server has listed its tools once.
    pub(super) is_known: bool,
    pub(super) tools: Vec<Arc<McpTool>>,
    /// Set if the server has said that it has resources.
    pub(super) has_resources: bool,
    /// Set if the server has said that it has prompts.
    pub(super) has_prompts: bool,
}

pub(super) struct Supervisor {
    pub(super) caller: Arc<McpCaller>,
    pub(super) transport: McpTransport,
    pub(super) tools: watch::Sender<ToolList>,
}

impl Supervisor {
    pub(super) async fn run(self: Arc<Self>, stop: oneshot::Receiver<()>) {
        let mut connection = None;
        tokio::select! {
            () = self.keep_connected(&mut connection) => {}
            _ = stop => {}
        }
        *self.caller.client.lock() = Err(STOPPED.to_owned());
        if let Some(mut connection) = connection {
            connection.close().await;
        }
    }

    /// Never completes. `connection` is the current one, which the caller has to close.
    async fn keep_connected(&self, connection: &mut Option<McpConnection>) {
        let (mut pause, mut opening) = (None, Opening::Discover);
        loop {
            let (reason, uptime) = match self.open(opening).await {
                Err(reason) if self.caller.wants_login() => {
                    tracing::info!(server = &*self.caller.server, "the MCP server wants a login");
                    *self.caller.client.lock() = Err(reason);
                    self.settle();
                    // After a login there is another connection.
                    return pending().await;
                }
                Err(reason) => (reason, Duration::ZERO),
                Ok(opened) => {
                    // Next time an older server is not asked for what it does not know.
                    opening = opened.opening();
                    let (since, opened) = (Instant::now(), connection.insert(opened));
                    let reason = self.follow(opened).await;
                    *self.caller.client.lock() = Err(reason.clone());
                    opened.close().await;
                    *connection = None;
                    (reason, since.elapsed())
                }
            };
            let next = next_pause(pause, uptime);
            pause = Some(next);
            let server = &*self.caller.server;
            tracing::warn!(server, why = reason, again_in = ?next, "the MCP server is not available");
            *self.caller.client.lock() = Err(reason);
            self.settle();
            sleep(next).await;
        }
    }

    async fn open(&self, first: Opening) -> Result<McpConnection, String> {
        let opening = async {
            let McpCaller { server, options, .. } = &*self.caller;
            let connection = McpConnection::open(server, options, &self.transport, first).await?;
            self.list_tools(&connection.client).await.map_err(|error| match error {
                RequestError::Refused(reason) => format!("it does not list its tools: {reason}"),
                RequestError::NotTaken(error) | RequestError::Disconnected(error) => {
                    format!("the connection broke while it listed its tools: {error}")
                }
            })?;
            Ok(connection)
        };
        match timeout(CONNECT_TIMEOUT, opening).await {
            Ok(result) => result,
            Err(_) => Err(format!("it does not answer within {} s", CONNECT_TIMEOUT.as_secs())),
        }
    }

    async fn follow(&self, connection: &mut McpConnection) -> String {
        let server = &*self.caller.server;
        let client = connection.client.clone();
        *self.caller.client.lock() = Ok(client.clone());
        self.settle();
        let (revision, tools) = (client.revision(), self.tools.borrow().tools.len());
        tracing::info!(server, %revision, tools, "connected to the MCP server");
        loop {
            match connection.next_event().await {
                ConnectionEvent::Lost(reason) => return reason,
                ConnectionEvent::ListTools => {
                    match timeout(LIST_TIMEOUT, self.list_tools(&client)).await {
                        Ok(Ok(ListChange::Same)) => {}
                        Ok(Ok(ListChange::Changed)) => {
                            let tools = self.tools.borrow().tools.len();
                            tracing::info!(server, tools, "the tools of the MCP server have changed");
                        }
                        Ok(Err(RequestError::NotTaken(error) | RequestError::Disconnected(error))) => {
                            return format!("the connection broke: {error}");
                        }
                        Ok(Err(RequestError::Refused(reason))) => {
                            tracing::warn!(server, why = reason, "the MCP server does not list its changed tools");
                        }
                        Err(_) => client.state.timed_out.notify_one(),
                    }
                    sleep(MIN_LIST_INTERVAL).await;
                }
            }
        }
    }

    /// An unchanged tool keeps its `Arc`, and with it the schema that toolboxes have compiled.
    async fn list_tools(&self, client: &McpClient) -> Result<ListChange, RequestError> {
        let (server, options) = (&*self.caller.server, &self.caller.options);
        let descriptions = client.list_tools(MAX_TOOLS).await?;
        if descriptions.len() == MAX_TOOLS {
            tracing::warn!(server, "the MCP server has {MAX_TOOLS} tools or more; only the first {MAX_TOOLS} are used");
        }
        let is_used = |name: &str| options.tools.as_ref().is_none_or(|tools| tools.iter().any(|tool| tool == name));
        let mut tools = Vec::new();
        for description in &descriptions {
            let name = tool_name(description);
            if !is_used(name) {
                continue;
            }
            match McpTool::new(description, &self.caller) {
                Ok(tool) => tools.push(Arc::new(tool)),
                Err(reason) => {
                    tracing::warn!(server, tool = name, why = reason, "a tool of the MCP server is left out");
                }
            }
        }
        let is_of_tool = |name: &&String| ![features::READ, features::GET].contains(&name.as_str());
        let configured = options.tools.iter().flatten().chain(options.approval_of.keys().filter(is_of_tool));
        for name in configured.filter(|name| !descriptions.iter().any(|description| tool_name(description) == *name)) {
            tracing::warn!(server, tool = name, "the MCP server has no tool of this name");
        }
        let mut change = ListChange::Changed;
        self.tools.send_modify(|list| {
            for tool in &mut tools {
                let is_same = |old: &&Arc<McpTool>| {
                    (&old.name, &old.spec, old.effects, &old.ui) == (&tool.name, &tool.spec, tool.effects, &tool.ui)
                };
                if let Some(old) = list.tools.iter().find(is_same) {
                    *tool = old.clone();
                }
            }
            let is_same = |(old, new): (&Arc<McpTool>, &Arc<McpTool>)| Arc::ptr_eq(old, new);
            if list.tools.len() == tools.len() && list.tools.iter().zip(&tools).all(is_same) {
                change = ListChange::Same;
            }
            list.tools = tools;
            list.is_known = true;
            let info = client.peer.peer_info();
            list.has_resources = info.as_ref().is_some_and(|info| info.capabilities.resources.is_some());
            list.has_prompts = info.as_ref().is_some_and(|info| info.capabilities.prompts.is_some());
        });
        Ok(change)
    }

    fn settle(&self) {
        self.tools.send_modify(|list| list.is_settled = true);
    }
}

fn tool_name(description: &Value) -> &str {
    description.get("name").and_then(Value::as_str).unwrap_or_default()
}

/// Returns the pause before a restart, by the pause before the last one.
fn next_pause(last: Option<Duration>, uptime: Duration) -> Duration {
    match last.filter(|_| uptime < STABLE_UPTIME) {
        Some(last) => (last * 2).min(MAX_RESTART_PAUSE),
        None => FIRST_RESTART_PAUSE,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn restart_pauses_double_up_to_a_minute_and_a_stable_uptime_resets_them() {
        let next = |last: &Option<Duration>| Some(Some(next_pause(*last, Duration::from_secs(1))));
        let pauses = std::iter::successors(Some(None), next).skip(1).flatten();
        assert_eq!(pauses.map(|pause| pause.as_secs()).take(8).collect::<Vec<_>>(), [1, 2, 4, 8, 16, 32, 60, 60]);
        assert_eq!(next_pause(Some(MAX_RESTART_PAUSE), STABLE_UPTIME), FIRST_RESTART_PAUSE);
    }
}
