//! Writes an answer: as a stream of chunks, or as one document.

use std::time::{SystemTime, UNIX_EPOCH};

use agui_protocol::{Event, ToolCall, encode::SseDialect};
use serde::Serialize;
use utoipa::ToSchema;

use super::answer::{
    AnswerEnd, AnswerPart, CompletionReader, CompletionUsage, FinishReason, FinishedAnswer,
};

const DONE: &[u8] = b"data: [DONE]\n\n";

/// The members that all chunks of an answer have.
#[derive(Debug, Clone)]
pub(super) struct AnswerHead {
    id: String,
    /// In seconds since 1970.
    created: u64,
    agent: String,
}

/// Writes the chunks of one answer.
#[derive(Debug)]
pub(super) struct ChunkWriter {
    head: AnswerHead,
    includes_usage: bool,
    has_begun: bool,
}

/// Writes the events of one run as chunks.
#[derive(Debug)]
pub(super) struct ChunkEncoder {
    pub(super) reader: CompletionReader,
    pub(super) writer: ChunkWriter,
}

/// A piece of an answer. The stream ends with `[DONE]`, and an error is an object with `error`.
#[derive(Serialize, ToSchema)]
pub(super) struct ChatCompletionChunk<'a> {
    id: &'a str,
    #[schema(pattern = "^chat\\.completion\\.chunk$")]
    object: &'static str,
    created: u64,
    /// The agent's name.
    model: &'a str,
    /// One choice, or none in a chunk with the tokens.
    choices: Vec<ChunkChoice<'a>>,
    /// With `include_usage`, in the last chunk: the tokens of the run, `null` if no model has reported them.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<CompletionUsage>)]
    usage: Option<Option<&'a CompletionUsage>>,
}

#[derive(Serialize, ToSchema)]
struct ChunkChoice<'a> {
    index: u32,
    #[schema(inline)]
    delta: ChunkDelta<'a>,
    #[schema(required)]
    finish_reason: Option<FinishReason>,
}

#[derive(Default, Serialize, ToSchema)]
struct ChunkDelta<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(pattern = "^assistant$")]
    role: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    content: Option<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<ChunkCall<'a>>,
}

/// A whole call.
#[derive(Serialize, ToSchema)]
struct ChunkCall<'a> {
    index: usize,
    #[serde(flatten)]
    call: AnswerCall<'a>,
}

#[derive(Serialize, ToSchema)]
struct AnswerCall<'a> {
    id: &'a str,
    #[serde(rename = "type")]
    #[schema(pattern = "^function$")]
    kind: &'static str,
    #[schema(inline)]
    function: ShownFunction<'a>,
}

#[derive(Serialize, ToSchema)]
struct ShownFunction<'a> {
    name: &'a str,
    /// JSON text.
    arguments: &'a str,
}

/// An answer.
#[derive(Serialize, ToSchema)]
pub(super) struct ChatCompletion<'a> {
    id: &'a str,
    #[schema(pattern = "^chat\\.completion$")]
    object: &'static str,
    created: u64,
    /// The agent's name.
    model: &'a str,
    choices: [Choice<'a>; 1],
    /// Absent if no model has reported its tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    usage: Option<&'a CompletionUsage>,
}

#[derive(Serialize, ToSchema)]
#[schema(as = ChatCompletionChoice)]
struct Choice<'a> {
    index: u32,
    #[schema(inline)]
    message: AnswerMessage<'a>,
    finish_reason: FinishReason,
}

#[derive(Serialize, ToSchema)]
struct AnswerMessage<'a> {
    #[schema(pattern = "^assistant$")]
    role: &'static str,
    #[schema(required)]
    content: Option<&'a str>,
    /// Always `null`.
    #[schema(required)]
    refusal: Option<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<AnswerCall<'a>>,
}

impl AnswerHead {
    pub(super) fn new(agent: &str) -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let id = format!("chatcmpl-{}", uuid::Uuid::new_v4().simple());
        Self { id, created: since.as_secs(), agent: agent.to_owned() }
    }

    /// Returns the document of an answer with this text.
    pub(super) fn document<'a>(
        &'a self,
        text: &'a str,
        finished: &'a FinishedAnswer,
    ) -> ChatCompletion<'a> {
        let FinishedAnswer { text: held, calls, reason, usage } = finished;
        let text = held.as_deref().unwrap_or(text);
        let message = AnswerMessage {
            role: "assistant",
            content: Some(text).filter(|text| calls.is_empty() || !text.is_empty()),
            refusal: None,
            tool_calls: calls.iter().map(AnswerCall::new).collect(),
        };
        ChatCompletion {
            id: &self.id,
            object: "chat.completion",
            created: self.created,
            model: &self.agent,
            choices: [Choice { index: 0, message, finish_reason: *reason }],
            usage: usage.as_ref(),
        }
    }
}

impl<'a> AnswerCall<'a> {
    fn new(call: &'a ToolCall) -> Self {
        let function =
            ShownFunction { name: &call.function.name, arguments: &call.function.arguments };
        Self { id: call.id.as_str(), kind: "function", function }
    }
}

impl ChunkWriter {
    pub(super) fn new(head: AnswerHead, includes_usage: bool) -> Self {
        Self { head, includes_usage, has_begun: false }
    }

    /// Writes the first chunk, once: the role, before any text.
    pub(super) fn begin(&mut self, out: &mut Vec<u8>) {
        if !std::mem::replace(&mut self.has_begun, true) {
            let delta =
                ChunkDelta { role: Some("assistant"), content: Some(""), ..ChunkDelta::default() };
            self.choice(delta, None, out);
        }
    }

    pub(super) fn text(&mut self, text: &str, out: &mut Vec<u8>) {
        self.begin(out);
        self.choice(ChunkDelta { content: Some(text), ..ChunkDelta::default() }, None, out);
    }

    /// Writes the rest of the answer, and the end of the stream.
    pub(super) fn end(&mut self, end: &AnswerEnd, out: &mut Vec<u8>) {
        match end {
            AnswerEnd::Finished(finished) => self.finish(finished, out),
            AnswerEnd::Failed(failed) => write_data(&failed.body(), out),
        }
        out.extend_from_slice(DONE);
    }

    fn finish(&mut self, finished: &FinishedAnswer, out: &mut Vec<u8>) {
        self.begin(out);
        if let Some(text) = finished.text.as_deref().filter(|text| !text.is_empty()) {
            self.text(text, out);
        }
        for (index, call) in finished.calls.iter().enumerate() {
            let tool_calls = vec![ChunkCall { index, call: AnswerCall::new(call) }];
            self.choice(ChunkDelta { tool_calls, ..ChunkDelta::default() }, None, out);
        }
        self.choice(ChunkDelta::default(), Some(finished.reason), out);
        if self.includes_usage {
            self.chunk(Vec::new(), Some(finished.usage.as_ref()), out);
        }
    }

    fn choice(
        &self,
        delta: ChunkDelta<'_>,
        finish_reason: Option<FinishReason>,
        out: &mut Vec<u8>,
    ) {
        self.chunk(vec![ChunkChoice { index: 0, delta, finish_reason }], None, out);
    }

    fn chunk(
        &self,
        choices: Vec<ChunkChoice<'_>>,
        usage: Option<Option<&CompletionUsage>>,
        out: &mut Vec<u8>,
    ) {
        let AnswerHead { id, created, agent } = &self.head;
        let object = "chat.completion.chunk";
        let chunk =
            ChatCompletionChunk { id, object, created: *created, model: agent, choices, usage };
        write_data(&chunk, out);
    }
}

fn write_data(data: &impl Serialize, out: &mut Vec<u8>) {
    out.extend_from_slice(b"data: ");
    // Serializing texts and numbers into a `Vec` cannot fail.
    let _ = serde_json::to_writer(&mut *out, data);
    out.extend_from_slice(b"\n\n");
}

impl SseDialect for ChunkEncoder {
    fn event(&mut self, event: &Event, out: &mut Vec<u8>) {
        if let Event::RunStarted(_) = event {
            self.writer.begin(out);
        }
        match self.reader.read(event) {
            Some(AnswerPart::Text(text)) => self.writer.text(&text, out),
            Some(AnswerPart::End(end)) => self.writer.end(&end, out),
            None => {}
        }
    }
}

/// Returns the encoder for a caller whose tool has this name.
#[cfg(test)]
pub(crate) fn test_encoder(tool: &str) -> impl SseDialect {
    let reader = CompletionReader::new([tool.to_owned()].into(), false);
    ChunkEncoder { reader, writer: ChunkWriter::new(AnswerHead::new("a"), true) }
}
