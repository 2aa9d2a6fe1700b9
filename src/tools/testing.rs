//! The surroundings of calls in tests of tools.

use serde_json::json;

use super::context::ToolContext;
use crate::agent::RunContext;

impl ToolContext {
    /// The surroundings of a call in a test: thread `t`, run `r`, call `c`, no principal, the state `{}`.
    pub fn for_test(tool: impl Into<String>) -> Self {
        Self::new(RunContext::new("t", "r", "test"), json!({}), "c", tool)
    }
}
