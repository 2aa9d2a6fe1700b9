//! Calls, results and summaries that a client wrote, and no run of this server.
//!
//! The model sees the conversation that the client shows, calls included. But a call that no run made is never run and never
//! asked about, and a result that a client wrote for a call to one of the server's tools does not count.

use std::collections::HashSet;

use super::catalog::{ToolCatalog, ToolOwner};
use crate::history::summary::is_summary;
use agui_agent::{RunContext, surfaces::a2ui::CLICK};
use agui_protocol::{Message, ToolCallId};

/// Leaves out the client's results of calls to the server's tools, its summaries, and clicks that no run had.
pub(super) fn remove_claims(messages: &mut Vec<Message>, catalog: &ToolCatalog, cx: &RunContext) {
    if !cx.has_client_messages() {
        return;
    }
    let calls: HashSet<ToolCallId> = made_by_runs(messages, cx)
        .flat_map(Message::tool_calls)
        .filter(|call| {
            !matches!(catalog.owner(&call.function.name), Some(ToolOwner::Application) | None)
        })
        .map(|call| call.id.clone())
        .collect();
    let clicks: HashSet<ToolCallId> = {
        let by_client = messages.iter().filter(|message| cx.is_from_client(message.id()));
        let clicks =
            by_client.flat_map(Message::tool_calls).filter(|call| call.function.name == CLICK);
        clicks.map(|call| call.id.clone()).collect()
    };
    messages.retain(|message| {
        let is_claim = match message {
            Message::Tool(result) => {
                let call = &result.tool_call_id;
                (calls.contains(call) || clicks.contains(call)) && cx.is_from_client(&result.id)
            }
            Message::Assistant(_) => {
                message.tool_calls().iter().any(|call| clicks.contains(&call.id))
            }
            other => is_summary(other) && cx.is_from_client(other.id()),
        };
        if is_claim {
            tracing::warn!(
                message_id = message.id().as_str(),
                "left out a result or a summary that the client wrote in place of the server"
            );
        }
        !is_claim
    });
}

/// Returns the messages without the client's assistant messages.
pub(super) fn made_by_runs<'m>(
    messages: &'m [Message],
    cx: &RunContext,
) -> impl Iterator<Item = &'m Message> + Clone {
    let is_claim = |message: &&Message| {
        matches!(message, Message::Assistant(_)) && cx.is_from_client(message.id())
    };
    messages.iter().filter(move |message| !is_claim(message))
}
