//! Measures what the kernel's limits do not: they count for each process and each file, this counts for all together.
//!
//! It looks a few times a second, so it is a second line: a command can be over for a moment.

use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use super::{Ended, SandboxOptions};

/// How often memory is looked at, and how often of those times the workspace.
const PERIOD: Duration = Duration::from_millis(100);
const WORKSPACE_EVERY: u32 = 5;
/// A workspace with more files is too large, whatever their size.
const MOST_FILES: usize = 100_000;
/// What even an empty file takes.
const FILE: u64 = 512;

/// Completes when a command, by the id of its bubblewrap, has taken more than it may.
pub(super) async fn exceeded(id: Option<u32>, workspace: &Path, options: &SandboxOptions) -> Ended {
    let mut round = 0_u32;
    loop {
        tokio::time::sleep(PERIOD).await;
        round = round.wrapping_add(1);
        let looked = tokio::task::spawn_blocking(move || id.map_or(0, memory_below)).await;
        if looked.is_ok_and(|memory| memory > options.memory) {
            return Ended::TooMuchMemory;
        }
        if round.is_multiple_of(WORKSPACE_EVERY) && exceeds(workspace.to_owned(), options.workspace_size).await {
            return Ended::TooLargeWorkspace;
        }
    }
}

/// Whether a workspace is larger than that.
pub(super) async fn exceeds(workspace: PathBuf, size: u64) -> bool {
    let looked = tokio::task::spawn_blocking(move || {
        let (mut bytes, mut files) = (0_u64, 0);
        measure(&workspace, &mut bytes, &mut files, size);
        bytes > size || files > MOST_FILES
    });
    looked.await.unwrap_or(true)
}

/// Links are not followed, and what disappears meanwhile does not count.
fn measure(folder: &Path, bytes: &mut u64, files: &mut usize, size: u64) {
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let Ok(metadata) = entry.metadata() else { continue };
            *files += 1;
            *bytes = bytes.saturating_add(on_disk(&metadata).max(FILE));
            if *bytes > size || *files > MOST_FILES {
                return;
            }
            if metadata.is_dir() {
                folders.push(entry.path());
            }
        }
    }
}

/// A file with holes takes less than it is long.
#[cfg(unix)]
fn on_disk(metadata: &fs::Metadata) -> u64 {
    use std::os::unix::fs::MetadataExt as _;
    metadata.blocks().saturating_mul(512)
}

#[cfg(not(unix))]
fn on_disk(metadata: &fs::Metadata) -> u64 {
    metadata.len()
}

/// The memory of a process and of all below it, in bytes. What is shared counts for each.
fn memory_below(id: u32) -> u64 {
    let parents: Vec<(u32, u32)> = fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter_map(|id: u32| Some((id, parent(id)?)))
        .collect();
    let (mut family, mut next) = (vec![id], 0);
    while let Some(member) = family.get(next).copied() {
        family.extend(parents.iter().filter(|(_, parent)| *parent == member).map(|(id, _)| *id));
        next += 1;
    }
    family.into_iter().filter_map(resident).sum()
}

/// The fourth field of `stat`; the second is the program's name, in parentheses, and may hold anything.
fn parent(id: u32) -> Option<u32> {
    let stat = fs::read(format!("/proc/{id}/stat")).ok()?;
    let stat = String::from_utf8_lossy(&stat);
    stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}

fn resident(id: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{id}/status")).ok()?;
    let kilobytes = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    kilobytes.split_whitespace().next()?.parse::<u64>().ok().map(|kilobytes| kilobytes * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_has_memory() {
        assert!(memory_below(std::process::id()) > 100_000);
        assert_eq!(memory_below(u32::MAX), 0);
    }

    #[tokio::test]
    async fn a_folder_counts_with_all_that_is_in_it() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("a")).unwrap();
        fs::write(folder.path().join("a/b"), vec![1; 100_000]).unwrap();
        let exceeds = |size: u64| exceeds(folder.path().to_owned(), size);
        assert!(exceeds(90_000).await);
        assert!(!exceeds(200_000).await);
    }
}
