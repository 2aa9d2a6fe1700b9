//! One call of a tool and its outcome: its log line, its metrics and its span.

use std::time::Instant;

use crate::call_content::result_text;
use agui_agent::RunContext;
use agui_base::trace::TraceScope;
use agui_observe::{
    metrics::ToolOutcome,
    telemetry::{begin_tool, end_tool},
};
use agui_protocol::{
    Event, Interrupt, JsonObject, Message, MessageContent, MessageId, Metadata, ToolCallId,
    ToolMessage,
    event::ToolCallResult,
    own_names::{EDITED_ARGS, FAILED},
};

pub(super) enum CallOutcome {
    Event(Event),
    /// The result of a call: its event, the events that follow it, and its message.
    Result(Vec<Event>, Message),
    Questions(Vec<Interrupt>),
}

/// A call of a tool without an outcome. Dropping it logs and counts the call.
pub(super) struct MeteredCall {
    cx: RunContext,
    tool: String,
    /// The provider's id of the call.
    call: ToolCallId,
    /// The arguments that a person put in the place of the model's.
    edited: Option<JsonObject>,
    begun: Instant,
    outcome: ToolOutcome,
    pub(super) scope: TraceScope,
}

impl MeteredCall {
    /// `tool` is the tool's name in metrics, `name` the one that the model called.
    pub(super) fn start(
        cx: &RunContext,
        call: &ToolCallId,
        tool: String,
        name: &str,
        edited: Option<JsonObject>,
    ) -> Self {
        let scope = begin_tool(cx.trace(), name, call.as_str());
        let (cx, call) = (cx.clone(), call.clone());
        Self { cx, tool, call, edited, begun: Instant::now(), outcome: ToolOutcome::Stopped, scope }
    }

    /// Ends the call with questions, for whose replies it waits.
    pub(super) fn ask(mut self, questions: Vec<Interrupt>) -> CallOutcome {
        self.outcome = ToolOutcome::Question;
        CallOutcome::Questions(questions)
    }

    /// Ends the call with the content that the model gets. `after`: the events that follow the result.
    pub(super) fn end(
        mut self,
        outcome: ToolOutcome,
        content: MessageContent,
        after: Vec<Event>,
    ) -> CallOutcome {
        self.outcome = outcome;
        if self.scope.records_content() {
            self.scope.span().record("gen_ai.tool.call.result", result_text(&content));
        }
        let mut metadata: Option<Metadata> = None;
        if outcome != ToolOutcome::Ok {
            metadata.get_or_insert_default().insert(FAILED.to_owned(), true.into());
        }
        if let Some(edited) = self.edited.take() {
            metadata.get_or_insert_default().insert(EDITED_ARGS.to_owned(), edited.into());
        }
        let (id, call) = (MessageId::random(), self.call.clone());
        let mut event = Event::from(ToolCallResult::new(id.clone(), call.clone(), content.clone()));
        event.base_mut().set_metadata(metadata.clone());
        let message =
            Message::Tool(ToolMessage { metadata, ..ToolMessage::new(id, call, content) });
        CallOutcome::Result([vec![event], after].concat(), message)
    }
}

impl Drop for MeteredCall {
    fn drop(&mut self) {
        let duration = self.begun.elapsed();
        let (outcome, millis) = (self.outcome.name(), duration.as_millis() as u64);
        tracing::debug!(
            tool = self.tool,
            call = self.call.as_str(),
            outcome,
            millis,
            "tool call ended"
        );
        if let Some(observer) = self.cx.observer() {
            observer.metrics.tools.ended(&self.tool, self.outcome, duration);
        }
        end_tool(&self.scope, self.outcome);
    }
}

#[cfg(test)]
pub(super) mod tests;
