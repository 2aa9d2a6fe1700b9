//! Replaces the sandbox on systems without one.

use std::{convert::Infallible, io, path::PathBuf, sync::Arc};

use super::{SandboxOptions, WorkspaceOwner, unavailable};
use agui_tools::Tool;

/// The sandbox, which cannot be created on this system.
#[derive(Debug)]
pub struct Sandbox(Infallible);

#[allow(missing_docs, reason = "the documented ones are those of Linux")]
impl Sandbox {
    pub fn new(_: impl Into<PathBuf>, _: SandboxOptions) -> io::Result<Arc<Self>> {
        Err(unavailable("system calls are filtered only on Linux for x86_64 and aarch64"))
    }

    pub fn tools(self: &Arc<Self>) -> Vec<Arc<dyn Tool>> {
        match self.0 {}
    }

    pub fn lack_of_cgroups(&self) -> Option<&str> {
        match self.0 {}
    }

    #[doc(hidden)]
    pub async fn workspace_owners(&self) -> io::Result<Vec<WorkspaceOwner>> {
        match self.0 {}
    }

    #[doc(hidden)]
    pub async fn remove_workspace(&self, _: WorkspaceOwner) -> io::Result<()> {
        match self.0 {}
    }
}
