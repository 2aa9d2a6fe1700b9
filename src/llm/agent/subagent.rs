//! Another agent as a tool: it gets a task, works where the client can see it, and its last words are the result.
//!
//! What it sends travels attributed to its invocation. It has a conversation of its own, of one message; it shares the
//! state, and it cannot ask people, for they would answer the run, not the task.

use std::sync::Arc;

use async_stream::stream;
use futures::{Stream, StreamExt as _};
use serde_json::{Value, json};

use super::calls::Outcome;
use crate::{
    agent::{Agent, RunContext},
    protocol::{
        Event, JsonObject, Message, MessageContent, MessageId, RunAgentInput, SubagentRunId, ToolCallId,
        event::{RunOutcome, SubagentError, SubagentFinished, SubagentStarted, ToolCallResult},
    },
    tools::ToolSpec,
};

/// Why a subagent that asks people gets no answer.
const NEEDS_PEOPLE: &str = "a subagent cannot ask people, and this needs an approval or an answer";

/// An agent that is offered as a tool.
#[derive(Clone)]
pub(super) struct Subagent {
    pub(super) name: String,
    pub(super) description: String,
    agent: Arc<dyn Agent>,
}

/// A task for a subagent.
pub(super) struct Task<'o> {
    subagent: &'o Subagent,
    text: String,
    call: ToolCallId,
    parent: Option<MessageId>,
}

impl Subagent {
    pub(super) fn new(name: String, description: String, agent: Arc<dyn Agent>) -> Self {
        Self { name, description, agent }
    }

    /// What a model is told about it.
    pub(super) fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: self.name.clone(),
            description: self.description.clone(),
            parameters: json!({
                "type": "object",
                "properties": {
                    "task": { "type": "string", "description": "The task, with all that has to be known for it." }
                },
                "required": ["task"]
            }),
        }
    }

    /// The task of a call.
    ///
    /// # Errors
    /// What is wrong with the arguments, for the model.
    pub(super) fn task(
        &self,
        arguments: &str,
        call: &ToolCallId,
        parent: Option<&MessageId>,
    ) -> Result<Task<'_>, String> {
        let arguments: JsonObject = serde_json::from_str(arguments)
            .map_err(|error| format!("Error: the arguments are no JSON object: {error}"))?;
        match arguments.get("task") {
            Some(Value::String(text)) => {
                Ok(Task { subagent: self, text: text.clone(), call: call.clone(), parent: parent.cloned() })
            }
            _ => Err("Error: `task` has to be a text".to_owned()),
        }
    }
}

impl<'o> Task<'o> {
    /// Lets the subagent work. `answer` makes the result of the call.
    pub(super) fn carry_out(
        self,
        brief: RunAgentInput,
        cx: RunContext,
        answer: impl Fn(MessageContent, bool) -> Outcome + Send + 'o,
    ) -> impl Stream<Item = Outcome> + Send + 'o {
        let id = SubagentRunId::random();
        let mut started = SubagentStarted::new(id.clone(), self.subagent.name.clone());
        started.description = Some(self.subagent.description.clone());
        started.parent_tool_call_id = Some(self.call);
        started.parent_message_id = self.parent;
        let input = RunAgentInput { messages: vec![Message::user(MessageId::random(), self.text)].into(), ..brief };
        stream! {
            yield Outcome::Event(started.into());
            let mut events = self.subagent.agent.run(input, cx);
            let mut words = LastWords::default();
            let mut ended = Ok(None);
            while let Some(event) = events.next().await {
                match event {
                    Ok(Event::RunFinished(finished)) => {
                        ended = match finished.outcome {
                            None | Some(RunOutcome::Success { .. }) => Ok(finished.result),
                            Some(RunOutcome::Interrupt { interrupts }) => {
                                // Nobody will answer these calls any more.
                                for call in interrupts.into_iter().filter_map(|interrupt| interrupt.tool_call_id) {
                                    let refused = ToolCallResult::new(MessageId::random(), call, NEEDS_PEOPLE);
                                    yield Outcome::Event(owned(refused.into(), &id));
                                }
                                Err(Failure::new("subagent_interrupted", NEEDS_PEOPLE))
                            }
                            Some(RunOutcome::Cancelled) => Err(Failure::new("subagent_cancelled", "it was cancelled")),
                        };
                        break;
                    }
                    Ok(Event::RunError(error)) => {
                        let code = error.code.map_or_else(|| "agent_error".to_owned(), Into::into);
                        ended = Err(Failure { code, message: error.message });
                        break;
                    }
                    // The conversation is the run's, and so is its frame.
                    Ok(Event::RunStarted(_) | Event::MessagesSnapshot(_)) => {}
                    Ok(event) => {
                        words.hear(&event);
                        yield Outcome::Event(owned(event, &id));
                    }
                    Err(error) => {
                        tracing::warn!(subagent = self.subagent.name, ?error, "a subagent failed");
                        ended = Err(Failure::new(error.code(), error.message()));
                        break;
                    }
                }
            }
            drop(events);
            match ended {
                Ok(result) => {
                    let text = match &result {
                        Some(Value::String(text)) => text.clone(),
                        Some(value) => value.to_string(),
                        None => words.0,
                    };
                    let mut finished = SubagentFinished::new(id);
                    finished.result = Some(result.unwrap_or_else(|| text.clone().into()));
                    yield Outcome::Event(finished.into());
                    yield answer(text.into(), false);
                }
                Err(Failure { code, message }) => {
                    let mut error = SubagentError::new(id, message.clone());
                    error.code = Some(code);
                    yield Outcome::Event(error.into());
                    yield answer(format!("Error: {message}").into(), true);
                }
            }
        }
    }
}

struct Failure {
    code: String,
    message: String,
}

impl Failure {
    fn new(code: &str, message: &str) -> Self {
        Self { code: code.to_owned(), message: message.to_owned() }
    }
}

/// Attributes an event to an invocation, unless it belongs to one that this one started.
fn owned(event: Event, id: &SubagentRunId) -> Event {
    match event {
        Event::SubagentStarted(mut started) => {
            started.parent_subagent_run_id.get_or_insert_with(|| id.clone());
            Event::SubagentStarted(started)
        }
        event if event.subagent_run_id().is_none() => event.attributed_to(Some(id.clone())),
        event => event,
    }
}

/// The last message of the subagent's own.
#[derive(Default)]
struct LastWords(String);

impl LastWords {
    fn hear(&mut self, event: &Event) {
        if event.subagent_run_id().is_some() {
            return;
        }
        match event {
            Event::TextMessageStart(_) => self.0.clear(),
            Event::TextMessageContent(content) => self.0.push_str(&content.delta),
            Event::TextMessageChunk(chunk) => {
                if chunk.message_id.is_some() {
                    self.0.clear();
                }
                self.0.push_str(chunk.delta.as_deref().unwrap_or_default());
            }
            _ => {}
        }
    }
}
