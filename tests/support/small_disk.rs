//! A temporary file system of 3 MB, which a test can fill. Only root can mount one.

use std::{
    fs,
    io::{self, Read as _},
    path::{Path, PathBuf},
    process::Command,
};

use tempfile::{TempDir, tempdir};

pub(crate) struct SmallDisk(TempDir);

impl SmallDisk {
    /// Returns `None` if this user cannot mount one.
    pub(crate) fn mount() -> Option<Self> {
        let folder = tempdir().unwrap();
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", "size=3m", "tmpfs"]).arg(folder.path());
        if mount.output().is_ok_and(|mount| mount.status.success()) {
            return Some(Self(folder));
        }
        println!("skipped: only root can mount a disk that is full");
        None
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    /// Fills the disk to the last byte. Returns the file to remove.
    pub(crate) fn fill(&self) -> PathBuf {
        self.fill_with(u64::MAX)
    }

    /// Writes a file of at most this many bytes.
    pub(crate) fn fill_with(&self, bytes: u64) -> PathBuf {
        let filler = self.path().join(format!("filler-{bytes}"));
        // An error means that the disk is full.
        let _ = io::copy(&mut io::repeat(1).take(bytes), &mut fs::File::create(&filler).unwrap());
        filler
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.path()).status();
    }
}
