//! The surroundings of calls in tests of tools.

use serde_json::json;

use super::context::ToolContext;
use crate::agent::{RunContext, RunIdentity};

impl ToolContext {
    /// The surroundings of a call in a test: thread `t`, run `r`, call `c`, no principal, the state `{}`.
    pub fn for_test(tool: impl Into<String>) -> Self {
        let identity = RunIdentity { thread_id: "t".into(), run_id: "r".into(), agent: "test".into(), principal: None };
        Self::new(RunContext::new(identity), json!({}), "c", tool)
    }
}
