//! Reads the events of a run as one answer: the text of the agent, the calls that are left to the
//! caller, and why the answer ended. Calls of the server's own tools, reasoning, state, activities
//! and what subagents say are not shown.

use std::{
    borrow::Cow,
    collections::{HashMap, HashSet},
    io,
    pin::pin,
};

use futures::{Stream, StreamExt as _};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::error::{FailedRun, failure_of};
use agui_base::RunErrorCode;
use agui_protocol::{
    Event, FunctionCall, MessageId, TokenUsage, ToolCall, ToolCallId,
    event::{Custom, RunError, RunFinished, RunOutcome, TextMessageRole},
    own_names::{RESPONSE_REJECTED, TRUNCATED},
};

/// The largest answer, in bytes: a document, and an answer with a key, are kept until they end.
const MAX_ANSWER_BYTES: usize = 4 * 1024 * 1024;
/// The number of events after which a task yields: an agent may have all of its events ready.
const EVENTS_PER_POLL: usize = 64;
/// Separates the texts of two messages.
const SEPARATOR: &str = "\n\n";

/// The reason for which an answer ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum FinishReason {
    Stop,
    Length,
    ToolCalls,
    ContentFilter,
}

/// Reads the events of one run.
#[derive(Debug, Default)]
pub(super) struct CompletionReader {
    /// The names of the caller's tools.
    tools: HashSet<String>,
    /// The text so far, if it is shown at the end: a value that the agent checks may be rejected,
    /// and said again.
    held: Option<String>,
    calls: HashMap<ToolCallId, FunctionCall>,
    /// The messages that the agent says in the name of others.
    hidden: HashSet<MessageId>,
    /// The message of the last text.
    last: Option<MessageId>,
    reason: Option<FinishReason>,
    bytes: usize,
    is_ended: bool,
}

/// What an event adds to the answer.
#[derive(Debug, PartialEq)]
pub(super) enum AnswerPart<'e> {
    Text(Cow<'e, str>),
    End(AnswerEnd),
}

/// The end of an answer.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum AnswerEnd {
    Finished(FinishedAnswer),
    Failed(FailedRun),
}

/// The rest of an answer, after its text.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct FinishedAnswer {
    /// The text, if none was shown before.
    pub(super) text: Option<String>,
    pub(super) calls: Vec<ToolCall>,
    pub(super) reason: FinishReason,
    pub(super) usage: Option<CompletionUsage>,
}

/// The tokens of the run's model calls, of subagents, too.
#[derive(Debug, Clone, Default, PartialEq, Serialize, ToSchema)]
pub(super) struct CompletionUsage {
    prompt_tokens: u64,
    completion_tokens: u64,
    total_tokens: u64,
    #[schema(inline)]
    prompt_tokens_details: PromptTokens,
    #[schema(inline)]
    completion_tokens_details: CompletionTokens,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, ToSchema)]
struct PromptTokens {
    cached_tokens: u64,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, ToSchema)]
struct CompletionTokens {
    reasoning_tokens: u64,
}

/// Reads the events of a run to their end. `say` gets the pieces of the text.
pub(super) async fn read_answer(
    mut reader: CompletionReader,
    events: impl Stream<Item = io::Result<Option<Event>>>,
    mut say: impl FnMut(&str),
) -> AnswerEnd {
    let mut events = pin!(events);
    let mut read = 0_usize;
    while let Some(Ok(event)) = events.next().await {
        read += 1;
        if read.is_multiple_of(EVENTS_PER_POLL) {
            tokio::task::yield_now().await;
        }
        match event.as_ref().and_then(|event| reader.read(event)) {
            None => {}
            Some(AnswerPart::Text(text)) => say(&text),
            Some(AnswerPart::End(end)) => {
                // The run notes that its end was read.
                if let Some(Event::RunFinished(_) | Event::RunError(_)) = event {
                    while events.next().await.is_some() {}
                }
                return end;
            }
        }
    }
    AnswerEnd::Failed(FailedRun::without_end())
}

impl CompletionReader {
    /// `holds_text` is true for an agent whose answer is a value.
    pub(super) fn new(tools: HashSet<String>, holds_text: bool) -> Self {
        Self { tools, held: holds_text.then(String::new), ..Self::default() }
    }

    /// Returns what an event adds. Nothing follows an end.
    pub(super) fn read<'e>(&mut self, event: &'e Event) -> Option<AnswerPart<'e>> {
        if self.is_ended || event.subagent_run_id().is_some() {
            return None;
        }
        let mut part = self.add(event);
        if self.bytes > MAX_ANSWER_BYTES {
            part = Some(AnswerPart::End(AnswerEnd::Failed(FailedRun::too_large(MAX_ANSWER_BYTES))));
        }
        self.is_ended = matches!(part, Some(AnswerPart::End(_)));
        part
    }

    fn add<'e>(&mut self, event: &'e Event) -> Option<AnswerPart<'e>> {
        match event {
            Event::TextMessageStart(start) => {
                let role = start.role.unwrap_or_default();
                if role != TextMessageRole::Assistant {
                    self.hidden.insert(start.message_id.clone());
                }
                None
            }
            Event::TextMessageContent(said) if !self.hidden.contains(&said.message_id) => {
                self.text(&said.message_id, &said.delta)
            }
            Event::ToolCallStart(start) if self.tools.contains(&start.tool_call_name) => {
                let call = FunctionCall::new(&*start.tool_call_name, "");
                self.calls.insert(start.tool_call_id.clone(), call);
                None
            }
            Event::ToolCallArgs(args) => {
                if let Some(call) = self.calls.get_mut(&args.tool_call_id) {
                    self.bytes += args.delta.len();
                    call.arguments.push_str(&args.delta);
                }
                None
            }
            // An answer that was cut off can have calls, after which the model says more.
            Event::StepStarted(_) => {
                self.reason = None;
                None
            }
            Event::Custom(notice) => {
                self.notice(notice);
                None
            }
            Event::RunFinished(finished) => Some(AnswerPart::End(self.finish(finished))),
            Event::RunError(error) => Some(AnswerPart::End(self.fail(error))),
            _ => None,
        }
    }

    fn text<'e>(&mut self, message: &MessageId, delta: &'e str) -> Option<AnswerPart<'e>> {
        if delta.is_empty() {
            return None;
        }
        self.bytes += delta.len();
        let begins = self.last.as_ref().is_some_and(|last| !last.is(message));
        if begins || self.last.is_none() {
            self.last = Some(message.clone());
        }
        if let Some(held) = &mut self.held {
            let separator = if held.is_empty() || !begins { "" } else { SEPARATOR };
            held.push_str(separator);
            held.push_str(delta);
            return None;
        }
        let text = if begins { format!("{SEPARATOR}{delta}").into() } else { delta.into() };
        Some(AnswerPart::Text(text))
    }

    fn notice(&mut self, notice: &Custom) {
        match &*notice.name {
            RESPONSE_REJECTED => {
                if let Some(held) = &mut self.held {
                    held.clear();
                }
            }
            TRUNCATED => {
                let reason = notice.value.get("reason").and_then(Value::as_str);
                self.reason = Some(match reason {
                    Some("filtered" | "refused") => FinishReason::ContentFilter,
                    _ => FinishReason::Length,
                });
            }
            _ => {}
        }
    }

    fn finish(&mut self, finished: &RunFinished) -> AnswerEnd {
        let success = RunOutcome::success();
        let outcome = finished.outcome.as_ref().unwrap_or(&success);
        if let Some(failure) = failure_of(outcome) {
            return AnswerEnd::Failed(failure);
        }
        let pending: &[ToolCallId] = match outcome {
            RunOutcome::Success { pending_tool_call_ids } => pending_tool_call_ids,
            RunOutcome::Interrupt { .. } | RunOutcome::Cancelled => &[],
        };
        let calls: Vec<_> = pending
            .iter()
            .filter_map(|id| Some((id, self.calls.remove(id)?)))
            .map(|(id, call)| ToolCall::new(id.clone(), call.name, call.arguments))
            .collect();
        // The checked value, without the marks of Markdown that a model may put around it.
        let value = finished.result.as_ref();
        let value = value.filter(|value| value.is_object() && self.reason.is_none());
        let text = self.held.take();
        let text = text.map(|text| value.map_or(text, Value::to_string));
        let reason = match self.reason {
            _ if !calls.is_empty() => FinishReason::ToolCalls,
            reason => reason.unwrap_or(FinishReason::Stop),
        };
        let usage = CompletionUsage::from_usage(&finished.usage);
        AnswerEnd::Finished(FinishedAnswer { text, calls, reason, usage })
    }

    /// An answer that its model did not complete is an answer here, with its reason.
    fn fail(&mut self, error: &RunError) -> AnswerEnd {
        let code = error.code.as_deref().and_then(RunErrorCode::from_name);
        let reason = match code {
            Some(RunErrorCode::ModelTruncated) => FinishReason::Length,
            Some(RunErrorCode::ModelFiltered | RunErrorCode::ModelRefused) => {
                FinishReason::ContentFilter
            }
            _ => return AnswerEnd::Failed(FailedRun::from_error(error)),
        };
        let (text, usage) = (self.held.take(), CompletionUsage::from_usage(&error.usage));
        AnswerEnd::Finished(FinishedAnswer { text, calls: Vec::new(), reason, usage })
    }
}

impl CompletionUsage {
    /// Returns the sum, or `None` if no model reported its tokens.
    fn from_usage(usage: &[TokenUsage]) -> Option<Self> {
        let mut total = TokenUsage::default();
        usage.iter().for_each(|usage| total.add(usage));
        let (input, output) = (total.input_tokens, total.output_tokens);
        input.or(output)?;
        let (input, output) = (input.unwrap_or(0), output.unwrap_or(0));
        Some(Self {
            prompt_tokens: input,
            completion_tokens: output,
            total_tokens: input.saturating_add(output),
            prompt_tokens_details: PromptTokens {
                cached_tokens: total.cached_input_tokens.unwrap_or(0),
            },
            completion_tokens_details: CompletionTokens {
                reasoning_tokens: total.reasoning_tokens.unwrap_or(0),
            },
        })
    }
}
