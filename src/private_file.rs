//! Files that only the user of the process can read, because they have conversations.

use std::fs::OpenOptions;

/// Returns the options for a file that is created if it does not exist; its mode is then 0600.
pub(crate) fn private_file_options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.create(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}
