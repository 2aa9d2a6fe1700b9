//! Removes folders that commands have filled.
//!
//! Such a folder can be nested beyond `PATH_MAX` and have levels without permissions. So nothing here recurses or
//! follows a path: each subfolder is moved to the top of the trash folder, and emptied there.

use std::{
    fs, io,
    os::{
        fd::{AsFd, AsRawFd as _},
        unix::fs::PermissionsExt as _,
    },
    path::Path,
};

use rustix::{
    fs::{AtFlags, CWD, Dir, Mode, OFlags, openat, renameat, unlinkat},
    io::Errno,
};

const FOLDER: OFlags = OFlags::DIRECTORY.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
/// The prefix of the new names at the top.
const PREFIX: &str = ".moved-";

/// Removes a folder with its content.
pub(super) fn remove_folder(trash: &Path) -> io::Result<()> {
    make_accessible(CWD, trash)?;
    let top = openat(CWD, trash, FOLDER | OFlags::RDONLY, Mode::empty())?;
    // Unique, because a command can have chosen names with the prefix.
    let prefix = format!("{PREFIX}{}-", uuid::Uuid::new_v4().simple());
    let (mut waiting, mut moved) = (Vec::new(), 0_u64);
    let mut empty = |folder: Dir, waiting: &mut Vec<String>| -> io::Result<()> {
        let mut folder = folder;
        while let Some(entry) = folder.read() {
            let entry = entry?;
            let name = entry.file_name();
            if name == c"." || name == c".." || name.to_bytes().starts_with(prefix.as_bytes()) {
                continue;
            }
            match unlinkat(folder.fd()?, name, AtFlags::empty()) {
                Ok(()) | Err(Errno::NOENT) => {}
                Err(Errno::ISDIR | Errno::PERM) => {
                    moved += 1;
                    let place = format!("{prefix}{moved}");
                    make_accessible(folder.fd()?, name)?;
                    renameat(folder.fd()?, name, &top, place.as_str())?;
                    waiting.push(place);
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    };
    empty(Dir::read_from(&top)?, &mut waiting)?;
    while let Some(name) = waiting.pop() {
        let folder = openat(&top, name.as_str(), FOLDER | OFlags::RDONLY, Mode::empty())?;
        empty(Dir::new(folder)?, &mut waiting)?;
        unlinkat(&top, name.as_str(), AtFlags::REMOVEDIR)?;
    }
    fs::remove_dir(trash)
}

/// Gives the owner all permissions of a folder, and never follows a link.
fn make_accessible(parent: impl AsFd, name: impl rustix::path::Arg) -> io::Result<()> {
    let folder = openat(parent, name, FOLDER | OFlags::PATH, Mode::empty())?;
    fs::set_permissions(
        format!("/proc/self/fd/{}", folder.as_raw_fd()),
        fs::Permissions::from_mode(0o700),
    )
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt as _};

    use rustix::fs::{CWD, Mode, OFlags, mkdirat, openat};

    use super::*;

    #[test]
    fn a_folder_is_removed_with_files_links_and_levels_that_nobody_may_enter() {
        let outer = tempfile::tempdir().unwrap();
        let (folder, kept) = (outer.path().join("folder"), outer.path().join("kept"));
        fs::create_dir_all(folder.join("a/b/c")).unwrap();
        fs::create_dir_all(folder.join("d")).unwrap();
        fs::create_dir(&kept).unwrap();
        fs::write(kept.join("file"), "x").unwrap();
        fs::write(folder.join("a/b/file"), "x").unwrap();
        std::os::unix::fs::symlink(&kept, folder.join("a/link")).unwrap();
        for path in ["a/b", "d", ""] {
            fs::set_permissions(folder.join(path), fs::Permissions::from_mode(0o000)).unwrap();
        }
        remove_folder(&folder).unwrap();
        assert!(!folder.exists() && kept.join("file").exists());
    }

    #[test]
    fn a_folder_that_is_nested_beyond_the_longest_path_is_removed() {
        let outer = tempfile::tempdir().unwrap();
        let folder = outer.path().join("folder");
        fs::create_dir(&folder).unwrap();
        let mut level = openat(CWD, &folder, OFlags::DIRECTORY, Mode::empty()).unwrap();
        for _ in 0..5000 {
            mkdirat(&level, "deeper", Mode::RWXU).unwrap();
            level = openat(&level, "deeper", OFlags::DIRECTORY, Mode::empty()).unwrap();
        }
        remove_folder(&folder).unwrap();
        assert!(!folder.exists());
    }
}
