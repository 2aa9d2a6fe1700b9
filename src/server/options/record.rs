//! Checks of the section `[record]`.

use super::{diagnose::ConfigError, origin::Origin};
use crate::{observe::recordings::RecordOptions, upstream::secret_names::is_secret_header};

pub(super) fn check(record: &RecordOptions, origin: &Origin) -> Result<(), ConfigError> {
    for name in &record.headers {
        let is_name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_".contains(c);
        if name.is_empty() || !name.chars().all(is_name) {
            let message = format!("{name:?} is not the name of a header in lower case");
            return Err(origin.error(&["record", "headers"], &message));
        }
        if is_secret_header(name) {
            let message = format!("{name:?} looks like a header with credentials, which are not recorded");
            return Err(origin.error(&["record", "headers"], &message));
        }
    }
    Ok(())
}
