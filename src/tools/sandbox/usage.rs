//! Measures the memory and the workspace of a command while it runs.
//!
//! The limits of the kernel are for each process and each file; this adds them up. Because it polls, a command can
//! exceed a limit for up to 100 ms (memory) or 500 ms (workspace).

use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use super::options::SandboxOptions;

const POLL_INTERVAL: Duration = Duration::from_millis(100);
const INTERVALS_PER_WORKSPACE_CHECK: u32 = 5;
/// A workspace with more files is too large, whatever their size.
const MAX_FILES: usize = 100_000;
/// An empty file counts this much, in bytes.
const MIN_FILE_BYTES: u64 = 512;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ExceededLimit {
    Memory,
    Workspace,
}

/// Completes when a command exceeds a limit. `id` is the process id of its bubblewrap.
pub(super) async fn exceeded(id: Option<u32>, workspace: &Path, options: &SandboxOptions) -> ExceededLimit {
    let mut round = 0_u32;
    loop {
        tokio::time::sleep(POLL_INTERVAL).await;
        round = round.wrapping_add(1);
        let memory = tokio::task::spawn_blocking(move || id.map_or(0, memory_of_tree)).await;
        if memory.is_ok_and(|bytes| bytes > options.memory_bytes) {
            return ExceededLimit::Memory;
        }
        if round.is_multiple_of(INTERVALS_PER_WORKSPACE_CHECK)
            && is_larger_than(workspace.to_owned(), options.workspace_bytes).await
        {
            return ExceededLimit::Workspace;
        }
    }
}

pub(super) async fn is_larger_than(workspace: PathBuf, limit: u64) -> bool {
    tokio::task::spawn_blocking(move || exceeds(workspace, limit)).await.unwrap_or(true)
}

/// Adds up a folder, without following links, until the limit is reached.
fn exceeds(folder: PathBuf, limit: u64) -> bool {
    let (mut bytes, mut files) = (0_u64, 0);
    let mut folders = vec![folder];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let Ok(metadata) = entry.metadata() else { continue };
            files += 1;
            bytes = bytes.saturating_add(disk_usage(&metadata).max(MIN_FILE_BYTES));
            if bytes > limit || files > MAX_FILES {
                return true;
            }
            if metadata.is_dir() {
                folders.push(entry.path());
            }
        }
    }
    false
}

/// Returns the bytes that a file takes on disk; a sparse file takes fewer than its length.
#[cfg(unix)]
fn disk_usage(metadata: &fs::Metadata) -> u64 {
    use std::os::unix::fs::MetadataExt as _;
    metadata.blocks().saturating_mul(512)
}

#[cfg(not(unix))]
fn disk_usage(metadata: &fs::Metadata) -> u64 {
    metadata.len()
}

/// Returns the resident memory of a process and its descendants, in bytes. Shared pages count for each process.
fn memory_of_tree(id: u32) -> u64 {
    let parents: Vec<(u32, u32)> = fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter_map(|id: u32| Some((id, parent_of(id)?)))
        .collect();
    let (mut family, mut next) = (vec![id], 0);
    while let Some(member) = family.get(next).copied() {
        family.extend(parents.iter().filter(|(_, parent)| *parent == member).map(|(id, _)| *id));
        next += 1;
    }
    family.into_iter().filter_map(resident_memory).sum()
}

/// Reads the fourth field of `stat`. The second is the program's name in parentheses, which can have any characters.
fn parent_of(id: u32) -> Option<u32> {
    let stat = fs::read(format!("/proc/{id}/stat")).ok()?;
    let stat = String::from_utf8_lossy(&stat);
    stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}

fn resident_memory(id: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{id}/status")).ok()?;
    let kilobytes = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    kilobytes.split_whitespace().next()?.parse::<u64>().ok().map(|kilobytes| kilobytes * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_of_a_running_process_is_measured() {
        assert!(memory_of_tree(std::process::id()) > 100_000);
        assert_eq!(memory_of_tree(u32::MAX), 0);
    }

    #[tokio::test]
    async fn a_folder_counts_with_its_subfolders() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("a")).unwrap();
        fs::write(folder.path().join("a/b"), vec![1; 100_000]).unwrap();
        assert!(is_larger_than(folder.path().to_owned(), 90_000).await);
        assert!(!is_larger_than(folder.path().to_owned(), 200_000).await);
    }
}
