//! Checks of the section `[record]`.

use super::{diagnose::ConfigError, origin::Origin};
use crate::recording::RecordOptions;

/// Parts of the names of headers with credentials.
const CREDENTIALS: &[&str] =
    &["auth", "cookie", "key", "token", "secret", "password", "credential", "session", "signature"];

pub(super) fn check(record: &RecordOptions, origin: &Origin) -> Result<(), ConfigError> {
    for name in &record.headers {
        let is_name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_".contains(c);
        if name.is_empty() || !name.chars().all(is_name) {
            let message = format!("{name:?} is not the name of a header in lower case");
            return Err(origin.error(&["record", "headers"], &message));
        }
        if CREDENTIALS.iter().any(|part| name.contains(part)) {
            let message = format!("{name:?} looks like a header with credentials, which are not recorded");
            return Err(origin.error(&["record", "headers"], &message));
        }
    }
    for (option, is_zero) in [
        ("max_file_bytes", record.max_file_bytes == 0),
        ("max_files", record.max_files == 0),
        ("max_folder_bytes", record.max_folder_bytes == 0),
    ] {
        if is_zero {
            return Err(origin.error(&["record", option], "at least 1 is needed"));
        }
    }
    Ok(())
}
