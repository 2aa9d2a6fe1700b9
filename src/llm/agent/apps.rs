//! Requests of the pages of MCP servers.

use std::sync::Arc;

use serde_json::Value;

use super::{calls::within_limit, settings::Settings};
use crate::{
    agent::{AppRequest, RunContext},
    protocol::{RunAgentInput, ToolCallId},
    tools::ToolContext,
};

/// Returns the answer to a request, or the reason for the refusal.
pub(super) async fn answer(settings: Arc<Settings>, input: RunAgentInput, cx: RunContext) -> Result<Value, String> {
    let request = AppRequest::of_input(&input).ok_or("it is malformed")?;
    settings.tools.ready().await;
    let cx = ToolContext::new(cx, input.state_or_empty(), ToolCallId::random(), &*request.method);
    match within_limit(settings.tool_timeout, &cx, settings.tools.answer_app(&request, &cx)).await {
        Some(answer) => answer.map_err(|error| format!("{error:?}")),
        None => Err("it took too long".to_owned()),
    }
}
