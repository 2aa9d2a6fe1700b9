//! Tools that work in a sandbox: commands and files, in a folder of each conversation's own.
//!
//! Every call is a process of its own in its own [bubblewrap](https://github.com/containers/bubblewrap) sandbox: no
//! network, a system that can only be read, none of this server's files and none of its environment. The
//! workspace alone can be written, and stays for the conversation's next call. Files are read and written
//! by processes in the sandbox as well: a link that leads out of the workspace leads nowhere.
//!
//! - `isolation` says what a sandbox is: bubblewrap's arguments, and the limits within.
//! - `probe` tries it before anything else is: where it does not hold, there is no sandbox, and so no tools.
//! - `process` runs one command and collects what it says; `watch` measures it meanwhile. A call that is dropped
//!   is killed, with all it has started.
//! - `group` is the tools.

mod group;
mod isolation;
mod probe;
mod process;
mod watch;
mod workspace;

use std::{path::PathBuf, sync::Arc, time::Duration};

pub use self::process::{Ended, Output};
use self::{
    isolation::Isolation,
    process::Job,
    workspace::{Workspace, Workspaces},
};
use super::{ApprovalRule, Tool, ToolContext, ToolError};

/// What limits a command, and where workspaces are.
#[derive(Debug, Clone)]
pub struct SandboxOptions {
    /// The folder of the workspaces, made if there is none.
    pub workspaces: PathBuf,
    /// How long a command may take.
    pub timeout: Duration,
    /// How much memory all processes of a command may have together, in bytes. A single one cannot ask for more, either.
    pub memory: u64,
    /// How many processes and threads a command may be at a time.
    pub processes: u64,
    /// The most that is kept of what a command says, or of a file that is read, in bytes.
    pub max_output: usize,
    /// The largest workspace, in bytes; also the largest file.
    pub workspace_size: u64,
    /// When somebody has to agree to a call.
    pub approval: ApprovalRule,
    /// The same for single tools, by name.
    pub approval_of: Vec<(String, ApprovalRule)>,
}

impl SandboxOptions {
    /// The defaults, with workspaces in this folder.
    pub fn new(workspaces: impl Into<PathBuf>) -> Self {
        Self {
            workspaces: workspaces.into(),
            timeout: Duration::from_secs(30),
            memory: 512 * 1024 * 1024,
            processes: 64,
            max_output: 64 * 1024,
            workspace_size: 256 * 1024 * 1024,
            approval: ApprovalRule::Never,
            approval_of: Vec::new(),
        }
    }
}

/// Why there can be no sandbox here.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("commands cannot be isolated here, so the group \"sandbox\" cannot be had: {0}")]
pub struct NoSandbox(String);

/// Runs commands, each in a sandbox.
#[derive(Debug)]
pub struct Sandbox {
    options: SandboxOptions,
    isolation: Isolation,
    workspaces: Workspaces,
}

impl Sandbox {
    /// Finds bubblewrap, and tries whether it isolates: this takes a moment, and blocks.
    ///
    /// # Errors
    /// [`NoSandbox`], when it does not.
    pub fn new(options: SandboxOptions) -> Result<Arc<Self>, NoSandbox> {
        let isolation = Isolation::find().map_err(NoSandbox)?;
        probe::probe(&isolation, &options).map_err(NoSandbox)?;
        let workspaces = Workspaces::new(&options.workspaces).map_err(|error| NoSandbox(error.to_string()))?;
        if let Some(folder) = isolation::seen_in(workspaces.folder()) {
            let folders = workspaces.folder().display();
            return Err(NoSandbox(format!("the workspaces, {folders}, are in {folder}, which every command can read")));
        }
        Ok(Arc::new(Self { options, isolation, workspaces }))
    }

    /// The tools: `run_command`, `read_file`, `write_file`, `list_files`.
    pub fn tools(self: &Arc<Self>) -> Vec<Arc<dyn Tool>> {
        group::tools(self)
    }

    /// Runs a program in the workspace of a conversation, with this as its input.
    async fn run(&self, command: &[&str], input: Option<String>, cx: &ToolContext) -> Result<Output, ToolError> {
        let workspace = self.workspace(cx).await?;
        let arguments = self.isolation.arguments(&workspace, &self.options, command);
        let job = Job { program: self.isolation.program(), arguments, input, workspace: workspace.path() };
        process::run(job, &self.options).await.map_err(trouble)
    }

    /// Whether the workspace of a conversation can take no more.
    async fn is_full(&self, cx: &ToolContext) -> Result<bool, ToolError> {
        let workspace = self.workspace(cx).await?;
        Ok(watch::exceeds(workspace.path().to_owned(), self.options.workspace_size).await)
    }

    async fn workspace(&self, cx: &ToolContext) -> Result<Workspace, ToolError> {
        self.workspaces.of(cx, self.isolation.has_own_users()).await.map_err(trouble)
    }
}

fn trouble(error: std::io::Error) -> ToolError {
    ToolError::new("the sandbox cannot be used now").caused_by(error)
}
