//! An MCP server as a source of tools, and the background task that keeps it connected.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::{
    runtime::Handle,
    sync::{oneshot, watch},
    task::JoinHandle,
    time::{Instant, timeout_at},
};

use super::{
    apps,
    call::McpCaller,
    current_session::SessionStatus,
    features,
    options::{McpServerOptions, McpTransport},
    supervisor::{STOPPED, Supervisor, ToolList},
    tool::McpTool,
};
use agui_agent::{AppRequest, RunContext};
use agui_base::InvalidOption;
use agui_tools::{Tool, ToolContext, ToolError, ToolSource, host::Secrets, login::PersonTokens};

const STOP_TIMEOUT: Duration = Duration::from_secs(6);
/// The time after its start for which a server that cannot be reached counts as starting.
const START_TIME: Duration = Duration::from_secs(5);

/// An MCP server. It is connected by [`start`](Self::start) or its first use; dropping it ends its process.
pub struct McpServer {
    pub(super) supervisor: Arc<Supervisor>,
    task: Mutex<Option<SupervisorTask>>,
    /// The sessions of people, if they log in at the server. `None` in a person's own session.
    pub(super) persons: Option<Arc<dyn PersonSessions>>,
    /// The tool that asks for a login.
    pub(super) connect: Option<Arc<dyn Tool>>,
}

/// The sessions of people with one server.
#[async_trait]
pub(super) trait PersonSessions: Send + Sync {
    /// Returns the session of the person of a run; `None` without a login.
    async fn session(self: Arc<Self>, cx: &RunContext) -> Option<Arc<McpServer>>;

    /// Closes all sessions, each of which refers to the others.
    fn close(&self);
}

struct SupervisorTask {
    begin: Instant,
    stop: oneshot::Sender<()>,
    handle: JoinHandle<()>,
}

impl McpServer {
    /// A server that is not started yet. Reads the environment variables that the options name.
    ///
    /// # Errors
    /// An [`InvalidOption`] for the first wrong option.
    pub fn new(
        name: impl Into<Arc<str>>,
        options: McpServerOptions,
    ) -> Result<Self, InvalidOption> {
        Self::build(name.into(), options, None)
    }

    /// A server with the tokens of its session, if people log in there.
    pub(super) fn build(
        name: Arc<str>,
        options: McpServerOptions,
        person: Option<Arc<PersonTokens>>,
    ) -> Result<Self, InvalidOption> {
        let transport = options.transport(person.clone())?;
        let secrets = match &transport {
            McpTransport::Http { headers, .. } => Secrets::from_headers(headers),
            McpTransport::Command { .. } => Secrets::default(),
        };
        let caller = Arc::new(McpCaller::new(name, options, secrets, person)?);
        let supervisor = Supervisor { caller, transport, tools: watch::Sender::default() };
        Ok(Self {
            supervisor: Arc::new(supervisor),
            task: Mutex::new(None),
            persons: None,
            connect: None,
        })
    }

    /// Returns the name by which agents list the server.
    pub fn name(&self) -> &str {
        &self.supervisor.caller.server
    }

    /// Returns whether the server is connected now.
    pub fn is_connected(&self) -> bool {
        self.supervisor.caller.session.client().is_ok()
    }

    /// Returns whether the server can be used now, if need be after a login.
    #[doc(hidden)]
    pub fn is_available(&self) -> bool {
        self.is_connected() || self.supervisor.caller.wants_login()
    }

    /// Returns the session of the person of a run; `None` without a login.
    async fn person_session(&self, cx: &RunContext) -> Option<Arc<Self>> {
        self.persons.clone()?.session(cx).await
    }

    /// Starts the server, and waits until the first attempt to connect is over.
    pub(super) async fn settled(&self) {
        self.start();
        let mut tools = self.supervisor.tools.subscribe();
        // `self` holds the sender, so this cannot fail.
        let _ = tools.wait_for(|tools| tools.is_settled).await;
    }

    fn forget_people(&self) {
        self.persons.iter().for_each(|persons| persons.close());
    }

    /// Returns whether this server is unready while the MCP server is not connected.
    pub fn is_required(&self) -> bool {
        self.supervisor.caller.options.required
    }

    /// Starts the server in the background, unless it is started. Does nothing outside a tokio runtime.
    pub fn start(&self) {
        let mut task = self.task.lock();
        if let (None, Ok(runtime)) = (&*task, Handle::try_current()) {
            let (stop, stopped) = oneshot::channel();
            let handle = runtime.spawn(self.supervisor.clone().run(stopped));
            *task = Some(SupervisorTask { begin: Instant::now(), stop, handle });
        }
    }

    /// Stops the server, and waits until its process has ended. It can be started again.
    pub async fn stop(&self) {
        self.forget_people();
        let task = self.task.lock().take();
        if let Some(SupervisorTask { stop, mut handle, .. }) = task {
            let _ = stop.send(());
            if tokio::time::timeout(STOP_TIMEOUT, &mut handle).await.is_err() {
                handle.abort();
            }
            self.supervisor.caller.session.set(SessionStatus::Closed(STOPPED.to_owned()));
        }
    }

    /// Returns a source of a single tool, by the name that the server gives it.
    pub fn single_tool(server: &Arc<Self>, tool: &str) -> Arc<dyn ToolSource> {
        let part = Part::Tool { name: tool.to_owned(), is_warned: AtomicBool::new(false) };
        Arc::new(Selection { server: server.clone(), part })
    }

    /// Returns a source of two tools that list and read the server's resources.
    pub fn resources(server: &Arc<Self>) -> Arc<dyn ToolSource> {
        let part = Part::Resources(features::resource_tools(&server.supervisor.caller));
        Arc::new(Selection { server: server.clone(), part })
    }

    /// Returns a source of two tools that list and fill in the server's prompts.
    pub fn prompts(server: &Arc<Self>) -> Arc<dyn ToolSource> {
        let part = Part::Prompts(features::prompt_tools(&server.supervisor.caller));
        Arc::new(Selection { server: server.clone(), part })
    }

    /// Responds to a request of a page of this server, for an agent that has its tools that pass `is_listed`.
    async fn respond_to_app(
        &self,
        request: &AppRequest,
        is_listed: impl Fn(&McpTool) -> bool,
        cx: &ToolContext,
    ) -> Option<Result<Value, ToolError>> {
        if request.server != self.name() || !self.supervisor.caller.options.apps {
            return None;
        }
        let tools: Vec<_> = self
            .supervisor
            .tools
            .borrow()
            .tools
            .iter()
            .filter(|tool| is_listed(tool))
            .cloned()
            .collect();
        Some(apps::respond(&self.supervisor.caller, &tools, request, cx).await)
    }
}

#[async_trait]
impl ToolSource for McpServer {
    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        self.start();
        let connect = self.connect.clone();
        self.supervisor.tools.borrow().tools.iter().filter_map(offered).chain(connect).collect()
    }

    async fn for_run(&self, cx: &RunContext) -> Option<Arc<dyn ToolSource>> {
        Some(self.person_session(cx).await? as Arc<dyn ToolSource>)
    }

    async fn respond_to_app(
        &self,
        request: &AppRequest,
        cx: &ToolContext,
    ) -> Option<Result<Value, ToolError>> {
        Self::respond_to_app(self, request, |_| true, cx).await
    }

    /// Waits for the first attempt to connect. If it fails, the server may be starting like this one, so further
    /// attempts are waited for until [`START_TIME`] has passed.
    async fn ready(&self) {
        self.settled().await;
        let begin = self.task.lock().as_ref().map(|task| task.begin);
        let is_known = self.supervisor.tools.borrow().is_known;
        if let Some(begin) = begin.filter(|_| !is_known) {
            let _ = timeout_at(begin + START_TIME, self.supervisor.caller.session.opened()).await;
        }
    }
}

/// Returns a tool that a model may call. The specification forbids this for tools for pages only.
fn offered(tool: &Arc<McpTool>) -> Option<Arc<dyn Tool>> {
    tool.ui.is_for_model.then(|| tool.clone() as Arc<dyn Tool>)
}

impl Drop for McpServer {
    fn drop(&mut self) {
        self.forget_people();
        let task = self.task.get_mut().take();
        if let Some(SupervisorTask { handle, .. }) = task {
            handle.abort();
            self.supervisor.caller.session.set(SessionStatus::Closed(STOPPED.to_owned()));
        }
    }
}

/// Values of variables and the URL can be secret, so only the name is shown.
impl fmt::Debug for McpServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("McpServer").field(&self.name()).finish()
    }
}

/// Some tools of a server.
struct Selection {
    server: Arc<McpServer>,
    part: Part,
}

/// The selected part of a server.
enum Part {
    /// The tool of a name, which is the only one that pages of the server may call. The pages of
    /// other parts are not shown.
    Tool { name: String, is_warned: AtomicBool },
    /// The tools for resources, if the server has some.
    Resources(Vec<Arc<dyn Tool>>),
    /// The tools for prompts, if the server has some.
    Prompts(Vec<Arc<dyn Tool>>),
}

impl Part {
    fn of(&self, list: &ToolList, server: &str) -> Vec<Arc<dyn Tool>> {
        match self {
            Self::Tool { name, is_warned } => {
                let found = list.tools.iter().find(|tool| tool.name == *name);
                if found.is_none() && list.is_known && !is_warned.swap(true, Ordering::Relaxed) {
                    tracing::warn!(server, tool = name, "the MCP server has no tool of this name");
                }
                found.and_then(offered).into_iter().collect()
            }
            Self::Resources(tools) if list.has_resources => tools.clone(),
            Self::Prompts(tools) if list.has_prompts => tools.clone(),
            _ => Vec::new(),
        }
    }
}

#[async_trait]
impl ToolSource for Selection {
    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        self.server.start();
        let mut tools = self.part.of(&self.server.supervisor.tools.borrow(), self.server.name());
        tools.extend(self.server.connect.clone());
        tools
    }

    async fn for_run(&self, cx: &RunContext) -> Option<Arc<dyn ToolSource>> {
        let server = self.server.person_session(cx).await?;
        Some(match &self.part {
            Part::Tool { name, .. } => McpServer::single_tool(&server, name),
            Part::Resources(_) => McpServer::resources(&server),
            Part::Prompts(_) => McpServer::prompts(&server),
        })
    }

    async fn ready(&self) {
        self.server.ready().await;
    }

    async fn respond_to_app(
        &self,
        request: &AppRequest,
        cx: &ToolContext,
    ) -> Option<Result<Value, ToolError>> {
        let Part::Tool { name: only, .. } = &self.part else { return None };
        // Another entry of the agent's list can have the tool.
        let called = request.params.get("name").and_then(Value::as_str);
        if request.method == "tools/call" && called != Some(only.as_str()) {
            return None;
        }
        self.server.respond_to_app(request, |tool| tool.name == *only, cx).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tools_for_resources_and_prompts_count_as_their_server() {
        let server = McpServer::new("files", McpServerOptions::command(["files-server"])).unwrap();
        let caller = &server.supervisor.caller;
        let tools = [features::resource_tools(caller), features::prompt_tools(caller)].concat();
        let names: Vec<_> = tools.iter().map(|tool| tool.metric_name()).collect();
        assert_eq!(names, ["mcp:files"; 4]);
    }
}
