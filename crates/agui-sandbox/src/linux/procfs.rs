//! Measures the processes of a command from outside, in `/proc`.

use std::{collections::HashSet, fs, io, path::Path};

/// The default size of a send buffer, in bytes.
const DEFAULT_SEND_BUFFER: u64 = 212_992;

/// The memory and files of a command's processes that its workspace does not show.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct ProcessUsage {
    /// Memory, in bytes. Shared pages count for each process.
    pub(super) memory: u64,
    /// Files that were unlinked but are still open, in bytes on disk.
    pub(super) unlinked: u64,
}

/// Measures a process and its descendants. `id` is the process id of bubblewrap, whose first child is bubblewrap, too.
///
/// The unlinked files of a process that cannot be inspected are infinite.
pub(super) fn usage_of_tree(id: u32) -> ProcessUsage {
    let send_buffer = send_buffer_bytes();
    let mut usage = ProcessUsage::default();
    let mut seen = HashSet::new();
    for (index, process) in process_tree(id).into_iter().enumerate() {
        usage.memory = usage.memory.saturating_add(memory_of(process).unwrap_or_default());
        let mut open = OpenFiles::default();
        // The first two processes are bubblewrap's. After another error the process has ended.
        if let Err(error) = open.inspect(process, &mut seen)
            && index >= 2
            && error.kind() == io::ErrorKind::PermissionDenied
        {
            usage.unlinked = u64::MAX;
        }
        usage.memory = usage.memory.saturating_add(open.sockets.saturating_mul(send_buffer));
        usage.unlinked = usage.unlinked.saturating_add(open.unlinked);
    }
    usage
}

#[derive(Default)]
struct OpenFiles {
    sockets: u64,
    unlinked: u64,
}

impl OpenFiles {
    /// Inspects the descriptors of all threads, since a thread can have descriptors of its own.
    fn inspect(&mut self, process: u32, seen: &mut HashSet<(u64, u64)>) -> io::Result<()> {
        for thread in fs::read_dir(format!("/proc/{process}/task"))? {
            for descriptor in fs::read_dir(thread?.path().join("fd"))? {
                self.add(&descriptor?.path(), seen);
            }
        }
        Ok(())
    }

    fn add(&mut self, descriptor: &Path, seen: &mut HashSet<(u64, u64)>) {
        use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
        // If this fails, the descriptor was closed.
        let Ok(file) = fs::metadata(descriptor) else { return };
        let is_unlinked =
            file.is_file() && file.nlink() == 0 && Some(file.dev()) != memory_file_device();
        if (is_unlinked || file.file_type().is_socket()) && seen.insert((file.dev(), file.ino())) {
            if is_unlinked {
                self.unlinked = self.unlinked.saturating_add(file.blocks().saturating_mul(512))
            } else {
                self.sockets += 1
            }
        }
    }
}

/// Returns the device number of all files that `memfd_create` makes. They are memory, which a
/// cgroup bounds; without a cgroup, commands cannot make them.
fn memory_file_device() -> Option<u64> {
    use std::sync::OnceLock;

    use rustix::fs::{MemfdFlags, fstat, memfd_create};

    static DEVICE: OnceLock<Option<u64>> = OnceLock::new();
    *DEVICE.get_or_init(|| {
        Some(fstat(memfd_create("agui-device", MemfdFlags::CLOEXEC).ok()?).ok()?.st_dev)
    })
}

/// Returns a process and its descendants, parents first.
fn process_tree(id: u32) -> Vec<u32> {
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
    family
}

/// Reads the fourth field of `stat`. The second is the program's name in parentheses, which can have any characters.
fn parent_of(id: u32) -> Option<u32> {
    let stat = fs::read(format!("/proc/{id}/stat")).ok()?;
    let stat = String::from_utf8_lossy(&stat);
    stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}

/// Returns the resident and the swapped memory of a process with its page tables, in bytes.
fn memory_of(id: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{id}/status")).ok()?;
    let sizes = status
        .lines()
        .filter(|line| ["VmRSS:", "VmSwap:", "VmPTE:"].iter().any(|name| line.starts_with(name)));
    let kilobytes = |line: &str| line.split_whitespace().nth(1)?.parse::<u64>().ok();
    Some(sizes.filter_map(kilobytes).sum::<u64>() * 1024)
}

/// Commands cannot enlarge a send buffer, but an operator can change the default.
fn send_buffer_bytes() -> u64 {
    let default = fs::read_to_string("/proc/sys/net/core/wmem_default");
    default.ok().and_then(|bytes| bytes.trim().parse().ok()).unwrap_or(DEFAULT_SEND_BUFFER)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_of_a_running_process_is_measured() {
        assert!(usage_of_tree(std::process::id()).memory > 100_000);
        assert_eq!(usage_of_tree(u32::MAX), ProcessUsage::default());
    }

    #[test]
    fn unlinked_files_count_and_files_in_memory_do_not() {
        use std::{io::Write as _, os::fd::AsRawFd as _};

        let unlinked = |file: &mut fs::File| {
            file.write_all(&[1; 100_000]).unwrap();
            file.sync_all().unwrap();
            let mut open = OpenFiles::default();
            open.add(
                Path::new(&format!("/proc/self/fd/{}", file.as_raw_fd())),
                &mut HashSet::new(),
            );
            open.unlinked
        };
        let in_memory = rustix::fs::memfd_create("test", rustix::fs::MemfdFlags::CLOEXEC).unwrap();
        assert_eq!(unlinked(&mut in_memory.into()), 0);
        assert!(unlinked(&mut tempfile::tempfile().unwrap()) >= 100_000);
    }
}
