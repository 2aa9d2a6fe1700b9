//! Messages that only agents make, but that a client sent: calls, results and summaries.
//!
//! The model sees the conversation that the client shows, calls included. But a call that no run
//! made never runs and never asks for approval, and a client's result for a call to one of the
//! server's tools does not count.

use std::collections::HashSet;

use super::catalog::{ToolCatalog, ToolOwner};
use crate::history::summary::is_summary;
use agui_agent::{RunContext, surfaces::a2ui::CLICK};
use agui_protocol::{Message, ToolCallId};

/// Removes the client's results of calls to the server's tools, its summaries, and its clicks.
pub(super) fn drop_unverified(messages: &mut Vec<Message>, catalog: &ToolCatalog, cx: &RunContext) {
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
        let is_unverified = match message {
            Message::Tool(result) => {
                let call = &result.tool_call_id;
                (calls.contains(call) || clicks.contains(call)) && cx.is_from_client(&result.id)
            }
            Message::Assistant(_) => {
                message.tool_calls().iter().any(|call| clicks.contains(&call.id))
            }
            other => is_summary(other) && cx.is_from_client(other.id()),
        };
        if is_unverified {
            tracing::warn!(
                message_id = message.id().as_str(),
                "left out a result or a summary that the client wrote in place of the server"
            );
        }
        !is_unverified
    });
}

/// Returns the messages without the client's assistant messages.
pub(super) fn made_by_runs<'m>(
    messages: &'m [Message],
    cx: &RunContext,
) -> impl Iterator<Item = &'m Message> + Clone {
    let is_unverified = |message: &&Message| {
        matches!(message, Message::Assistant(_)) && cx.is_from_client(message.id())
    };
    messages.iter().filter(move |message| !is_unverified(message))
}
