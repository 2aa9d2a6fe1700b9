//! The events of a run as chunks of a UI message stream.
//!
//! A page holds what a run makes as the parts of one message, divided into steps. Each request to a
//! model is a step: a page that finds a call with its output in the last step takes the turn for its
//! own, and sends the messages again.

mod chunk;
mod end;
mod snapshot;

use std::collections::{HashMap, HashSet};

use serde_json::{Value, json};

use super::{
    page_message::PageMessage,
    part::{file, has_failed, input, is_hidden_activity, output, own_metadata, sources},
};
use agui_protocol::{
    Event, FunctionCall, JsonObject, Message, MessageContent, MessageId, RunId, ToolCallId,
    encode::SseDialect,
    event::TextMessageRole,
    own_names::{FILE, RUN_CONTINUED},
    patch::apply,
};
use agui_store::host::json_len;
use chunk::{write, write_delta, write_transient};

/// The largest activity that is written again with each of its changes. Larger ones are written
/// again at the end of the run, so that a stream is not much longer than its events.
const MAX_REPEATED_BYTES: u64 = 8 * 1024;

/// Writes the events of one run.
#[derive(Debug, Default)]
pub(crate) struct AiSdkEncoder {
    run_id: RunId,
    /// The id of the page's message. Without one, it is the id of the first stored message.
    message_id: Option<MessageId>,
    has_begun: bool,
    /// Tools that the page runs.
    page_tools: HashSet<String>,
    /// Calls that the person has declined with the request.
    declined: HashSet<ToolCallId>,
    /// Parts that stand for interrupts, with the person's decision.
    decided: Vec<(ToolCallId, bool)>,
    /// Stored messages, activities too, that the page's message shows.
    messages: HashSet<MessageId>,
    /// Calls that it shows, and those that have an output.
    calls: HashMap<ToolCallId, PageCall>,
    outputs: HashSet<ToolCallId>,
    /// Calls without a result that the page's earlier messages show.
    earlier_calls: HashMap<ToolCallId, FunctionCall>,
    open_messages: HashSet<MessageId>,
    /// The types and contents of activities.
    activities: HashMap<MessageId, (String, Value)>,
    /// Activities whose last changes are not written.
    unwritten: HashSet<MessageId>,
    step: Step,
    /// True from the continuation of a lost run until the next snapshot: the page may show an answer
    /// that was cut off.
    is_continued: bool,
}

#[derive(Debug)]
struct PageCall {
    function: FunctionCall,
    step: usize,
}

/// The step that is open, or was open last.
#[derive(Debug, Default)]
struct Step {
    /// From 1. The page's message had step 0 before the run.
    number: usize,
    is_open: bool,
    has_output: bool,
    messages: Vec<MessageId>,
    calls: Vec<ToolCallId>,
}

/// The last message of a page, to which a run adds its parts.
#[derive(Debug)]
pub(super) struct ContinuedMessage {
    id: MessageId,
    messages: HashSet<MessageId>,
    calls: HashMap<ToolCallId, FunctionCall>,
    outputs: HashSet<ToolCallId>,
    declined: HashSet<ToolCallId>,
    decided: Vec<(ToolCallId, bool)>,
}

impl ContinuedMessage {
    /// `stored` are the stored messages that the message stands for.
    pub(super) fn new(message: &PageMessage, stored: &[Message]) -> Self {
        let calls = stored.iter().flat_map(Message::tool_calls);
        let calls: HashMap<_, _> =
            calls.map(|call| (call.id.clone(), call.function.clone())).collect();
        let parts = || message.parts.iter().filter_map(|part| Some((part, part.call()?.0)));
        let with_output = parts().filter(|(part, _)| part.has_output());
        let decided = parts().filter_map(|(part, call)| Some((call.clone(), part.decision()?.1)));
        let (declined, others): (Vec<_>, Vec<_>) =
            decided.partition(|(call, approved)| !approved && calls.contains_key(call));
        let messages = stored.iter().map(|message| message.id().clone());
        Self {
            id: message.id.clone(),
            messages: messages.chain(message.activities()).collect(),
            outputs: with_output.map(|(_, call)| call.clone()).collect(),
            declined: declined.into_iter().map(|(call, _)| call).collect(),
            decided: others.into_iter().filter(|(call, _)| !calls.contains_key(call)).collect(),
            calls,
        }
    }
}

impl SseDialect for AiSdkEncoder {
    fn event(&mut self, event: &Event, out: &mut Vec<u8>) {
        match event {
            Event::RunStarted(e) => self.run_id = e.run_id.clone(),
            Event::StepStarted(e) if e.subagent_run_id.is_none() => self.end_step(out),
            Event::TextMessageStart(e)
                if e.role.is_none_or(|role| role == TextMessageRole::Assistant) =>
            {
                self.begin_message("text", &e.message_id, out);
            }
            Event::TextMessageContent(e) => self.delta("text", &e.message_id, &e.delta, out),
            Event::TextMessageEnd(e) => {
                self.end_message("text", &e.message_id, e.base.metadata(), out);
            }
            Event::ReasoningMessageStart(e) => self.begin_message("reasoning", &e.message_id, out),
            Event::ReasoningMessageContent(e) => {
                self.delta("reasoning", &e.message_id, &e.delta, out);
            }
            Event::ReasoningMessageEnd(e) => {
                self.end_message("reasoning", &e.message_id, None, out)
            }
            Event::ToolCallStart(e) => {
                let message = e.parent_message_id.clone();
                let message = message.unwrap_or_else(|| e.tool_call_id.as_str().into());
                let function =
                    FunctionCall { name: e.tool_call_name.clone(), arguments: String::new() };
                self.begin_call(&message, &e.tool_call_id, function, out);
                let mut chunk = json!({
                    "type": "tool-input-start", "toolCallId": e.tool_call_id,
                    "toolName": e.tool_call_name, "providerMetadata": own_metadata(&message),
                });
                self.mark_own_tool(&mut chunk, &e.tool_call_name);
                write(&chunk, out);
            }
            Event::ToolCallArgs(e) => {
                let Some(call) = self.calls.get_mut(&e.tool_call_id) else { return };
                call.function.arguments.push_str(&e.delta);
                let member = ("inputTextDelta", e.delta.as_str());
                write_delta("tool-input-delta", ("toolCallId", &e.tool_call_id), member, out);
            }
            Event::ToolCallEnd(e) => self.input(&e.tool_call_id, None, out),
            Event::ToolCallResult(e) => {
                let has_failed = has_failed(e.base.metadata());
                self.output(&e.tool_call_id, &e.content, has_failed, out);
            }
            Event::ActivitySnapshot(e)
                if e.replace != Some(false) || !self.activities.contains_key(&e.message_id) =>
            {
                self.activity(&e.message_id, &e.activity_type, &e.content, out);
            }
            Event::ActivityDelta(e) => {
                let Some((_, content)) = self.activities.get_mut(&e.message_id) else { return };
                if apply(content, &e.patch).is_err() {
                    return;
                }
                // The length of an activity that has grown too large is not counted again.
                if self.unwritten.contains(&e.message_id) || json_len(content) > MAX_REPEATED_BYTES
                {
                    self.unwritten.insert(e.message_id.clone());
                } else {
                    self.write_activity(&e.message_id, out);
                }
            }
            Event::StateSnapshot(e) => write_transient("state", &e.snapshot, out),
            Event::StateDelta(e) => write_transient("state-delta", &json!(e.delta), out),
            Event::Custom(e) => {
                self.is_continued |= e.name == RUN_CONTINUED;
                write_transient(&e.name, &e.value, out);
            }
            Event::MessagesSnapshot(e) => self.snapshot(&e.messages, out),
            Event::RunFinished(e) => self.finish(e, out),
            Event::RunError(e) => self.fail(e, out),
            _ => {}
        }
    }
}

/// The message, its steps, and its parts.
impl AiSdkEncoder {
    pub(super) fn new(page_tools: impl IntoIterator<Item = String>) -> Self {
        Self { page_tools: page_tools.into_iter().collect(), ..Self::default() }
    }

    /// The run adds its parts to a message that the page shows.
    pub(super) fn continuing(self, message: ContinuedMessage) -> Self {
        let ContinuedMessage { id, messages, calls, outputs, declined, decided } = message;
        let shown = calls.into_iter().map(|(id, function)| (id, PageCall { function, step: 0 }));
        let calls = shown.collect();
        Self { message_id: Some(id), messages, calls, outputs, declined, decided, ..self }
    }

    /// Begins the message, if it has not begun. `first` is its first stored message.
    fn begin(&mut self, first: Option<&MessageId>, out: &mut Vec<u8>) {
        if std::mem::replace(&mut self.has_begun, true) {
            return;
        }
        let of_run = || self.run_id.as_str().into();
        let id = self.message_id.clone().or_else(|| first.cloned()).unwrap_or_else(of_run);
        write(&json!({ "type": "start", "messageId": id }), out);
        for (call, approved) in std::mem::take(&mut self.decided) {
            let chunk = if approved {
                let output = json!({ "approved": true });
                json!({ "type": "tool-output-available", "toolCallId": call, "output": output })
            } else {
                json!({ "type": "tool-output-denied", "toolCallId": call })
            };
            write(&chunk, out);
        }
    }

    /// Begins a part of a stored message, in a new step if the open one has an output: it answers
    /// that.
    fn begin_part(&mut self, message: &MessageId, out: &mut Vec<u8>) {
        self.begin(Some(message), out);
        if self.step.has_output {
            self.end_step(out);
        }
        if !self.step.is_open {
            let number = self.step.number + 1;
            self.step = Step { number, is_open: true, ..Step::default() };
            write(&json!({ "type": "start-step" }), out);
        }
        self.messages.insert(message.clone());
        self.step.messages.push(message.clone());
    }

    fn end_step(&mut self, out: &mut Vec<u8>) {
        self.step.has_output = false;
        if std::mem::replace(&mut self.step.is_open, false) {
            write(&json!({ "type": "finish-step" }), out);
        }
    }

    fn begin_message(&mut self, kind: &str, id: &MessageId, out: &mut Vec<u8>) {
        self.begin_part(id, out);
        self.open_messages.insert(id.clone());
        let metadata = own_metadata(id);
        let kind = format!("{kind}-start");
        write(&json!({ "type": kind, "id": id, "providerMetadata": metadata }), out);
    }

    fn delta(&mut self, kind: &str, id: &MessageId, text: &str, out: &mut Vec<u8>) {
        if self.open_messages.contains(id) {
            let kind = if kind == "text" { "text-delta" } else { "reasoning-delta" };
            write_delta(kind, ("id", id), ("delta", text), out);
        }
    }

    fn end_message(
        &mut self,
        kind: &str,
        id: &MessageId,
        metadata: Option<&JsonObject>,
        out: &mut Vec<u8>,
    ) {
        if self.open_messages.remove(id) {
            write(&json!({ "type": format!("{kind}-end"), "id": id }), out);
            sources(id, metadata).iter().for_each(|source| write(source, out));
        }
    }

    /// Begins a part for a call of a stored message.
    fn begin_call(
        &mut self,
        message: &MessageId,
        call: &ToolCallId,
        function: FunctionCall,
        out: &mut Vec<u8>,
    ) {
        self.begin_part(message, out);
        self.step.calls.push(call.clone());
        self.calls.insert(call.clone(), PageCall { function, step: self.step.number });
    }

    /// The page leaves calls alone whose tools it has not offered.
    fn mark_own_tool(&self, chunk: &mut Value, tool: &str) {
        if !self.page_tools.contains(tool) {
            chunk["providerExecuted"] = true.into();
        }
    }

    /// Writes the whole input of a call. `message` is the stored one, if the part begins with it.
    fn input(&mut self, id: &ToolCallId, message: Option<&MessageId>, out: &mut Vec<u8>) {
        let Some(PageCall { function, .. }) = self.calls.get(id) else { return };
        let mut chunk = match input(&function.arguments) {
            Ok(input) => json!({ "type": "tool-input-available", "input": input }),
            Err(text) => json!({
                "type": "tool-input-error", "input": text,
                "errorText": "The arguments of the call are not JSON.",
            }),
        };
        chunk["toolCallId"] = json!(id);
        chunk["toolName"] = json!(function.name);
        if let Some(message) = message {
            chunk["providerMetadata"] = own_metadata(message);
        }
        self.mark_own_tool(&mut chunk, &function.name);
        write(&chunk, out);
    }

    fn output(
        &mut self,
        call: &ToolCallId,
        content: &MessageContent,
        has_failed: bool,
        out: &mut Vec<u8>,
    ) {
        match self.calls.get(call) {
            Some(shown) => self.step.has_output |= shown.step == self.step.number,
            // The page shows the call in an earlier message, which this stream cannot change.
            None => {
                let Some(function) = self.earlier_calls.remove(call) else { return };
                let message = MessageId::from(call.as_str());
                self.begin_call(&message, call, function, out);
                self.input(call, Some(&message), out);
                self.step.has_output = true;
            }
        }
        let message = call.as_str().into();
        self.begin(Some(&message), out);
        self.outputs.insert(call.clone());
        let chunk = if self.declined.remove(call) {
            json!({ "type": "tool-output-denied", "toolCallId": call })
        } else if has_failed {
            let text = content.text();
            json!({ "type": "tool-output-error", "toolCallId": call, "errorText": text })
        } else {
            let output = output(content);
            json!({ "type": "tool-output-available", "toolCallId": call, "output": output })
        };
        write(&chunk, out);
    }

    fn activity(
        &mut self,
        id: &MessageId,
        activity_type: &str,
        content: &JsonObject,
        out: &mut Vec<u8>,
    ) {
        if is_hidden_activity(activity_type) {
            return;
        }
        self.begin_part(id, out);
        if activity_type == FILE {
            if let Some(mut chunk) = file(content) {
                chunk["providerMetadata"] = own_metadata(id);
                write(&chunk, out);
            }
            return;
        }
        let content = (activity_type.to_owned(), Value::Object(content.clone()));
        self.activities.insert(id.clone(), content);
        self.write_activity(id, out);
    }

    fn write_activity(&mut self, id: &MessageId, out: &mut Vec<u8>) {
        self.unwritten.remove(id);
        if let Some((kind, content)) = self.activities.get(id) {
            write(&json!({ "type": format!("data-{kind}"), "id": id, "data": content }), out);
        }
    }
}
