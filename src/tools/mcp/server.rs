//! Tools of MCP servers, which are started by command, or reached by URL.
//!
//! A server is connected to in the background and for as long as the [`McpServer`] lives: starting up neither waits for
//! it nor fails because of it. If it dies it is started again, after a pause that grows from a second to a minute
//! and begins anew once it has lived for a while. Its tools stay known in the meantime, and a call says that the server
//! is not available.
//!
//! **Names.** A tool has the name that its server gives it, with `_` for every character but letters, digits, `-` and `_`,
//! and at most 64 characters of it. A `prefix` goes before, for servers whose tools would clash. The first of
//! several tools of a name is offered; the others are warned about.
//!
//! **Limits.** A process gets an environment of its own; results are cut; calls have a timeout,
//! and one that nobody waits for any more is cancelled at the server. A server that was silent for the whole of a
//! timeout is asked whether it is still there, and started again if it is not.

mod child;
mod client;
mod content;
mod supervise;
mod tool;

use std::{
    collections::HashMap,
    fmt,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use reqwest::header::HeaderMap;
use tokio::{
    runtime::Handle,
    sync::{oneshot, watch},
    task::JoinHandle,
};

use self::{
    supervise::{Listed, supervise},
    tool::Line,
};
use super::{ApprovalRule, Tool, ToolSource};

/// How long a call may take, if nothing else was said.
pub const TIMEOUT: Duration = Duration::from_secs(60);
/// The longest result, in bytes, if nothing else was said.
pub const MAX_RESULT: usize = 1024 * 1024;
/// How many tools a server may have.
pub const MAX_TOOLS: usize = 256;
/// How long stopping may take.
const STOP: Duration = Duration::from_secs(6);

/// Where a server is.
#[derive(Clone)]
pub enum McpTransport {
    /// In a process that is started for it, and speaks on its standard streams.
    Command {
        /// The program.
        program: String,
        /// Its arguments.
        arguments: Vec<String>,
        /// Variables that it gets beside those that every program needs.
        environment: Vec<(String, String)>,
    },
    /// At an address, which speaks streamable HTTP.
    Http {
        /// The address.
        url: String,
        /// Headers, with their secrets.
        headers: HeaderMap,
    },
}

/// Which server it is, and how it is treated.
#[derive(Debug, Clone)]
pub struct McpOptions {
    /// What it is called in the configuration.
    pub name: String,
    /// Where it is.
    pub transport: McpTransport,
    /// The tools that are used, by the names the server gives them; all of them if left out.
    pub tools: Option<Vec<String>>,
    /// What stands before the tools' names.
    pub prefix: String,
    /// When somebody has to agree to a call.
    pub approval: ApprovalRule,
    /// The same for single tools, by the names the server gives them.
    pub approval_of: HashMap<String, ApprovalRule>,
    /// How long a call may take.
    pub timeout: Duration,
    /// The longest result, in bytes.
    pub max_result_bytes: usize,
}

impl McpOptions {
    /// A server with the defaults for all else.
    pub fn new(name: &str, transport: McpTransport) -> Self {
        Self {
            name: name.to_owned(),
            transport,
            tools: None,
            prefix: String::new(),
            approval: ApprovalRule::Never,
            approval_of: HashMap::new(),
            timeout: TIMEOUT,
            max_result_bytes: MAX_RESULT,
        }
    }
}

/// An MCP server. Nothing is started before [`start`](Self::start), or the first use; dropping it ends the process.
pub struct McpServer {
    options: Arc<McpOptions>,
    line: Arc<Line>,
    listed: Arc<watch::Sender<Listed>>,
    task: Mutex<Option<Task>>,
}

struct Task {
    stop: oneshot::Sender<()>,
    handle: JoinHandle<()>,
}

impl McpServer {
    /// A server that is not started yet.
    pub fn new(options: McpOptions) -> Self {
        Self {
            options: Arc::new(options),
            line: Arc::new(Line::down("it is not started")),
            listed: Arc::new(watch::Sender::new(Listed::default())),
            task: Mutex::new(None),
        }
    }

    /// What it is called in the configuration.
    pub fn name(&self) -> &str {
        &self.options.name
    }

    /// Starts it in the background, unless it is started. Does nothing outside of a tokio runtime.
    pub fn start(&self) {
        let mut task = self.task.lock().unwrap_or_else(PoisonError::into_inner);
        if let (None, Ok(runtime)) = (&*task, Handle::try_current()) {
            let (stop, stopped) = oneshot::channel();
            let work = supervise(self.options.clone(), self.line.clone(), self.listed.clone(), stopped);
            *task = Some(Task { stop, handle: runtime.spawn(work) });
        }
    }

    /// Ends it, and waits until its process is gone. It can be started again.
    pub async fn stop(&self) {
        let task = self.task.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(Task { stop, mut handle }) = task {
            let _ = stop.send(());
            if tokio::time::timeout(STOP, &mut handle).await.is_err() {
                handle.abort();
            }
            self.line.set(Err("it is stopped".to_owned()));
        }
    }

    /// One of its tools, by the name the server gives it.
    pub fn only(server: &Arc<Self>, tool: &str) -> Arc<dyn ToolSource> {
        Arc::new(Only { server: server.clone(), tool: tool.to_owned(), missed: AtomicBool::new(false) })
    }
}

#[async_trait]
impl ToolSource for McpServer {
    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        self.start();
        self.listed.borrow().tools.iter().map(|tool| tool.clone() as Arc<dyn Tool>).collect()
    }

    async fn ready(&self) {
        self.start();
        let mut listed = self.listed.subscribe();
        // The sender is in `self`, and so cannot be gone.
        let _ = listed.wait_for(|listed| listed.settled).await;
    }
}

impl Drop for McpServer {
    fn drop(&mut self) {
        let task = self.task.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(Task { handle, .. }) = task {
            handle.abort();
            self.line.set(Err("it is stopped".to_owned()));
        }
    }
}

impl fmt::Debug for McpServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("McpServer").field(&self.options).finish()
    }
}

/// Values of variables may be secret, and so may the whole of an address.
impl fmt::Debug for McpTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Command { program, .. } => f.debug_tuple("Command").field(program).finish(),
            Self::Http { .. } => f.write_str("Http"),
        }
    }
}

/// One tool of a server.
struct Only {
    server: Arc<McpServer>,
    tool: String,
    missed: AtomicBool,
}

#[async_trait]
impl ToolSource for Only {
    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        self.server.start();
        let listed = self.server.listed.borrow();
        let found = listed.tools.iter().find(|tool| tool.name == self.tool);
        if found.is_none() && listed.known && !self.missed.swap(true, Ordering::Relaxed) {
            tracing::warn!(server = self.server.name(), tool = self.tool, "the MCP server has no tool of this name");
        }
        found.map(|tool| tool.clone() as Arc<dyn Tool>).into_iter().collect()
    }

    async fn ready(&self) {
        self.server.ready().await;
    }
}
