//! Shows the events of runs.
//!
//! Texts of the agent are the answer. Everything else is a note: reasoning, calls with arguments and results, changes
//! of the state, and texts of subagents. Texts may interleave in a stream; they are shown one after the other, in the
//! order of their starts, the first open one as it comes.

use std::{collections::VecDeque, io};

use serde_json::Value;

use super::{
    attach::handed_over,
    console::{Console, Style},
};
use crate::server::cli::printable::{excerpt, printable_line};
use agui_protocol::{
    AssistantMessage, Event, Message, MessageContent, MessageId, Messages, PatchOperation,
    ToolCall, ToolCallId,
    event::{MessagesSnapshot, TextMessageRole},
    own_names::FILE,
};
use agui_run::Transcript;

/// Longer results and states are cut.
const MAX_SHOWN_CHARS: usize = 2000;

/// The texts of a run that are being shown.
#[derive(Default)]
pub(super) struct View {
    /// The first one is on the screen as far as it has come.
    texts: VecDeque<ShownText>,
}

struct ShownText {
    id: MessageId,
    stream: TextStream,
    is_answer: bool,
    /// The end of the text, which is not shown yet.
    unshown: String,
    has_begun: bool,
    has_ended: bool,
}

/// The two kinds of texts, whose ids are independent of each other. A text is the answer, or has another author, such as a
/// subagent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TextStream {
    Text,
    Reasoning,
}

impl View {
    /// Shows an event. `transcript` is the conversation before it.
    pub(super) fn show(
        &mut self,
        event: &Event,
        transcript: &Transcript,
        console: &mut Console,
    ) -> io::Result<()> {
        match event {
            Event::TextMessageStart(start) => {
                let is_assistant = start.role.unwrap_or_default() == TextMessageRole::Assistant;
                let is_answer = is_assistant && start.subagent_run_id.is_none();
                self.open(&start.message_id, TextStream::Text, is_answer);
            }
            Event::TextMessageContent(content) => {
                self.append(&content.message_id, TextStream::Text, &content.delta)
            }
            Event::TextMessageEnd(end) => self.end(&end.message_id, TextStream::Text),
            Event::ReasoningMessageStart(start) => {
                self.open(&start.message_id, TextStream::Reasoning, false)
            }
            Event::ReasoningMessageContent(content) => {
                self.append(&content.message_id, TextStream::Reasoning, &content.delta);
            }
            Event::ReasoningMessageEnd(end) => self.end(&end.message_id, TextStream::Reasoning),
            Event::ToolCallEnd(end) => {
                if let Some(call) = find_call(&transcript.messages(), &end.tool_call_id) {
                    console.note(Style::Dim, &format!("call {}", call_text(call)));
                }
            }
            Event::ToolCallResult(result) => {
                show_result(&result.tool_call_id, &result.content, &transcript.messages(), console);
            }
            Event::MessagesSnapshot(snapshot) => show_new_messages(snapshot, transcript, console)?,
            _ => other_lines(event, transcript)
                .iter()
                .for_each(|line| console.note(Style::Dim, line)),
        }
        self.advance(console)
    }

    /// Shows the rest of a run's texts.
    pub(super) fn finish(&mut self, console: &mut Console) -> io::Result<()> {
        self.texts.iter_mut().for_each(|text| text.has_ended = true);
        self.advance(console)?;
        console.end_answer()
    }

    fn open(&mut self, id: &MessageId, stream: TextStream, is_answer: bool) {
        let (id, unshown) = (id.clone(), String::new());
        self.texts.push_back(ShownText {
            id,
            stream,
            is_answer,
            unshown,
            has_begun: false,
            has_ended: false,
        });
    }

    fn find(&mut self, id: &MessageId, stream: TextStream) -> Option<&mut ShownText> {
        self.texts
            .iter_mut()
            .find(|text| text.id == *id && text.stream == stream && !text.has_ended)
    }

    fn append(&mut self, id: &MessageId, stream: TextStream, delta: &str) {
        if let Some(text) = self.find(id, stream) {
            text.unshown.push_str(delta);
        }
    }

    fn end(&mut self, id: &MessageId, stream: TextStream) {
        if let Some(text) = self.find(id, stream) {
            text.has_ended = true;
        }
    }

    fn advance(&mut self, console: &mut Console) -> io::Result<()> {
        while let Some(text) = self.texts.front_mut() {
            let unshown = std::mem::take(&mut text.unshown);
            if !unshown.is_empty() {
                let is_first = !std::mem::replace(&mut text.has_begun, true);
                match text.stream {
                    _ if text.is_answer => console.answer(&unshown)?,
                    _ if !is_first => console.append_note(&unshown),
                    TextStream::Text => console.append_note(&format!("text: {unshown}")),
                    TextStream::Reasoning => console.append_note(&format!("thinking: {unshown}")),
                }
            }
            if !text.has_ended {
                break;
            }
            if text.is_answer {
                console.end_answer()?
            } else {
                console.end_note()
            }
            self.texts.pop_front();
        }
        Ok(())
    }
}

/// Shows the messages of a thread that is continued.
pub(super) fn show_history(messages: &Messages, console: &mut Console) -> io::Result<()> {
    for message in messages.iter() {
        match message {
            Message::User(user) => console.note(Style::Bold, &format!("> {}", user.content.text())),
            Message::Activity(activity) => activity
                .file()
                .into_iter()
                .for_each(|file| console.note(Style::Dim, &handed_over(file))),
            Message::Assistant(answer) => show_message(answer, console)?,
            Message::Tool(result) => {
                show_result(&result.tool_call_id, &result.content, messages, console)
            }
            _ => {}
        }
    }
    Ok(())
}

/// Shows an answer and its calls.
fn show_message(message: &AssistantMessage, console: &mut Console) -> io::Result<()> {
    if message.subagent_run_id.is_none()
        && let Some(text) = &message.content
    {
        console.answer(text)?;
        console.end_answer()?;
    }
    message
        .tool_calls()
        .iter()
        .for_each(|call| console.note(Style::Dim, &format!("call {}", call_text(call))));
    Ok(())
}

fn show_result(
    call: &ToolCallId,
    content: &MessageContent,
    messages: &Messages,
    console: &mut Console,
) {
    let name = find_call(messages, call).map_or("a call", |call| &call.function.name);
    let text = excerpt(&content.text(), MAX_SHOWN_CHARS);
    console.note(Style::Dim, &format!("result of {}: {text}", printable_line(name)));
}

/// Shows the answers that were not streamed: some agents send them in a snapshot only.
fn show_new_messages(
    snapshot: &MessagesSnapshot,
    transcript: &Transcript,
    console: &mut Console,
) -> io::Result<()> {
    let known = transcript.messages();
    let begin = snapshot.messages.iter().rposition(|message| matches!(message, Message::User(_)));
    for message in snapshot.messages.iter().skip(begin.map_or(0, |position| position + 1)) {
        if let Message::Assistant(answer) = message
            && known.position(message.id()).is_none()
        {
            show_message(answer, console)?;
        }
    }
    Ok(())
}

pub(super) fn find_call<'m>(messages: &'m Messages, id: &ToolCallId) -> Option<&'m ToolCall> {
    messages.get(messages.call_position(id)?)?.tool_calls().iter().find(|call| call.id == *id)
}

/// Returns a call as it is shown, with all of its arguments.
pub(super) fn call_text(call: &ToolCall) -> String {
    let arguments = match call.function.arguments.trim() {
        "" => "{}".to_owned(),
        arguments => printable_line(arguments),
    };
    format!("{} {arguments}", printable_line(&call.function.name))
}

fn other_lines(event: &Event, transcript: &Transcript) -> Vec<String> {
    match event {
        Event::StateSnapshot(snapshot) if snapshot.snapshot == *transcript.state() => Vec::new(),
        Event::StateSnapshot(snapshot) => vec![format!("state: {}", json_text(&snapshot.snapshot))],
        Event::StateDelta(delta) => {
            delta.delta.iter().map(|operation| operation_text("state", operation)).collect()
        }
        Event::ActivitySnapshot(activity) if activity.activity_type == FILE => {
            vec![handed_over(&activity.content)]
        }
        Event::ActivitySnapshot(activity) => {
            let content = json_text(&Value::Object(activity.content.clone()));
            vec![format!("activity {}: {content}", printable_line(&activity.activity_type))]
        }
        Event::ActivityDelta(activity) => {
            let name = format!("activity {}", printable_line(&activity.activity_type));
            activity.patch.iter().map(|operation| operation_text(&name, operation)).collect()
        }
        Event::StepStarted(step) => {
            let name = printable_line(&step.step_name);
            vec![if name.starts_with("step") { name } else { format!("step {name}") }]
        }
        Event::SubagentStarted(subagent) => {
            vec![format!("subagent {} begins", printable_line(&subagent.name))]
        }
        Event::SubagentError(error) => {
            vec![format!("a subagent failed: {}", excerpt(&error.message, MAX_SHOWN_CHARS))]
        }
        Event::Custom(custom) => {
            vec![format!("custom {}: {}", printable_line(&custom.name), json_text(&custom.value))]
        }
        _ => Vec::new(),
    }
}

fn operation_text(name: &str, operation: &PatchOperation) -> String {
    let operation = serde_json::to_value(&operation.kind).unwrap_or_default();
    let member = |name: &str| {
        operation.get(name).and_then(Value::as_str).map(printable_line).unwrap_or_default()
    };
    let mut text = format!("{name}: {} {}", member("op"), member("path"));
    if let Some(value) = operation.get("value") {
        text.push_str(&format!(" = {}", json_text(value)));
    } else if operation.get("from").is_some() {
        text.push_str(&format!(" from {}", member("from")));
    }
    text
}

fn json_text(value: &Value) -> String {
    excerpt(&value.to_string(), MAX_SHOWN_CHARS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use agui_protocol::RunAgentInput;

    #[test]
    fn a_step_is_called_one_once() {
        for (name, line) in [("step 1", "step 1"), ("search", "step search")] {
            let event = serde_json::json!({ "type": "STEP_STARTED", "stepName": name });
            let transcript = Transcript::from_input(&RunAgentInput::new("t", "r", vec![]));
            assert_eq!(other_lines(&serde_json::from_value(event).unwrap(), &transcript), [line]);
        }
    }
}
