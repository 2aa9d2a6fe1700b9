//! Answers that the provider pauses while its own tools run, continued as one answer.
//!
//! The paused content is sent back unchanged, and the model continues
//! (<https://platform.claude.com/docs/en/agents-and-tools/tool-use/server-tools>).

use std::sync::Arc;

use futures::StreamExt as _;
use serde_json::{Value, json};

use super::decoder::{MessageDecoder, PausedContent};
use crate::{
    CallTrace, ModelEvent, ModelStream, StopReason,
    transport::{ProviderRequest, Transport},
};
use agui_protocol::TokenUsage;

/// An answer that is paused more often ends with the stop reason of a reached limit.
const MAX_CONTINUATIONS: usize = 10;

/// Sends a request that offers tools of the provider.
pub(super) fn stream(
    transport: Arc<Transport>,
    model: String,
    mut request: ProviderRequest,
    trace: CallTrace,
) -> ModelStream {
    Box::pin(async_stream::stream! {
        let mut earlier = TokenUsage::default();
        for continuation in 0.. {
            let paused = PausedContent::default();
            let decoder = {
                let (model, paused) = (model.clone(), paused.clone());
                move || MessageDecoder::new(&model).recording(paused.clone())
            };
            let mut events = transport.stream(&request, trace.clone(), decoder);
            let (mut next_block, mut usage) = (request.first_block, TokenUsage::default());
            while let Some(event) = events.next().await {
                if let Ok(ModelEvent::Start { index, .. }) = &event {
                    next_block = index + 1;
                }
                let event = match event {
                    Ok(ModelEvent::Stop(_)) if paused.get().is_some() => continue,
                    Ok(ModelEvent::Usage(request_usage)) => {
                        usage = request_usage;
                        let mut total = earlier.clone();
                        total.add(&usage);
                        (total.provider, total.model) = (usage.provider.clone(), usage.model.clone());
                        Ok(ModelEvent::Usage(total))
                    }
                    event => event,
                };
                yield event;
            }
            let Some(content) = paused.get() else { return };
            if continuation == MAX_CONTINUATIONS {
                tracing::warn!(model, "the provider paused an answer more than {MAX_CONTINUATIONS} times; it ends here");
                yield Ok(ModelEvent::Stop(StopReason::Length));
                return;
            }
            request.skipped.clear();
            continue_with(&mut request.json, content);
            earlier.add(&usage);
            request.first_block = next_block;
        }
    })
}

/// Adds the paused content to the request. If a continued answer is paused again, both parts are
/// one message.
fn continue_with(body: &mut Value, content: &[Value]) {
    let Some(messages) = body.get_mut("messages").and_then(Value::as_array_mut) else { return };
    match messages.last_mut() {
        Some(last) if last["role"] == "assistant" => {
            if let Some(earlier) = last["content"].as_array_mut() {
                earlier.extend_from_slice(content);
            }
        }
        _ => messages.push(json!({"role": "assistant", "content": content})),
    }
}
