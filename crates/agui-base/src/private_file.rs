//! Files that only the user of the process can read, because they contain conversations.

use std::{
    fs::{DirBuilder, OpenOptions},
    io,
    path::Path,
};

/// Returns the options for a file that is created if it does not exist; its mode is then 0600.
pub fn private_file_options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.create(true);
    restrict_file(&mut options);
    options
}

/// Creates a folder with its parents; the mode of new ones is 0700.
pub fn create_private_folder(path: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    restrict_folder(&mut builder);
    builder.create(path)
}

#[cfg(unix)]
fn restrict_file(options: &mut OpenOptions) {
    std::os::unix::fs::OpenOptionsExt::mode(options, 0o600);
}

#[cfg(unix)]
fn restrict_folder(builder: &mut DirBuilder) {
    std::os::unix::fs::DirBuilderExt::mode(builder, 0o700);
}

#[cfg(not(unix))]
fn restrict_file(_: &mut OpenOptions) {}

#[cfg(not(unix))]
fn restrict_folder(_: &mut DirBuilder) {}
