//! The conversation that a workspace belongs to.

use serde::{Deserialize, Serialize};

use crate::protocol::ThreadId;

/// The conversation of a workspace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct WorkspaceOwner {
    /// The id of the principal; `None` on a server without authentication.
    pub(crate) principal: Option<String>,
    /// The thread's id.
    pub(crate) thread: ThreadId,
}
