//! Runs commands, each in a sandbox of its own.

use std::{io, path::PathBuf, sync::Arc};

use super::{
    isolation::{self, Isolation},
    options::SandboxOptions,
    probe,
    process::{self, CommandOutput, Job},
    usage,
    workspace::{Workspace, Workspaces},
};
use crate::tools::{ToolContext, ToolError};

/// The error when commands cannot be isolated on this system.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("commands cannot be isolated here, so the tool group \"sandbox\" is not available: {0}")]
pub struct SandboxUnavailable(String);

/// Runs commands, each in a sandbox of its own.
#[derive(Debug)]
pub struct Sandbox {
    pub(super) options: SandboxOptions,
    isolation: Isolation,
    workspaces: Workspaces,
}

impl Sandbox {
    /// A sandbox with workspaces in a folder, which is created with the first workspace. Finds bubblewrap and tests the
    /// isolation, which blocks for some 10 ms.
    ///
    /// # Errors
    /// [`SandboxUnavailable`], if the options are wrong or the isolation does not hold.
    pub fn new(workspaces: impl Into<PathBuf>, options: SandboxOptions) -> Result<Arc<Self>, SandboxUnavailable> {
        options.check().map_err(|error| SandboxUnavailable(error.to_string()))?;
        let isolation = Isolation::find().map_err(SandboxUnavailable)?;
        probe::probe(&isolation, &options).map_err(SandboxUnavailable)?;
        let workspaces = Workspaces::new(&workspaces.into()).map_err(|error| SandboxUnavailable(error.to_string()))?;
        if let Some(readable) = isolation::readable_system_folder(workspaces.folder()) {
            let folder = workspaces.folder().display();
            return Err(SandboxUnavailable(format!(
                "the workspaces, {folder}, are in {readable}, which every command can read"
            )));
        }
        Ok(Arc::new(Self { options, isolation, workspaces }))
    }

    pub(super) async fn run(
        &self,
        command: &[&str],
        input: Option<String>,
        cx: &ToolContext,
    ) -> Result<CommandOutput, ToolError> {
        let workspace = self.workspace(cx).await?;
        let arguments = self.isolation.arguments(&workspace, &self.options, command);
        let job = Job { program: self.isolation.program(), arguments, input, workspace: workspace.path() };
        process::run(job, &self.options).await.map_err(sandbox_error)
    }

    pub(super) async fn is_full(&self, cx: &ToolContext) -> Result<bool, ToolError> {
        let workspace = self.workspace(cx).await?;
        Ok(usage::is_larger_than(workspace.path().to_owned(), self.options.workspace_bytes).await)
    }

    async fn workspace(&self, cx: &ToolContext) -> Result<Workspace, ToolError> {
        self.workspaces.open(cx, self.isolation.has_own_users()).await.map_err(sandbox_error)
    }
}

fn sandbox_error(error: io::Error) -> ToolError {
    ToolError::new("the sandbox cannot be used now").caused_by(error)
}
