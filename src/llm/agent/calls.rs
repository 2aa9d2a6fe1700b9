//! What a model called, carried out: several calls at a time, each within its time, each answered.

use std::{pin::Pin, time::Duration};

use futures::{Stream, StreamExt as _, stream};
use serde_json::Value;
use tokio::time::timeout;

use super::{
    Core,
    answer::Called,
    approval::{self, Decision},
    offer::{Kind, Offer},
    state,
    subagent::Task,
};
use crate::{
    agent::RunContext,
    llm::history::{EDITED, FAILED},
    protocol::{
        Event, Interrupt, JsonObject, Message, MessageContent, MessageId, Metadata, RunAgentInput, ToolCall,
        ToolCallId, ToolMessage, event::ToolCallResult,
    },
    tools::{Approval, OfferedTool, ToolCall as CheckedCall, ToolContext},
};

/// What the calls of a turn come to.
#[derive(Default)]
pub(super) struct Plan<'o> {
    /// What is done now.
    pub(super) work: Vec<Work<'o>>,
    /// What somebody has to agree to first.
    pub(super) asked: Vec<Interrupt>,
    /// Whether the application has something to answer.
    pub(super) awaits_application: bool,
}

/// A call to be answered.
pub(super) struct Work<'o> {
    call: ToolCallId,
    edited: Option<JsonObject>,
    kind: WorkKind<'o>,
}

enum WorkKind<'o> {
    /// The answer is known.
    Told(String),
    Tool(&'o OfferedTool, CheckedCall),
    State(String),
    Task(Task<'o>),
}

/// Where work is done.
pub(super) struct Scene<'o> {
    pub(super) core: &'o Core,
    pub(super) input: &'o RunAgentInput,
    pub(super) cx: &'o RunContext,
    pub(super) tools: &'o ToolContext,
}

/// What comes of carrying out calls.
pub(super) enum Outcome {
    /// Something for the client, by a subagent.
    Event(Event),
    /// A call is answered.
    Answered(Answer),
}

/// The answer to a call.
pub(super) struct Answer {
    pub(super) call: ToolCallId,
    pub(super) content: MessageContent,
    pub(super) failed: bool,
    pub(super) edited: Option<JsonObject>,
}

impl Scene<'_> {
    /// What a subagent is told besides its task.
    fn brief(&self, state: &Value) -> RunAgentInput {
        RunAgentInput {
            state: Some(state.clone()),
            context: self.input.context.clone(),
            forwarded_props: self.input.forwarded_props.clone(),
            ..RunAgentInput::new(self.input.thread_id.clone(), self.input.run_id.clone(), Vec::new())
        }
    }
}

impl Answer {
    /// The answer as an event, and as the message that the event becomes.
    pub(super) fn tell(self) -> (Event, Message) {
        let mut about = Vec::new();
        if self.failed {
            about.push((FAILED.to_owned(), Value::Bool(true)));
        }
        if let Some(edited) = self.edited {
            about.push((EDITED.to_owned(), Value::Object(edited)));
        }
        let metadata: Option<Metadata> = (!about.is_empty()).then(|| about.into_iter().collect());
        let id = MessageId::random();
        let mut event = Event::from(ToolCallResult::new(id.clone(), self.call.clone(), self.content.clone()));
        event.base_mut().set_metadata(metadata.clone());
        let message = Message::Tool(ToolMessage {
            id,
            content: self.content,
            tool_call_id: self.call,
            error: None,
            encrypted_value: None,
            metadata,
            subagent_run_id: None,
        });
        (event, message)
    }
}

impl<'o> Plan<'o> {
    /// What to do about the calls of a turn.
    pub(super) fn of_turn(calls: &[Called], offer: &'o Offer) -> Self {
        let mut plan = Self::default();
        for Called { call, parent } in calls {
            plan.add(call, Some(parent), offer);
        }
        plan
    }

    /// What to do about calls that people were asked about.
    pub(super) fn of_decisions(decided: Vec<(ToolCall, Decision)>, offer: &'o Offer) -> Self {
        let mut plan = Self::default();
        for (call, decision) in decided {
            let (kind, edited) = match decision {
                Decision::Declined(why) => (WorkKind::Told(why), None),
                Decision::Approved { edited } => (approved(&call, edited.as_ref(), offer), edited),
            };
            plan.work.push(Work { call: call.id, edited, kind });
        }
        plan
    }

    fn add(&mut self, call: &ToolCall, parent: Option<&MessageId>, offer: &'o Offer) {
        let arguments = &call.function.arguments;
        let kind = match offer.kind(&call.function.name) {
            Some(Kind::Application) => {
                self.awaits_application = true;
                return;
            }
            Some(Kind::State) => WorkKind::State(arguments.clone()),
            Some(Kind::Subagent(subagent)) => match subagent.task(arguments, &call.id, parent) {
                Ok(task) => WorkKind::Task(task),
                Err(problem) => WorkKind::Told(problem),
            },
            Some(Kind::Server(tool)) => match checked(tool, call, arguments) {
                Err(problem) => WorkKind::Told(problem),
                Ok(checked) if tool.tool.approval(&checked) == Approval::NotNeeded => WorkKind::Tool(tool, checked),
                Ok(_) => {
                    self.asked.push(approval::ask(call, tool.tool.spec()));
                    return;
                }
            },
            None => WorkKind::Told(format!("Error: there is no tool {:?}", short(&call.function.name))),
        };
        self.work.push(Work { call: call.id.clone(), edited: None, kind });
    }
}

fn approved<'o>(call: &ToolCall, edited: Option<&JsonObject>, offer: &'o Offer) -> WorkKind<'o> {
    let Some(Kind::Server(tool)) = offer.kind(&call.function.name) else {
        return WorkKind::Told(format!("Error: there is no tool {:?} any more", short(&call.function.name)));
    };
    let arguments = match edited {
        Some(edited) => serde_json::to_string(edited).unwrap_or_default(),
        None => call.function.arguments.clone(),
    };
    match checked(tool, call, &arguments) {
        Ok(checked) => WorkKind::Tool(tool, checked),
        Err(problem) => WorkKind::Told(problem),
    }
}

fn checked(tool: &OfferedTool, call: &ToolCall, arguments: &str) -> Result<CheckedCall, String> {
    let arguments = tool.validator.check(arguments).map_err(|problem| format!("Error: {problem}"))?;
    Ok(CheckedCall { id: call.id.clone(), name: call.function.name.clone(), arguments })
}

fn short(name: &str) -> String {
    name.chars().take(80).collect()
}

/// Carries out the work, as many calls at a time as may be; what comes of it, as it comes. Changes of the state
/// are made first, in the order of their calls.
pub(super) fn carry_out<'o>(
    work: Vec<Work<'o>>,
    state: &mut Value,
    scene: &Scene<'o>,
) -> impl Stream<Item = Outcome> + Send + use<'o> {
    let mut streams = Vec::with_capacity(work.len());
    for Work { call, edited, kind } in work {
        let answer = move |content: MessageContent, failed: bool| {
            Outcome::Answered(Answer { call: call.clone(), content, failed, edited: edited.clone() })
        };
        let outcomes: Pin<Box<dyn Stream<Item = Outcome> + Send + 'o>> = match kind {
            WorkKind::Told(text) => stream::iter([answer(text.into(), true)]).boxed(),
            WorkKind::State(arguments) => match state::update(state, &arguments) {
                Ok(event) => {
                    stream::iter([Outcome::Event(event), answer("The state was updated.".into(), false)]).boxed()
                }
                Err(problem) => stream::iter([answer(format!("Error: {problem}").into(), true)]).boxed(),
            },
            WorkKind::Tool(tool, call) => {
                let (limit, cx) = (scene.core.tool_timeout, scene.tools);
                stream::once(async move {
                    let (content, failed) = call_tool(tool, call, cx, limit).await;
                    answer(content, failed)
                })
                .boxed()
            }
            WorkKind::Task(task) => task.carry_out(scene.brief(state), scene.cx.clone(), answer).boxed(),
        };
        streams.push(outcomes);
    }
    stream::iter(streams).flatten_unordered(scene.core.parallel_tools)
}

async fn call_tool(tool: &OfferedTool, call: CheckedCall, cx: &ToolContext, limit: Duration) -> (MessageContent, bool) {
    let name = call.name.clone();
    match timeout(limit, tool.tool.call(call, cx)).await {
        Ok(Ok(content)) => (content, false),
        Ok(Err(error)) => {
            tracing::warn!(tool = name, error = &error as &dyn std::error::Error, "a tool failed");
            (format!("Error: {}", error.message()).into(), true)
        }
        Err(_) => {
            tracing::warn!(tool = name, ?limit, "a tool took too long and was stopped");
            (format!("Error: the tool took longer than {} s and was stopped", limit.as_secs_f32()).into(), true)
        }
    }
}
