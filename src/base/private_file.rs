//! Files that only the user of the process can read, because they have conversations.

use std::{
    fs::{DirBuilder, OpenOptions},
    io,
    path::Path,
};

/// Returns the options for a file that is created if it does not exist; its mode is then 0600.
pub(crate) fn private_file_options() -> OpenOptions {
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.create(true);
    options
}

/// Creates a folder with its parents; the mode of new ones is 0700.
pub(crate) fn create_private_folder(path: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.recursive(true).create(path)
}
