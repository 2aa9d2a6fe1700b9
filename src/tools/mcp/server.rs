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
    client_slot::ClientSlot,
    options::{McpServerOptions, McpTransport},
    supervisor::{Supervisor, ToolList},
};
use crate::tools::{Tool, ToolSource, options::InvalidOption};

const STOP_TIMEOUT: Duration = Duration::from_secs(6);
const STOPPED: &str = "it is stopped";

/// An MCP server. It is connected by [`start`](Self::start) or its first use; dropping it ends its process.
pub struct McpServer {
    name: Arc<str>,
    options: Arc<McpServerOptions>,
    transport: Arc<McpTransport>,
    client: Arc<ClientSlot>,
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
        Ok(Self {
            name: name.into(),
            options: Arc::new(options),
            transport,
            client: Arc::new(ClientSlot::empty("it is not started")),
            tools: Arc::new(watch::Sender::new(ToolList::default())),
            task: Mutex::new(None),
        })
    }

    /// Returns the name by which agents list the server.
    pub fn name(&self) -> &str {
        &self.name
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
