//! Watches a command while it runs: its memory, its workspace and the disk.
//!
//! A command can exceed a limit between two measurements. Measuring the workspace takes at most a
//! tenth of the time.

use std::{path::Path, time::Duration};

use tokio::{task::spawn_blocking, time::Instant};

use super::{
    super::SandboxOptions,
    cgroup::CommandCgroup,
    procfs::{ProcessUsage, usage_of_tree},
    walk,
};

const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// The pause between two measurements is at least this many times the duration of one.
const PAUSE_FACTOR: u32 = 10;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ExceededLimit {
    Memory,
    Workspace,
    /// The file system of the workspaces is almost full.
    Disk,
}

/// Completes when a command exceeds a limit. `id` is the process id of its bubblewrap. A workspace
/// that cannot grow is `None`. With a cgroup, the kernel bounds the memory.
pub(super) async fn exceeded(
    id: Option<u32>,
    workspace: Option<&Path>,
    cgroup: Option<&CommandCgroup>,
    options: &SandboxOptions,
) -> ExceededLimit {
    let mut pause = POLL_INTERVAL;
    loop {
        tokio::time::sleep(pause).await;
        let begin = Instant::now();
        let usage = spawn_blocking(move || id.map_or_else(ProcessUsage::default, usage_of_tree));
        let usage = usage.await.unwrap_or_default();
        if cgroup.is_none() && usage.memory > options.memory_bytes {
            return ExceededLimit::Memory;
        }
        if let Some(workspace) = workspace
            && let Err(limit) = remaining_space(workspace, options, usage.unlinked).await
        {
            return limit;
        }
        pause = POLL_INTERVAL.max(begin.elapsed() * PAUSE_FACTOR);
    }
}

/// Returns the bytes by which a workspace may grow. `unlinked` are the bytes of open files that
/// were removed from it.
///
/// The disk counts as full when less is free than a workspace may take, so that commands leave some
/// space to the server.
pub(super) async fn remaining_space(
    workspace: &Path,
    options: &SandboxOptions,
    unlinked: u64,
) -> Result<u64, ExceededLimit> {
    let (workspace, limit) = (workspace.to_owned(), options.workspace_bytes);
    let measured = spawn_blocking(move || {
        let used = walk::disk_usage(&workspace, limit).ok_or(ExceededLimit::Workspace)?;
        let remaining = limit.saturating_sub(used).saturating_sub(unlinked);
        match remaining {
            0 => Err(ExceededLimit::Workspace),
            _ if walk::free_space(&workspace).map_or(true, |free| free < limit) => {
                Err(ExceededLimit::Disk)
            }
            _ => Ok(remaining),
        }
    });
    measured.await.unwrap_or(Err(ExceededLimit::Workspace))
}
