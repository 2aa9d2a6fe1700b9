//! AG-UI events as named events. Those that the guide does not describe, such as state and activities, are left out.
//!
//! A run begins with a `status` of the type `run_started`, which tells the client its thread id. It ends with a
//! `status` of the type `run_finished` or `run_cancelled`, with an `error`, or with the `interrupt` events that wait
//! for replies. Reasoning events carry the id of their span, because the guide's clients group them by `messageId`.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::{frame::write_event, questions::questions, replies::ReplyProblem};
use agui_protocol::{
    Event, FunctionCall, Message, MessageContent, MessageId, SubagentRunId, ThreadId, ToolCallId,
    encode::{SseDialect, write_string},
    event::{Custom, RunFinished, RunOutcome, ToolCallResult},
    own_names::{ATTACHMENT_SKIPPED, CONTEXT_TRIMMED, TRUNCATED},
};

/// Writes the events of one run as named events.
#[derive(Debug, Default)]
pub struct NamedEventEncoder {
    thread_id: ThreadId,
    agent: String,
    /// The bytes that follow the text in each event of `current_message`: the thread and the speaker.
    message_suffix: Vec<u8>,
    current_message: Option<MessageId>,
    /// The open text messages without a text so far.
    empty_messages: Vec<MessageId>,
    has_text: bool,
    /// The reason for asking the open questions again.
    problem: Option<ReplyProblem>,
    /// The open text messages whose speaker is not `agent`: they have a name, or a subagent wrote them.
    speakers: Vec<(MessageId, String)>,
    subagents: HashMap<SubagentRunId, String>,
    reasoning_spans: Vec<(Option<SubagentRunId>, MessageId)>,
    reasoning_messages: Vec<OpenReasoningMessage>,
    /// The calls of the last messages snapshot, which precedes every interrupt.
    calls: HashMap<ToolCallId, FunctionCall>,
}

#[derive(Debug)]
struct OpenReasoningMessage {
    id: MessageId,
    /// The id that its events carry: that of its span, or its own if it has no span.
    session: MessageId,
    has_span: bool,
}

impl SseDialect for NamedEventEncoder {
    fn event(&mut self, event: &Event, out: &mut Vec<u8>) {
        match event {
            Event::TextMessageStart(e) => {
                let speaker =
                    e.name.clone().or_else(|| self.subagent_name(e.subagent_run_id.as_ref()?));
                self.speakers.extend(speaker.map(|name| (e.message_id.clone(), name)));
                self.empty_messages.push(e.message_id.clone());
            }
            Event::TextMessageContent(e) => self.text(&e.message_id, &e.delta, out),
            Event::TextMessageEnd(e) => {
                self.speakers.retain(|(id, _)| *id != e.message_id);
                self.empty_messages.retain(|id| *id != e.message_id);
                self.current_message = None;
            }
            Event::ToolCallStart(e) => {
                let (id, name) = (&e.tool_call_id, &e.tool_call_name);
                let payload =
                    json!({ "toolCallId": id, "toolCallName": name, "thread_id": self.thread_id });
                write_event("tool_call_start", &payload, out);
            }
            Event::ToolCallArgs(e) => write_delta(
                b"event: tool_call_args\ndata: {\"toolCallId\":",
                &e.tool_call_id,
                &e.delta,
                out,
            ),
            Event::ToolCallEnd(e) => {
                write_event("tool_call_end", &json!({ "toolCallId": e.tool_call_id }), out)
            }
            Event::ToolCallResult(e) => write_tool_result(e, out),
            Event::RunStarted(e) => self.status(
                "run_started",
                &format!("{} is working", self.agent),
                Some(&e.run_id),
                out,
            ),
            Event::StepStarted(e) => self.status("step_started", &e.step_name, None, out),
            Event::StepFinished(e) => self.status("step_finished", &e.step_name, None, out),
            Event::SubagentStarted(e) => {
                self.subagents.entry(e.subagent_run_id.clone()).or_insert_with(|| e.name.clone());
                self.status("agent_started", &e.name, None, out);
            }
            Event::SubagentFinished(e) => {
                let name = self.subagent_name(&e.subagent_run_id).unwrap_or_default();
                self.status("agent_finished", &name, None, out);
            }
            Event::SubagentError(e) => self.status("agent_failed", &e.message, None, out),
            Event::MessagesSnapshot(e) => {
                let calls = e.messages.iter().flat_map(Message::tool_calls);
                self.calls = calls.map(|call| (call.id.clone(), call.function.clone())).collect();
            }
            Event::RunError(e) => {
                let code = e.code.as_deref().unwrap_or("error");
                let payload =
                    json!({ "type": code, "message": e.message, "thread_id": self.thread_id });
                write_event("error", &payload, out);
            }
            Event::RunFinished(e) => self.run_finished(e, out),
            Event::Custom(e) => self.notice(e, out),
            _ => self.reasoning(event, out),
        }
    }
}

impl NamedEventEncoder {
    /// An encoder for a run of this agent.
    pub fn new(thread_id: ThreadId, agent: impl Into<String>) -> Self {
        Self { thread_id, agent: agent.into(), ..Self::default() }
    }

    /// Asks the open questions again, because of this.
    pub(super) fn with_problem(mut self, problem: Option<ReplyProblem>) -> Self {
        self.problem = problem;
        self
    }

    fn reasoning(&mut self, event: &Event, out: &mut Vec<u8>) {
        match event {
            Event::ReasoningStart(e) => {
                self.reasoning_spans.push((e.subagent_run_id.clone(), e.message_id.clone()));
                write_event("reasoning_start", &message_id(&e.message_id), out);
            }
            Event::ReasoningMessageStart(e) => {
                let span = self
                    .reasoning_spans
                    .iter()
                    .rev()
                    .find(|(owner, _)| *owner == e.subagent_run_id);
                let session = span.map_or_else(|| e.message_id.clone(), |(_, id)| id.clone());
                let has_span = span.is_some();
                if !has_span {
                    write_event("reasoning_start", &message_id(&session), out);
                }
                let payload = json!({ "messageId": session, "role": "assistant" });
                write_event("reasoning_message_start", &payload, out);
                self.reasoning_messages.push(OpenReasoningMessage {
                    id: e.message_id.clone(),
                    session,
                    has_span,
                });
            }
            Event::ReasoningMessageContent(e) => {
                let message =
                    self.reasoning_messages.iter().find(|message| message.id == e.message_id);
                let session = message.map_or(&e.message_id, |message| &message.session);
                let head = b"event: reasoning_message_content\ndata: {\"messageId\":";
                write_delta(head, session, &e.delta, out);
            }
            Event::ReasoningMessageEnd(e) => {
                let position =
                    self.reasoning_messages.iter().position(|message| message.id == e.message_id);
                let Some(position) = position else { return };
                let OpenReasoningMessage { session, has_span, .. } =
                    self.reasoning_messages.remove(position);
                write_event("reasoning_message_end", &message_id(&session), out);
                if !has_span {
                    write_event("reasoning_end", &message_id(&session), out);
                }
            }
            Event::ReasoningEnd(e) => {
                self.reasoning_spans.retain(|(_, id)| *id != e.message_id);
                write_event("reasoning_end", &message_id(&e.message_id), out);
            }
            _ => {}
        }
    }

    /// The guide's clients append all texts of a run, so an empty line comes before the first text of a further message.
    ///
    /// An empty text is skipped. An agent may send one for its `rawEvent`.
    fn text(&mut self, id: &MessageId, text: &str, out: &mut Vec<u8>) {
        if text.is_empty() {
            return;
        }
        out.extend_from_slice(b"event: message\ndata: {\"content\":");
        if self.current_message.as_ref() == Some(id) {
            write_string(text, out);
        } else {
            let is_first = self.empty_messages.extract_if(.., |message| message == id).count() > 0;
            let separator =
                if std::mem::replace(&mut self.has_text, true) && is_first { "\n\n" } else { "" };
            write_string(&format!("{separator}{text}"), out);
            let speaker =
                self.speakers.iter().find(|(message, _)| message == id).map(|(_, name)| name);
            self.message_suffix.clear();
            self.message_suffix.extend_from_slice(b",\"thread_id\":");
            write_string(&self.thread_id, &mut self.message_suffix);
            self.message_suffix.extend_from_slice(b",\"agent\":");
            write_string(speaker.unwrap_or(&self.agent), &mut self.message_suffix);
            self.message_suffix.extend_from_slice(b"}\n\n");
            self.current_message = Some(id.clone());
        }
        out.extend_from_slice(&self.message_suffix);
    }

    fn status(&self, status: &str, message: &str, run: Option<&str>, out: &mut Vec<u8>) {
        let mut payload =
            json!({ "type": status, "message": message, "thread_id": self.thread_id });
        if let Some(run) = run {
            payload["run_id"] = run.into();
        }
        write_event("status", &payload, out);
    }

    fn run_finished(&self, finished: &RunFinished, out: &mut Vec<u8>) {
        let status = match &finished.outcome {
            Some(RunOutcome::Interrupt { interrupts }) => {
                for mut question in questions(interrupts, &self.calls) {
                    if let Some(problem) = &self.problem {
                        question.content = problem.before(&question.content);
                    }
                    question.thread_id = Some(self.thread_id.as_str().to_owned());
                    write_event("interrupt", &question, out);
                }
                return;
            }
            Some(RunOutcome::Cancelled) => "run_cancelled",
            _ => "run_finished",
        };
        self.status(status, &format!("{} is done", self.agent), Some(&finished.run_id), out);
    }

    /// Writes the notices of agents with a model.
    fn notice(&self, event: &Custom, out: &mut Vec<u8>) {
        let (status, message) = match &*event.name {
            TRUNCATED => ("truncated", "the answer is incomplete"),
            ATTACHMENT_SKIPPED => {
                ("attachment_skipped", "the model cannot read a part of a message")
            }
            CONTEXT_TRIMMED => {
                let message = "the model did not get the oldest messages: the conversation is too long for it";
                return self.status("context_trimmed", message, None, out);
            }
            _ => return,
        };
        let reason = event.value.get("reason").and_then(Value::as_str).unwrap_or("unknown");
        self.status(status, &format!("{message}: {reason}"), None, out);
    }

    fn subagent_name(&self, run: &SubagentRunId) -> Option<String> {
        self.subagents.get(run).cloned()
    }
}

fn message_id(id: &MessageId) -> Value {
    json!({ "messageId": id })
}

/// The format has only texts, so a result with other parts is written as their JSON.
fn write_tool_result(result: &ToolCallResult, out: &mut Vec<u8>) {
    let content = match &result.content {
        MessageContent::Text(text) => text.clone(),
        MessageContent::Parts(parts) => match serde_json::to_value(parts) {
            Ok(Value::Array(values)) if values.iter().any(|part| part["type"] != "text") => {
                Value::Array(values).to_string()
            }
            _ => result.content.text().into_owned(),
        },
    };
    write_event(
        "tool_result",
        &json!({ "toolCallId": result.tool_call_id, "content": content, "role": "tool" }),
        out,
    );
}

/// `head` is the constant part, up to the id.
fn write_delta(head: &[u8], id: &str, delta: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(head);
    write_string(id, out);
    out.extend_from_slice(b",\"delta\":");
    write_string(delta, out);
    out.extend_from_slice(b"}\n\n");
}

#[cfg(test)]
mod tests {
    use super::*;
    use agui_protocol::{
        ContentPart, PartSource,
        event::{
            ReasoningMessageContent, ReasoningMessageEnd, ReasoningMessageStart, RunError,
            TextMessageContent, TextMessageEnd, TextMessageStart,
        },
    };

    fn encoded(events: Vec<Event>) -> Vec<(String, Value)> {
        let (mut encoder, mut out) = (NamedEventEncoder::new("t\"1".into(), "main"), Vec::new());
        events.iter().for_each(|event| encoder.event(event, &mut out));
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
            TextMessageContent::new("a", "").into(),
            Event::from(TextMessageStart::new("b")).attributed_to(Some("s".into())),
            named.into(),
            // The three messages are open at the same time.
            TextMessageContent::new("a", "1").into(),
            TextMessageContent::new("b", "2\n\n").into(),
            TextMessageContent::new("c", "3").into(),
            TextMessageContent::new("a", "4").into(),
            TextMessageEnd::new("a").into(),
        ]);
        let payloads: Vec<_> = frames[1..].iter().map(|(_, payload)| payload.clone()).collect();
        let message = |text: &str, agent: &str| json!({ "content": text, "thread_id": "t\"1", "agent": agent });
        let expected = [
            message("1", "main"),
            message("\n\n2\n\n", "writer"),
            message("\n\n3", "Ada"),
            message("4", "main"),
        ];
        assert_eq!(payloads, expected);
    }

    #[test]
    fn a_reasoning_message_without_a_span_gets_one() {
        let frames = encoded(vec![
            ReasoningMessageStart::new("m").into(),
            ReasoningMessageContent::new("m", "x").into(),
            ReasoningMessageEnd::new("m").into(),
        ]);
        let names: Vec<_> =
            frames.iter().map(|(name, _)| name.strip_prefix("reasoning_").unwrap()).collect();
        assert_eq!(names, ["start", "message_start", "message_content", "message_end", "end"]);
        assert!(frames.iter().all(|(_, payload)| payload["messageId"] == "m"));
    }

    #[test]
    fn notices_of_models_are_statuses() {
        let frames = encoded(vec![
            Custom::new("agui-server.truncated", json!({ "reason": "length" })).into(),
            Custom::new("other", json!({ "reason": "x" })).into(),
        ]);
        let expected = json!({ "type": "truncated", "message": "the answer is incomplete: length", "thread_id": "t\"1" });
        assert_eq!(frames, [("status".to_owned(), expected)]);
    }

    #[test]
    fn tool_results_are_texts_and_errors_have_types() {
        let url = PartSource::Url { value: "https://a".to_owned(), mime_type: None };
        let parts = vec![ContentPart::text("a"), ContentPart::image(url)];
        let frames = encoded(vec![
            ToolCallResult::new("m", "c", vec![ContentPart::text("a"), ContentPart::text("b")])
                .into(),
            ToolCallResult::new("m", "c", parts.clone()).into(),
            RunError { code: None, ..RunError::new("x", "broken") }.into(),
        ]);
        assert_eq!(frames[0].1, json!({ "toolCallId": "c", "content": "ab", "role": "tool" }));
        assert_eq!(frames[1].1["content"], serde_json::to_string(&parts).unwrap());
        assert_eq!(
            frames[2].1,
            json!({ "type": "error", "message": "broken", "thread_id": "t\"1" })
        );
    }
}
