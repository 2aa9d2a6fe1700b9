//! Measures the size of a workspace on disk.
//!
//! A command arranges its files as it likes, so each folder is opened relative to its parent: a
//! path can be longer than `PATH_MAX`. A workspace that cannot be measured counts as too large.

use std::{io, path::Path};

use rustix::{
    fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, openat, statat, statvfs},
    io::Errno,
};

/// A workspace with more files is too large, whatever their size.
const MAX_FILES: u64 = 100_000;
/// A workspace with folders nested deeper is too large. The walk has an open file for each level.
const MAX_DEPTH: usize = 100;
/// A file counts at least this much, in bytes.
const MIN_FILE_BYTES: u64 = 512;

/// Returns the bytes that a workspace takes on disk, or `None` if they are more than `limit`, if it has too many files
/// or levels, or if a part of it cannot be read.
pub(super) fn disk_usage(workspace: &Path, limit: u64) -> Option<u64> {
    measure(workspace, limit).ok().filter(|bytes| *bytes <= limit)
}

fn measure(workspace: &Path, limit: u64) -> Result<u64, Errno> {
    let open = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let (mut bytes, mut files) = (0_u64, 0);
    let mut levels = vec![Dir::new(openat(CWD, workspace, open, Mode::empty())?)?];
    while let Some(folder) = levels.last_mut() {
        let Some(entry) = folder.read() else {
            levels.pop();
            continue;
        };
        let entry = entry?;
        let name = entry.file_name();
        if name == c"." || name == c".." {
            continue;
        }
        let stat = match statat(folder.fd()?, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => stat,
            Err(Errno::NOENT) => continue,
            Err(error) => return Err(error),
        };
        files += 1;
        // A sparse file takes fewer bytes than its length.
        let blocks = u64::try_from(stat.st_blocks).unwrap_or_default();
        bytes = bytes.saturating_add(blocks.saturating_mul(512).max(MIN_FILE_BYTES));
        if bytes > limit || files > MAX_FILES {
            return Err(Errno::DQUOT);
        }
        if FileType::from_raw_mode(stat.st_mode) != FileType::Directory {
            continue;
        }
        match openat(folder.fd()?, name, open, Mode::empty()) {
            Ok(_) if levels.len() >= MAX_DEPTH => return Err(Errno::DQUOT),
            Ok(folder) => levels.push(Dir::new(folder)?),
            // The entry was removed or replaced.
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(bytes)
}

/// Returns the bytes that are free on the file system of a folder.
pub(super) fn free_space(folder: &Path) -> io::Result<u64> {
    let system = statvfs(folder)?;
    Ok(system.f_bavail.saturating_mul(system.f_frsize))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_folder_counts_with_its_subfolders() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("a")).unwrap();
        fs::write(folder.path().join("a/b"), vec![1; 100_000]).unwrap();
        assert_eq!(disk_usage(folder.path(), 90_000), None);
        assert!((100_000..200_000).contains(&disk_usage(folder.path(), 200_000).unwrap()));
    }

    #[test]
    fn folders_that_are_nested_too_deep_are_too_large() {
        let folder = tempfile::tempdir().unwrap();
        let path = |depth: usize| folder.path().join("d/".repeat(depth));
        fs::create_dir_all(path(MAX_DEPTH - 1)).unwrap();
        assert!(disk_usage(folder.path(), 1 << 30).is_some());
        fs::create_dir_all(path(MAX_DEPTH)).unwrap();
        assert_eq!(disk_usage(folder.path(), 1 << 30), None);
    }
}
