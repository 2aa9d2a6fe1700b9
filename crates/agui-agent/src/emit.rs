//! Constructors for the events of messages, tool calls, reasoning, steps and state, for agents that yield events
//! themselves. [`Emitter`](super::Emitter) sends the same events with less code.

use serde::Serialize;

use agui_protocol::{
    Event, Interrupt, MessageContent, MessageId, ToolCallId,
    event::{
        ReasoningEnd, ReasoningMessageContent, ReasoningMessageEnd, ReasoningMessageStart,
        ReasoningStart, RunFinished, RunOutcome, StepFinished, StepStarted, TextMessageContent,
        TextMessageEnd, TextMessageStart, ToolCallArgs, ToolCallEnd, ToolCallResult, ToolCallStart,
    },
};

/// Makes the events of an assistant's text message.
#[derive(Debug, Clone)]
pub struct TextMessage {
    id: MessageId,
}

impl TextMessage {
    /// A message with a new id.
    #[allow(clippy::new_without_default, reason = "each message has an id of its own")]
    pub fn new() -> Self {
        Self::with_id(MessageId::random())
    }

    /// A message with this id.
    pub fn with_id(id: impl Into<MessageId>) -> Self {
        Self { id: id.into() }
    }

    /// The message's id.
    pub fn id(&self) -> &MessageId {
        &self.id
    }

    /// Opens the message.
    pub fn start(&self) -> Event {
        TextMessageStart::new(self.id.clone()).into()
    }

    /// Appends text. AG-UI forbids empty deltas.
    pub fn delta(&self, text: impl Into<String>) -> Event {
        TextMessageContent::new(self.id.clone(), text).into()
    }

    /// Ends the message.
    pub fn end(&self) -> Event {
        TextMessageEnd::new(self.id.clone()).into()
    }

    /// All events of a new message.
    pub fn whole(text: impl Into<String>) -> Vec<Event> {
        let message = Self::new();
        vec![message.start(), message.delta(text), message.end()]
    }
}

/// Makes the events of a tool call.
#[derive(Debug, Clone)]
pub struct ToolCallEvents {
    id: ToolCallId,
    name: String,
    parent: Option<MessageId>,
}

impl ToolCallEvents {
    /// A call of the tool `name`, with a new id.
    pub fn new(name: impl Into<String>) -> Self {
        Self::with_id(ToolCallId::random(), name)
    }

    /// A call with this id.
    pub fn with_id(id: impl Into<ToolCallId>, name: impl Into<String>) -> Self {
        Self { id: id.into(), name: name.into(), parent: None }
    }

    /// Makes the call a part of an assistant's message.
    pub fn within(mut self, message: &TextMessage) -> Self {
        self.parent = Some(message.id.clone());
        self
    }

    /// The call's id.
    pub fn id(&self) -> &ToolCallId {
        &self.id
    }

    /// Opens the call.
    pub fn start(&self) -> Event {
        let mut start = ToolCallStart::new(self.id.clone(), self.name.clone());
        start.parent_message_id = self.parent.clone();
        start.into()
    }

    /// Appends to the JSON text of the arguments.
    pub fn delta(&self, json: impl Into<String>) -> Event {
        ToolCallArgs::new(self.id.clone(), json).into()
    }

    /// Ends the arguments.
    pub fn end(&self) -> Event {
        ToolCallEnd::new(self.id.clone()).into()
    }

    /// All events of the call but the result. Arguments that JSON cannot express become `null`.
    pub fn whole(&self, arguments: &impl Serialize) -> Vec<Event> {
        let json = serde_json::to_string(arguments).unwrap_or_else(|_| "null".to_owned());
        vec![self.start(), self.delta(json), self.end()]
    }

    /// The result, for the agent's own tools only: the client answers calls of its tools.
    pub fn result(&self, content: impl Into<MessageContent>) -> Event {
        ToolCallResult::new(MessageId::random(), self.id.clone(), content).into()
    }
}

/// Makes the events of a span of reasoning, which has one message.
#[derive(Debug, Clone)]
pub struct ReasoningSpan {
    span: MessageId,
    message: MessageId,
}

impl ReasoningSpan {
    /// A span and a message with new ids.
    #[allow(clippy::new_without_default, reason = "each span has an id of its own")]
    pub fn new() -> Self {
        Self { span: MessageId::random(), message: MessageId::random() }
    }

    /// The message's id.
    pub fn message_id(&self) -> &MessageId {
        &self.message
    }

    /// Opens the span and its message.
    pub fn start(&self) -> [Event; 2] {
        [
            ReasoningStart::new(self.span.clone()).into(),
            ReasoningMessageStart::new(self.message.clone()).into(),
        ]
    }

    /// Appends text. AG-UI forbids empty deltas.
    pub fn delta(&self, text: impl Into<String>) -> Event {
        ReasoningMessageContent::new(self.message.clone(), text).into()
    }

    /// Ends the message and the span.
    pub fn end(&self) -> [Event; 2] {
        [
            ReasoningMessageEnd::new(self.message.clone()).into(),
            ReasoningEnd::new(self.span.clone()).into(),
        ]
    }

    /// All events of a new span.
    pub fn whole(text: impl Into<String>) -> Vec<Event> {
        let reasoning = Self::new();
        let mut events = Vec::from(reasoning.start());
        events.push(reasoning.delta(text));
        events.extend(reasoning.end());
        events
    }
}

/// Makes the events of a step, a label over a part of the run.
#[derive(Debug, Clone)]
pub struct Step {
    name: String,
}

impl Step {
    /// The step `name`.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into() }
    }

    /// Starts the step.
    pub fn start(&self) -> Event {
        StepStarted::new(self.name.clone()).into()
    }

    /// Finishes the step.
    pub fn finish(&self) -> Event {
        StepFinished::new(self.name.clone()).into()
    }
}

/// Events that change the state that agent and client share.
pub mod state {
    use serde_json::Value;

    use agui_protocol::{
        Event, PatchOperation,
        event::{StateDelta, StateSnapshot},
    };

    /// Replaces the state.
    pub fn snapshot(state: impl Into<Value>) -> Event {
        StateSnapshot::new(state).into()
    }

    /// Changes parts of the state: all operations apply, or none does.
    pub fn delta(operations: impl IntoIterator<Item = PatchOperation>) -> Event {
        StateDelta::new(operations.into_iter().collect::<agui_protocol::host::JsonPatch>()).into()
    }
}

/// Ends the run successfully with a return value. A stream that just ends is a success without one.
pub fn finish(cx: &super::RunContext, result: impl Into<serde_json::Value>) -> Event {
    let outcome = RunOutcome::success();
    let mut finished = RunFinished::new(cx.thread_id().clone(), cx.run_id().clone(), outcome);
    finished.result = Some(result.into());
    finished.into()
}

/// Ends the run to ask for something from outside. The next run has the replies in `resume`.
pub fn interrupt(cx: &super::RunContext, interrupts: Vec<Interrupt>) -> Event {
    RunFinished::new(
        cx.thread_id().clone(),
        cx.run_id().clone(),
        RunOutcome::Interrupt { interrupts },
    )
    .into()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_whole_item_has_all_its_events() {
        let (step, call) = (Step::new("search"), ToolCallEvents::new("get_weather"));
        let events = [
            vec![step.start()],
            ReasoningSpan::whole("Beijing, so I need the weather there."),
            call.whole(&json!({ "city": "Beijing" })),
            vec![
                call.result("Sunny, 25°C"),
                state::snapshot(json!({ "city": "Beijing" })),
                step.finish(),
            ],
            TextMessage::whole("It is sunny in Beijing."),
        ];
        assert_eq!(events.map(|events| events.len()), [1, 5, 3, 3, 3]);
    }
}
