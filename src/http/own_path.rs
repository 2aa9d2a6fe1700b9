//! Paths that a configuration or a program adds to those of the server.

use std::sync::Arc;

/// The first segments of the server's own paths.
const RESERVED_SEGMENTS: [&str; 13] = [
    "send-message",
    "agents",
    "agent",
    "threads",
    "files",
    "accounts",
    "connections",
    "healthz",
    "readyz",
    "metrics",
    "openapi.json",
    "playground",
    "v1",
];

/// Checks a path that a configuration adds.
///
/// # Errors
/// Returns the rule that the path breaks.
pub(crate) fn check_own_path(path: &str) -> Result<(), &'static str> {
    let Some(path) = path.strip_prefix('/') else {
        return Err("the path must begin with a slash, as \"/api/chat\" does");
    };
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || "-_.~".contains(c);
    let mut segments = path.split('/');
    if segments
        .clone()
        .any(|segment| segment.trim_matches('.').is_empty() || !segment.chars().all(is_allowed))
    {
        return Err(
            "the path must consist of letters, digits, - _ . ~ and slashes, as \"/api/chat\" does, and must not \
                    end with a slash",
        );
    }
    if segments.next().is_some_and(|first| RESERVED_SEGMENTS.contains(&first)) {
        return Err("the path is taken by routes of the server; choose another one");
    }
    Ok(())
}

/// A path of its own for an agent, in addition to `/agents/{agent}/send-message`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AgentPath {
    /// The path, in the syntax of axum's routes.
    pub(crate) path: String,
    /// The agent's name.
    pub(crate) agent: Arc<str>,
}
