//! Other servers that the agents use, as `GET /readyz` reports them.

use std::sync::Arc;

/// Another server that agents use.
#[derive(Debug)]
pub(crate) struct Dependency {
    /// The kind and the name, such as `mcp:files`.
    pub(crate) name: String,
    pub(crate) is_available: bool,
    /// True if this server is not ready without it.
    pub(crate) is_required: bool,
}

/// Returns the current state of all dependencies.
pub(crate) type Dependencies = Arc<dyn Fn() -> Vec<Dependency> + Send + Sync>;
