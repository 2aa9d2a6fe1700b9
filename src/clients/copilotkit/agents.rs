//! Finds the agent that a request names. `default` is the server's default agent, unless an agent has that name.

use crate::http::{ApiError, ApiResult, App};
use agui_agent::host::AgentEntry;

/// The name that CopilotKit sends for a page that names no agent.
pub(super) const DEFAULT_AGENT: &str = "default";

pub(super) fn find_agent(app: &App, name: &str) -> ApiResult<AgentEntry> {
    let named = app.runs.agent(Some(name));
    let found = named.or_else(|| app.runs.agent(None).filter(|_| name == DEFAULT_AGENT));
    found.ok_or_else(|| ApiError::unknown_agent(name, app.agents(None)))
}
