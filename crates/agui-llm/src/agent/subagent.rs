//! Another agent as a tool: it gets a task, and the text of its last message is the result.
//!
//! It has a conversation of its own, and shares the state. Its questions to a person are those of the run (`suspended.rs`).

use std::sync::Arc;

use async_stream::stream;
use futures::{Stream, StreamExt as _};
use serde_json::{Value, json};

use super::{
    suspended::{SuspendedTask, raised},
    task_ids::TaskIds,
    tool_meter::{CallOutcome, MeteredCall},
};
use agui_agent::{Agent, AgentEffects, AgentError, RunContext};
use agui_base::RunErrorCode;
use agui_observe::{
    metrics::ToolOutcome,
    telemetry::{AgentEnd, begin_agent, end_agent},
};
use agui_protocol::{
    Event, Interrupt, Message, MessageId, RunAgentInput, SubagentRunId, ToolCall, ToolCallId,
    event::{RunOutcome, SubagentError, SubagentFinished, SubagentOutcome, SubagentStarted},
};
use agui_tools::{ToolSpec, host::CallArguments};

/// The member of the result of a run whose last answer ended before the model was done.
pub(super) const TRUNCATED_MEMBER: &str = "truncated";

pub(super) struct Subagent {
    pub(super) name: String,
    pub(super) description: String,
    pub(super) agent: Arc<dyn Agent>,
}

pub(super) struct SubagentTask {
    subagent: Arc<Subagent>,
    pub(super) text: String,
    call: ToolCallId,
    parent: MessageId,
    /// The suspended task that this one continues, and its messages until then.
    suspended: Option<(SuspendedTask, Vec<Message>)>,
}

pub(super) fn spec(subagent: &Subagent) -> ToolSpec {
    let parameters = json!({
        "type": "object",
        "properties": {
            "task": { "type": "string", "description": "The task, with all that has to be known for it." }
        },
        "required": ["task"]
    });
    ToolSpec::new(subagent.name.clone(), subagent.description.clone(), parameters)
}

impl SubagentTask {
    /// A task with `suspended` continues with the replies to its questions.
    pub(super) fn from_call(
        subagent: &Arc<Subagent>,
        call: &ToolCall,
        parent: &MessageId,
        suspended: Option<(SuspendedTask, Vec<Message>)>,
    ) -> Result<Self, String> {
        let arguments = CallArguments::read(&call.function.arguments)
            .map_err(|problem| format!("Error: {problem}"))?;
        let Some(Value::String(text)) = arguments.object.get("task") else {
            return Err("Error: `task` has to be a string".to_owned());
        };
        let subagent = subagent.clone();
        let text = text.clone();
        Ok(Self { subagent, text, call: call.id.clone(), parent: parent.clone(), suspended })
    }

    pub(super) fn is_repeatable(&self) -> bool {
        self.subagent.agent.effects() == AgentEffects::None
    }

    /// Streams the task's events and ends with the outcome of the call. `input` has no messages.
    /// `cx` is the call's.
    pub(super) fn run(
        self,
        input: RunAgentInput,
        cx: RunContext,
        open: MeteredCall,
    ) -> impl Stream<Item = CallOutcome> + Send {
        let scope = begin_agent(
            cx.trace(),
            &self.subagent.name,
            cx.thread_id().as_str(),
            cx.run_id().as_str(),
        );
        let id =
            self.suspended.as_ref().map_or_else(SubagentRunId::random, |(task, _)| task.id.clone());
        let cx = cx.within(scope.clone()).for_task(id.clone());
        let started = self.started(id.clone());
        let (suspended, earlier) = self.suspended.unzip();
        let mut ids = TaskIds::new(cx.clone());
        let mut messages = vec![Message::user(MessageId::random(), self.text)];
        messages.extend(earlier.unwrap_or_default());
        ids.keep(&messages);
        let resume = suspended.map(|task| task.replies).unwrap_or_default();
        let input = RunAgentInput { messages: messages.into(), resume, ..input };
        stream! {
            yield CallOutcome::Event(started);
            let mut events = self.subagent.agent.run(input, cx);
            let mut last_message = String::new();
            let mut end = Ok(None);
            while let Some(event) = events.next().await {
                match event {
                    Ok(Event::RunFinished(finished)) => {
                        end = match finished.outcome {
                            None | Some(RunOutcome::Success { .. }) => Ok(finished.result),
                            Some(RunOutcome::Interrupt { interrupts }) => {
                                drop(events);
                                let raised = |interrupt| raised(interrupt, &id, &self.call, &ids);
                                let questions: Vec<_> = interrupts.into_iter().map(raised).collect();
                                end_agent(&scope, &AgentEnd { outcome: "interrupted", code: None, input_tokens: None, output_tokens: None });
                                yield CallOutcome::Event(suspension(id, &questions));
                                yield open.ask(questions);
                                return;
                            }
                            Some(RunOutcome::Cancelled) => Err(AgentError::new("subagent_cancelled", "it was cancelled")),
                        };
                        break;
                    }
                    Ok(Event::RunError(error)) => {
                        let code: String = error.code.map_or_else(|| RunErrorCode::AgentError.as_str().to_owned(), Into::into);
                        end = Err(AgentError::new(code, error.message));
                        break;
                    }
                    // The messages and the frame of the stream are the parent run's.
                    Ok(Event::RunStarted(_) | Event::MessagesSnapshot(_)) => {}
                    Ok(event) => {
                        read_last_message(&mut last_message, &event);
                        yield CallOutcome::Event(attributed(event, &id, &mut ids));
                    }
                    Err(error) => {
                        tracing::warn!(subagent = self.subagent.name, ?error, "a subagent failed");
                        end = Err(error);
                        break;
                    }
                }
            }
            drop(events);
            let (outcome, code) = match &end {
                Ok(_) => ("success", None),
                Err(error) => ("failed", Some(error.code())),
            };
            end_agent(&scope, &AgentEnd { outcome, code, input_tokens: None, output_tokens: None });
            let outcome = ToolOutcome::from_result(end.is_err());
            let (event, text) = match end {
                Ok(result) => success(id, result, last_message),
                Err(error) => failure(id, &error),
            };
            yield CallOutcome::Event(event);
            yield open.end(outcome, text.into(), Vec::new());
        }
    }

    /// Returns the first event of the subagent.
    fn started(&self, id: SubagentRunId) -> Event {
        let mut started = SubagentStarted::new(id, self.subagent.name.clone());
        started.description = Some(self.subagent.description.clone());
        started.parent_tool_call_id = Some(self.call.clone());
        started.parent_message_id = Some(self.parent.clone());
        started.into()
    }
}

/// Returns the last event of a subagent that has finished, and the result of the call.
fn success(id: SubagentRunId, result: Option<Value>, last_message: String) -> (Event, String) {
    let text = match &result {
        Some(Value::String(text)) => text.clone(),
        Some(value) => {
            match value.get(TRUNCATED_MEMBER).and_then(|cut| cut.get("reason")?.as_str()) {
                Some(reason) => format!("{last_message}\n(The answer is incomplete: {reason}.)"),
                None => value.to_string(),
            }
        }
        None => last_message,
    };
    let mut finished = SubagentFinished::new(id);
    finished.result = Some(result.unwrap_or_else(|| text.clone().into()));
    (finished.into(), text)
}

/// Returns the last event of a subagent that waits for a person.
fn suspension(id: SubagentRunId, questions: &[Interrupt]) -> Event {
    let interrupt_ids = questions.iter().map(|interrupt| interrupt.id.clone()).collect();
    let mut finished = SubagentFinished::new(id);
    finished.outcome = Some(SubagentOutcome::Suspended { interrupt_ids });
    finished.into()
}

/// Returns the last event of a subagent that has failed, and the result of the call.
fn failure(id: SubagentRunId, error: &AgentError) -> (Event, String) {
    let mut event = SubagentError::new(id, error.message().to_owned());
    event.code = Some(error.code().to_owned());
    (event.into(), format!("Error: {}", error.message()))
}

/// Events of a subagent of the subagent keep their own ids.
fn attributed(mut event: Event, id: &SubagentRunId, ids: &mut TaskIds) -> Event {
    if let Event::SubagentStarted(started) = &mut event {
        started.parent_subagent_run_id.get_or_insert_with(|| id.clone());
    }
    if event.subagent_run_id().is_some() {
        return event;
    }
    ids.replace_in(&mut event);
    event.attributed_to(Some(id.clone()))
}

fn read_last_message(text: &mut String, event: &Event) {
    match event {
        event if event.subagent_run_id().is_some() => {}
        Event::TextMessageStart(_) => text.clear(),
        Event::TextMessageContent(content) => text.push_str(&content.delta),
        Event::TextMessageChunk(chunk) => {
            if chunk.message_id.is_some() {
                text.clear();
            }
            text.push_str(chunk.delta.as_deref().unwrap_or_default());
        }
        _ => {}
    }
}
