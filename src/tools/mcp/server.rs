//! An MCP server as a source of tools, and the background task that keeps it connected.

use std::{
    fmt,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use tokio::{
    runtime::Handle,
    sync::{oneshot, watch},
    task::JoinHandle,
};

use super::{
    call::McpCaller,
    client_slot::ClientSlot,
    options::{McpServerOptions, McpTransport},
    prompts, resources,
    supervisor::{Supervisor, ToolList},
};
use crate::tools::{Tool, ToolSource, options::InvalidOption, secrets::Secrets};

const STOP_TIMEOUT: Duration = Duration::from_secs(6);
const STOPPED: &str = "it is stopped";

/// An MCP server. It is connected by [`start`](Self::start) or its first use; dropping it ends its process.
pub struct McpServer {
    name: Arc<str>,
    options: Arc<McpServerOptions>,
    transport: Arc<McpTransport>,
    client: Arc<ClientSlot>,
    caller: McpCaller,
    tools: Arc<watch::Sender<ToolList>>,
    task: Mutex<Option<SupervisorTask>>,
}

struct SupervisorTask {
    stop: oneshot::Sender<()>,
    handle: JoinHandle<()>,
}

impl McpServer {
    /// A server that is not started yet. Reads the environment variables that the options name.
    ///
    /// # Errors
    /// An [`InvalidOption`] for the first wrong option.
    pub fn new(name: impl Into<Arc<str>>, options: McpServerOptions) -> Result<Self, InvalidOption> {
        let transport = Arc::new(options.transport()?);
        let (name, options) = (name.into(), Arc::new(options));
        let client = Arc::new(ClientSlot::empty("it is not started"));
        let secrets = match &*transport {
            McpTransport::Http { headers, .. } => Secrets::of_headers(headers),
            McpTransport::Command { .. } => Secrets::default(),
        };
        let caller = McpCaller::new(name.clone(), options.clone(), client.clone(), secrets)?;
        Ok(Self {
            name,
            options,
            transport,
            client,
            caller,
            tools: Arc::new(watch::Sender::new(ToolList::default())),
            task: Mutex::new(None),
        })
    }

    /// Returns the name by which agents list the server.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns whether the server is connected now.
    pub fn is_connected(&self) -> bool {
        self.client.get().is_ok()
    }

    /// Returns whether this server is unready while the MCP server is not connected.
    pub fn is_required(&self) -> bool {
        self.options.required
    }

    /// Starts the server in the background, unless it is started. Does nothing outside a tokio runtime.
    pub fn start(&self) {
        let mut task = self.task.lock().unwrap_or_else(PoisonError::into_inner);
        if let (None, Ok(runtime)) = (&*task, Handle::try_current()) {
            let (stop, stopped) = oneshot::channel();
            let supervisor = Supervisor {
                name: self.name.clone(),
                options: self.options.clone(),
                transport: self.transport.clone(),
                client: self.client.clone(),
                caller: self.caller.clone(),
                tools: self.tools.clone(),
            };
            *task = Some(SupervisorTask { stop, handle: runtime.spawn(supervisor.run(stopped)) });
        }
    }

    /// Stops the server, and waits until its process has ended. It can be started again.
    pub async fn stop(&self) {
        let task = self.task.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(SupervisorTask { stop, mut handle }) = task {
            let _ = stop.send(());
            if tokio::time::timeout(STOP_TIMEOUT, &mut handle).await.is_err() {
                handle.abort();
            }
            self.client.set(Err(STOPPED.to_owned()));
        }
    }

    /// Returns a source of a single tool, by the name that the server gives it.
    pub fn single_tool(server: &Arc<Self>, tool: &str) -> Arc<dyn ToolSource> {
        Arc::new(SingleTool { server: server.clone(), tool: tool.to_owned(), warned: AtomicBool::new(false) })
    }

    /// Returns a source of two tools that list and read the server's resources.
    pub fn resources(server: &Arc<Self>) -> Arc<dyn ToolSource> {
        let (tools, is_offered) = (resources::tools(&server.caller), |list: &ToolList| list.has_resources);
        Arc::new(FeatureTools { server: server.clone(), tools, is_offered })
    }

    /// Returns a source of two tools that list and fill in the server's prompts.
    pub fn prompts(server: &Arc<Self>) -> Arc<dyn ToolSource> {
        let (tools, is_offered) = (prompts::tools(&server.caller), |list: &ToolList| list.has_prompts);
        Arc::new(FeatureTools { server: server.clone(), tools, is_offered })
    }
}

#[async_trait]
impl ToolSource for McpServer {
    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        self.start();
        self.tools.borrow().tools.iter().map(|tool| tool.clone() as Arc<dyn Tool>).collect()
    }

    async fn ready(&self) {
        self.start();
        let mut tools = self.tools.subscribe();
        // `self` holds the sender, so this cannot fail.
        let _ = tools.wait_for(|tools| tools.is_settled).await;
    }
}

impl Drop for McpServer {
    fn drop(&mut self) {
        let task = self.task.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(SupervisorTask { handle, .. }) = task {
            handle.abort();
            self.client.set(Err(STOPPED.to_owned()));
        }
    }
}

/// Values of variables and the URL can be secret, so only the name is shown.
impl fmt::Debug for McpServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("McpServer").field(&self.name).finish()
    }
}

struct SingleTool {
    server: Arc<McpServer>,
    tool: String,
    warned: AtomicBool,
}

#[async_trait]
impl ToolSource for SingleTool {
    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        self.server.start();
        let list = self.server.tools.borrow();
        let found = list.tools.iter().find(|tool| tool.name == self.tool);
        if found.is_none() && list.is_known && !self.warned.swap(true, Ordering::Relaxed) {
            tracing::warn!(server = self.server.name(), tool = self.tool, "the MCP server has no tool of this name");
        }
        found.map(|tool| tool.clone() as Arc<dyn Tool>).into_iter().collect()
    }

    async fn ready(&self) {
        self.server.ready().await;
    }
}

/// Tools for a feature of the protocol that not every server has.
struct FeatureTools {
    server: Arc<McpServer>,
    tools: Vec<Arc<dyn Tool>>,
    is_offered: fn(&ToolList) -> bool,
}

#[async_trait]
impl ToolSource for FeatureTools {
    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        self.server.start();
        let is_offered = (self.is_offered)(&self.server.tools.borrow());
        if is_offered { self.tools.clone() } else { Vec::new() }
    }

    async fn ready(&self) {
        self.server.ready().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tools_for_resources_and_prompts_count_as_their_server() {
        let server = McpServer::new("files", McpServerOptions::command(["files-server"])).unwrap();
        let tools = [resources::tools(&server.caller), prompts::tools(&server.caller)].concat();
        let names: Vec<_> = tools.iter().map(|tool| tool.metric_name()).collect();
        assert_eq!(names, ["mcp:files"; 4]);
    }
}
