//! The workspaces of the sandbox, which are removed with their threads.

use std::sync::Arc;

use async_trait::async_trait;

use agui_run::host::ThreadData;
use agui_sandbox::{Sandbox, WorkspaceOwner};
use agui_store::{Store, ThreadKey, ThreadParts};

async fn remove(sandbox: &Sandbox, owner: WorkspaceOwner) {
    let thread = owner.thread.clone();
    if let Err(error) = sandbox.remove_workspace(owner).await {
        tracing::warn!(thread = ?thread.as_str(), %error, "the workspace of a removed thread could not be removed");
    }
}

/// The workspaces of a sandbox, as data of threads.
pub(super) struct SandboxWorkspaces(pub(super) Arc<Sandbox>);

#[async_trait]
impl ThreadData for SandboxWorkspaces {
    async fn thread_deleted(&self, key: &ThreadKey) {
        let principal = (&*key.owner != ThreadKey::ANONYMOUS).then(|| key.owner.to_string());
        remove(&self.0, WorkspaceOwner { principal, thread: key.id.clone() }).await;
    }

    async fn threads_swept(&self, store: &dyn Store) {
        let owners = match self.0.workspace_owners().await {
            Ok(owners) => owners,
            Err(error) => return tracing::warn!(%error, "the workspaces could not be listed"),
        };
        for owner in owners {
            let name = owner.principal.as_deref().unwrap_or(ThreadKey::ANONYMOUS);
            let key = ThreadKey { owner: name.into(), id: owner.thread.clone() };
            match store.thread(&key, ThreadParts::default()).await {
                Ok(Some(_)) => {}
                Ok(None) => remove(&self.0, owner).await,
                Err(error) => {
                    return tracing::warn!(%error, "the threads of workspaces could not be read");
                }
            }
        }
    }
}

/// Logs how the memory of commands is bounded.
pub(super) fn log_sandbox(sandbox: &Sandbox) {
    match sandbox.lack_of_cgroups() {
        None => tracing::info!("commands of the sandbox have cgroups, which bound their memory"),
        Some(reason) => tracing::warn!(
            reason,
            "commands of the sandbox have no cgroups: their memory is watched, and sockets and shared memory are blocked; \
             run the server in a delegated cgroup of version 2, such as a systemd unit with Delegate=yes"
        ),
    }
}
