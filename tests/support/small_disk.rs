//! A temporary file system of 3 MB, which a test can fill. Only root can mount one.

use std::{
    fs,
    io::Write as _,
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
        let filler = self.path().join("filler");
        let mut file = fs::File::create(&filler).unwrap();
        while file.write_all(&[1; 4096]).is_ok() {}
        filler
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.path()).status();
    }
}
