//! The guide's dialect: `event: <name>`, `data: {json}` and an empty line, one event each.
//!
//! A run begins with a `status` of the type `run_started`, which tells clients that named no thread which one they are
//! on, and ends with `run_finished` or `run_cancelled`, with an `error`, or with the `interrupt` events that wait for
//! an answer. State, activities and what else the guide does not know are left out.
//!
//! All reasoning events of a session have one id, the session's: the guide's clients put them together by it.

use serde_json::{Value, json};

use crate::protocol::{
    Event, Message, MessageContent, MessageId, SubagentRunId, ThreadId,
    event::{RunFinished, RunOutcome, ToolCallResult},
    guide::{ToolCallState, answer::questions, reasoning, write_event},
};

/// Writes events in the guide's dialect.
#[derive(Debug)]
pub struct Guide {
    thread_id: ThreadId,
    agent: String,
    /// What stands behind a message's text: the thread and the speaker.
    tail: Vec<u8>,
    /// The message that `tail` is for.
    message: Option<MessageId>,
    /// Messages that have a speaker of their own: by a name, or a subagent's.
    speakers: Vec<(MessageId, String)>,
    subagents: Vec<(SubagentRunId, String)>,
    /// Spans of reasoning that are open, and whose they are.
    spans: Vec<(Option<SubagentRunId>, MessageId)>,
    /// Reasoning messages that are open, their session, and whether it ends with them.
    thoughts: Vec<(MessageId, MessageId, bool)>,
    /// The calls that questions can be about.
    calls: ToolCallState,
}

impl Guide {
    /// An encoder for a run of this agent.
    pub fn new(thread_id: ThreadId, agent: impl Into<String>) -> Self {
        Self {
            thread_id,
            agent: agent.into(),
            tail: Vec::new(),
            message: None,
            speakers: Vec::new(),
            subagents: Vec::new(),
            spans: Vec::new(),
            thoughts: Vec::new(),
            calls: ToolCallState::default(),
        }
    }

    /// Appends what an event comes to, which may be nothing.
    pub fn event(&mut self, event: &Event, out: &mut Vec<u8>) {
        match event {
            Event::TextMessageStart(e) => {
                let own = e.name.clone().or_else(|| self.subagent(e.subagent_run_id.as_ref()?));
                self.speakers.extend(own.map(|name| (e.message_id.clone(), name)));
            }
            Event::TextMessageContent(e) => self.text(&e.message_id, &e.delta, out),
            Event::TextMessageEnd(e) => {
                self.speakers.retain(|(id, _)| *id != e.message_id);
                self.message = None;
            }
            Event::ToolCallStart(e) => {
                let (id, name) = (&e.tool_call_id, &e.tool_call_name);
                let payload = json!({ "toolCallId": id, "toolCallName": name, "thread_id": self.thread_id });
                write_event("tool_call_start", &payload, out);
            }
            Event::ToolCallArgs(e) => delta("tool_call_args", "toolCallId", &e.tool_call_id, &e.delta, out),
            Event::ToolCallEnd(e) => write_event("tool_call_end", &json!({ "toolCallId": e.tool_call_id }), out),
            Event::ToolCallResult(e) => result(e, out),
            Event::RunStarted(e) => {
                self.status("run_started", &format!("{} is working", self.agent), Some(&e.run_id), out)
            }
            Event::StepStarted(e) => self.status("step_started", &e.step_name, None, out),
            Event::StepFinished(e) => self.status("step_finished", &e.step_name, None, out),
            Event::SubagentStarted(e) => {
                self.subagents.push((e.subagent_run_id.clone(), e.name.clone()));
                self.status("agent_started", &e.name, None, out);
            }
            Event::SubagentFinished(e) => {
                let name = self.subagent(&e.subagent_run_id).unwrap_or_default();
                self.status("agent_finished", &name, None, out);
            }
            Event::SubagentError(e) => self.status("agent_failed", &e.message, None, out),
            Event::MessagesSnapshot(e) => self.remember(&e.messages),
            Event::RunError(e) => {
                let kind = e.code.as_deref().unwrap_or("error");
                let payload = json!({ "type": kind, "message": e.message, "thread_id": self.thread_id });
                write_event("error", &payload, out);
            }
            Event::RunFinished(e) => self.finished(e, out),
            _ => self.reasoning(event, out),
        }
    }

    fn reasoning(&mut self, event: &Event, out: &mut Vec<u8>) {
        match event {
            Event::ReasoningStart(e) => {
                self.spans.push((e.subagent_run_id.clone(), e.message_id.clone()));
                write_event("reasoning_start", &reasoning::id_event(&e.message_id), out);
            }
            Event::ReasoningMessageStart(e) => {
                let span = self.spans.iter().rev().find(|(owner, _)| *owner == e.subagent_run_id);
                let span = span.map(|(_, id)| id.clone());
                // A message without a span is a session of its own.
                let alone = span.is_none();
                let session = span.unwrap_or_else(|| e.message_id.clone());
                if alone {
                    write_event("reasoning_start", &reasoning::id_event(&session), out);
                }
                write_event("reasoning_message_start", &reasoning::message_start_event(&session), out);
                self.thoughts.push((e.message_id.clone(), session, alone));
            }
            Event::ReasoningMessageContent(e) => {
                let session = self.thoughts.iter().find(|(id, ..)| *id == e.message_id);
                let session = session.map_or(&e.message_id, |(_, session, _)| session);
                delta("reasoning_message_content", "messageId", session, &e.delta, out);
            }
            Event::ReasoningMessageEnd(e) => {
                let Some(at) = self.thoughts.iter().position(|(id, ..)| *id == e.message_id) else { return };
                let (_, session, alone) = self.thoughts.remove(at);
                write_event("reasoning_message_end", &reasoning::id_event(&session), out);
                if alone {
                    write_event("reasoning_end", &reasoning::id_event(&session), out);
                }
            }
            Event::ReasoningEnd(e) => {
                self.spans.retain(|(_, id)| *id != e.message_id);
                write_event("reasoning_end", &reasoning::id_event(&e.message_id), out);
            }
            _ => {}
        }
    }

    /// The pieces of a message differ in their text alone.
    fn text(&mut self, id: &MessageId, text: &str, out: &mut Vec<u8>) {
        if self.message.as_ref() != Some(id) {
            let own = self.speakers.iter().find(|(message, _)| message == id).map(|(_, name)| name);
            self.tail.clear();
            self.tail.extend_from_slice(b",\"thread_id\":");
            string(&self.thread_id, &mut self.tail);
            self.tail.extend_from_slice(b",\"agent\":");
            string(own.unwrap_or(&self.agent), &mut self.tail);
            self.tail.extend_from_slice(b"}\n\n");
            self.message = Some(id.clone());
        }
        out.extend_from_slice(b"event: message\ndata: {\"content\":");
        string(text, out);
        out.extend_from_slice(&self.tail);
    }

    fn status(&self, kind: &str, message: &str, run: Option<&str>, out: &mut Vec<u8>) {
        let mut payload = json!({ "type": kind, "message": message, "thread_id": self.thread_id });
        if let Some(run) = run {
            payload["run_id"] = run.into();
        }
        write_event("status", &payload, out);
    }

    fn finished(&self, finished: &RunFinished, out: &mut Vec<u8>) {
        let kind = match &finished.outcome {
            Some(RunOutcome::Interrupt { interrupts }) => {
                for mut question in questions(interrupts, &self.calls) {
                    question.thread_id = Some(self.thread_id.as_str().to_owned());
                    write_event("interrupt", &question, out);
                }
                return;
            }
            Some(RunOutcome::Cancelled) => "run_cancelled",
            _ => "run_finished",
        };
        self.status(kind, &format!("{} is done", self.agent), Some(&finished.run_id), out);
    }

    /// The whole thread comes before every question, also before one that is asked again.
    fn remember(&mut self, messages: &[Message]) {
        self.calls.clear();
        for message in messages {
            let Message::Assistant(message) = message else { continue };
            for call in message.tool_calls() {
                self.calls.start_tool_call(call.id.clone(), call.function.name.clone());
                self.calls.append_args(&call.id, &call.function.arguments);
                self.calls.complete_tool_call(&call.id);
            }
        }
    }

    fn subagent(&self, run: &SubagentRunId) -> Option<String> {
        self.subagents.iter().find(|(id, _)| id == run).map(|(_, name)| name.clone())
    }
}

/// What a tool returned, as a text: parts that are none are shown as JSON.
fn result(result: &ToolCallResult, out: &mut Vec<u8>) {
    let content = match &result.content {
        MessageContent::Text(text) => text.clone(),
        MessageContent::Parts(parts) => match serde_json::to_value(parts) {
            Ok(Value::Array(values)) if values.iter().any(|part| part["type"] != "text") => {
                Value::Array(values).to_string()
            }
            _ => result.content.text().into_owned(),
        },
    };
    write_event("tool_result", &json!({ "toolCallId": result.tool_call_id, "content": content, "role": "tool" }), out);
}

fn delta(name: &str, member: &str, id: &str, text: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(b"event: ");
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b"\ndata: {\"");
    out.extend_from_slice(member.as_bytes());
    out.extend_from_slice(b"\":");
    string(id, out);
    out.extend_from_slice(b",\"delta\":");
    string(text, out);
    out.extend_from_slice(b"}\n\n");
}

fn string(text: &str, out: &mut Vec<u8>) {
    // Writing a text into memory does not fail.
    let _ = serde_json::to_writer(out, text);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::{
        ContentPart, PartSource,
        event::{
            ReasoningMessageContent, ReasoningMessageEnd, ReasoningMessageStart, RunError, TextMessageContent,
            TextMessageEnd, TextMessageStart,
        },
    };

    fn encoded(events: Vec<Event>) -> Vec<(String, Value)> {
        let (mut guide, mut out) = (Guide::new("t\"1".into(), "main"), Vec::new());
        events.iter().for_each(|event| guide.event(event, &mut out));
        let text = String::from_utf8(out).unwrap();
        let frames = text.split_terminator("\n\n").map(|frame| {
            let (name, data) = frame.split_once("\ndata: ").unwrap();
            (name.strip_prefix("event: ").unwrap().to_owned(), serde_json::from_str(data).unwrap())
        });
        frames.collect()
    }

    #[test]
    fn each_message_names_its_speaker() {
        let started = json!({ "type": "SUBAGENT_STARTED", "subagentRunId": "s", "name": "writer" });
        let named = TextMessageStart { name: Some("Ada".to_owned()), ..TextMessageStart::new("c") };
        let frames = encoded(vec![
            serde_json::from_value(started).unwrap(),
            TextMessageStart::new("a").into(),
            Event::from(TextMessageStart::new("b")).attributed_to(Some("s".into())),
            named.into(),
            // Pieces of messages that are open beside each other.
            TextMessageContent::new("a", "1").into(),
            TextMessageContent::new("b", "2\n\n").into(),
            TextMessageContent::new("c", "3").into(),
            TextMessageContent::new("a", "4").into(),
            TextMessageEnd::new("a").into(),
        ]);
        let told: Vec<_> = frames[1..].iter().map(|(_, payload)| payload.clone()).collect();
        let message = |text: &str, agent: &str| json!({ "content": text, "thread_id": "t\"1", "agent": agent });
        let expected = [message("1", "main"), message("2\n\n", "writer"), message("3", "Ada"), message("4", "main")];
        assert_eq!(told, expected);
    }

    #[test]
    fn a_thought_without_a_span_is_a_session() {
        let frames = encoded(vec![
            ReasoningMessageStart::new("m").into(),
            ReasoningMessageContent::new("m", "x").into(),
            ReasoningMessageEnd::new("m").into(),
        ]);
        let names: Vec<_> = frames.iter().map(|(name, _)| name.strip_prefix("reasoning_").unwrap()).collect();
        assert_eq!(names, ["start", "message_start", "message_content", "message_end", "end"]);
        assert!(frames.iter().all(|(_, payload)| payload["messageId"] == "m"));
    }

    #[test]
    fn results_are_texts_and_errors_have_types() {
        let url = PartSource::Url { value: "https://a".to_owned(), mime_type: None };
        let parts = vec![ContentPart::text("a"), ContentPart::image(url)];
        let frames = encoded(vec![
            ToolCallResult::new("m", "c", vec![ContentPart::text("a"), ContentPart::text("b")]).into(),
            ToolCallResult::new("m", "c", parts.clone()).into(),
            RunError { code: None, ..RunError::new("x", "broken") }.into(),
        ]);
        assert_eq!(frames[0].1, json!({ "toolCallId": "c", "content": "ab", "role": "tool" }));
        assert_eq!(frames[1].1["content"], serde_json::to_string(&parts).unwrap());
        assert_eq!(frames[2].1, json!({ "type": "error", "message": "broken", "thread_id": "t\"1" }));
    }
}
