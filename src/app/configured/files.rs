//! Options of agents that are in files of their own.

use std::path::Path;

use crate::config::{ConfigError, Origin};

/// Reads the file that an agent's option names, without white space around its text.
///
/// # Errors
/// If the file cannot be read or is empty. The error names the file.
pub(super) fn read_file(agent: &str, option: &str, path: &Path, origin: &Origin) -> Result<String, ConfigError> {
    let path = origin.resolve(path);
    let fault =
        |problem: String| origin.error(&["agents", agent, option], &format!("the file {} {problem}", path.display()));
    let text = std::fs::read_to_string(&path).map_err(|error| fault(format!("cannot be read: {error}")))?;
    match text.trim() {
        "" => Err(fault("is empty".to_owned())),
        text => Ok(text.to_owned()),
    }
}
