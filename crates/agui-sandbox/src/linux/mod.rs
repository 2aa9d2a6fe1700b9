//! The sandbox of Linux: bubblewrap, cgroups and a filter of system calls.

mod cgroup;
mod isolation;
mod probe;
mod process;
mod procfs;
mod removal;
mod seccomp;
mod tools;
mod usage;
mod walk;
mod workspace;

use std::{io, path::PathBuf, sync::Arc};

use tokio::task::spawn_blocking;

use self::{
    isolation::{IsolatedCommand, Isolation},
    process::CommandOutput,
    usage::ExceededLimit,
    workspace::Workspaces,
};
use super::{SandboxOptions, WorkspaceOwner, unavailable};
use agui_agent::host::owner_of;
use agui_base::permits::Permits;
use agui_tools::{ToolContext, ToolError};

/// Runs commands, each in a sandbox of its own.
#[derive(Debug)]
pub struct Sandbox {
    options: SandboxOptions,
    isolation: Isolation,
    workspaces: Arc<Workspaces>,
    /// A permit for each command that may run.
    permits: Arc<Permits>,
}

/// The right of a command to add files to its workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Growth {
    Allowed,
    /// The command runs in a full workspace as well.
    None,
}

impl Sandbox {
    /// A sandbox with workspaces in a folder, which is created with the first workspace. Finds bubblewrap and tests the
    /// isolation, which blocks for some 10 ms.
    ///
    /// Sets close-on-exec on the descriptors that this process has inherited, since every command would inherit them. If
    /// this process is in a delegated cgroup, it moves to a child of that, and commands get others.
    ///
    /// # Errors
    /// If the options are wrong or the isolation does not hold.
    pub fn new(workspaces: impl Into<PathBuf>, options: SandboxOptions) -> io::Result<Arc<Self>> {
        options.check().map_err(unavailable)?;
        crate::descriptors::close_descriptors_on_exec();
        let isolation = Isolation::find().map_err(unavailable)?;
        probe::probe(&isolation, &options).map_err(unavailable)?;
        let workspaces = Workspaces::new(&workspaces.into()).map_err(unavailable)?;
        if let Some(readable) = isolation::readable_system_folder(&workspaces.folder) {
            let folder = workspaces.folder.display();
            return Err(unavailable(format!(
                "the workspaces, {folder}, are in {readable}, which every command can read"
            )));
        }
        let permits = Permits::new(options.max_commands, Some(options.max_commands.div_ceil(2)));
        Ok(Arc::new(Self { options, isolation, workspaces: Arc::new(workspaces), permits }))
    }

    /// Returns the reason why no cgroup bounds the memory of commands; `None` if cgroups do.
    /// Without cgroups the server watches the memory, and commands have no sockets and no shared
    /// memory.
    pub fn lack_of_cgroups(&self) -> Option<&str> {
        self.isolation.cgroups.err()
    }

    /// Lists the conversations that have workspaces.
    ///
    /// # Errors
    /// The folder of the workspaces cannot be read.
    #[doc(hidden)]
    pub async fn workspace_owners(&self) -> io::Result<Vec<WorkspaceOwner>> {
        let workspaces = self.workspaces.clone();
        spawn_blocking(move || workspaces.owners()).await.map_err(io::Error::other)?
    }

    /// Removes the workspace of a conversation, if there is one.
    ///
    /// # Errors
    /// It cannot be removed.
    #[doc(hidden)]
    pub async fn remove_workspace(&self, owner: WorkspaceOwner) -> io::Result<()> {
        let workspaces = self.workspaces.clone();
        spawn_blocking(move || workspaces.remove(&owner)).await.map_err(io::Error::other)?
    }

    async fn run(
        &self,
        words: &[&str],
        input: Option<String>,
        growth: Growth,
        cx: &ToolContext,
    ) -> Result<CommandOutput, ToolError> {
        self.run_printing(words, input, growth, self.options.max_output_bytes, cx).await
    }

    /// Runs a command, and keeps at most `max_output_bytes` of its output.
    async fn run_printing(
        &self,
        words: &[&str],
        input: Option<String>,
        growth: Growth,
        max_output_bytes: usize,
        cx: &ToolContext,
    ) -> Result<CommandOutput, ToolError> {
        let principal = cx.principal().map(|principal| principal.id().to_owned());
        let (workspaces, owner) =
            (self.workspaces.clone(), WorkspaceOwner { principal, thread: cx.thread_id().clone() });
        let _permit = self.permits.take(&owner_of(cx.principal()), 1).await;
        let user = self.isolation.workspace_user();
        let opened = spawn_blocking(move || workspaces.open(&owner, user)).await;
        let workspace =
            opened.map_err(io::Error::other).and_then(|opened| opened).map_err(sandbox_error)?;
        let file_bytes = match usage::remaining_space(&workspace.path, &self.options, 0).await {
            Ok(remaining) => remaining,
            Err(_) if growth == Growth::None => 0,
            Err(limit) => return Err(self.refusal(limit)),
        };
        let cgroup = self.isolation.cgroups.ok().map(|cgroups| cgroups.create(&self.options));
        let cgroup = cgroup.transpose().map_err(sandbox_error)?;
        let command =
            IsolatedCommand { words, workspace: &workspace, cgroup: cgroup.as_ref(), file_bytes };
        // The file is open until the command has ended.
        let (process, _arguments) =
            self.isolation.launch(&command, &self.options).map_err(sandbox_error)?;
        let growing = (growth == Growth::Allowed).then_some(&*workspace.path);
        let ended =
            process::run(process, input, growing, cgroup.as_ref(), max_output_bytes, &self.options)
                .await;
        ended.map_err(sandbox_error)
    }

    fn refusal(&self, limit: ExceededLimit) -> ToolError {
        ToolError::new(match limit {
            ExceededLimit::Disk => {
                "the disk of the workspaces is almost full; nothing can be run until it has space again".to_owned()
            }
            _ => format!(
                "the workspace is full: it has more than {} MB or too many files or levels of folders, or a folder that \
                 cannot be read; remove files with remove_files first",
                self.options.workspace_bytes >> 20
            ),
        })
    }
}

fn sandbox_error(error: io::Error) -> ToolError {
    ToolError::new("the sandbox cannot be used now").caused_by(error)
}
