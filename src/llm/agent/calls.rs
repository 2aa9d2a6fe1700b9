//! The calls of a turn while they run: several at a time, each within its time limit, each with one outcome.

use std::{
    future::{poll_fn, ready},
    pin::pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use futures::{
    StreamExt as _,
    stream::{self, BoxStream},
};
use serde_json::Value;
use tokio::time::sleep;

use super::{
    model_chain::MODEL,
    plan::{CallAction, PendingCall},
    settings::Settings,
    state,
    subagent::{SubagentTask, TaskItem},
    tool_meter::ToolMeter,
};
use crate::{
    agent::RunContext,
    llm::history::{EDITED, FAILED},
    observe::metrics::ToolOutcome,
    protocol::{
        Event, Interrupt, JsonObject, Message, MessageContent, MessageId, Metadata, RunAgentInput, ToolCallId,
        ToolMessage, event::ToolCallResult,
    },
    tools::{OfferedTool, ToolContext, ToolError, ToolEvents, ToolSession},
};

pub(super) struct CallContext<'r> {
    pub(super) settings: &'r Settings,
    pub(super) input: &'r RunAgentInput,
    pub(super) cx: &'r RunContext,
    pub(super) session: &'r ToolSession,
}

pub(super) enum CallOutcome {
    Event(Event),
    Result(CallResult),
    Questions(Vec<Interrupt>),
}

pub(super) struct CallResult {
    call: ToolCallId,
    content: MessageContent,
    failed: bool,
    edited: Option<JsonObject>,
    /// Events that follow the result.
    after: Vec<Event>,
}

/// Dropping it stops the calls.
pub(super) struct RunningCalls<'r> {
    calls: BoxStream<'r, CallOutcome>,
    session: &'r ToolSession,
    events: ToolEvents,
    /// An item of `calls` that waits until the events before it are yielded.
    held: Option<Option<CallOutcome>>,
}

impl<'r> RunningCalls<'r> {
    /// Changes of the state by `update_state` are made at once, in the order of the calls.
    pub(super) fn start(calls: Vec<PendingCall>, context: &CallContext<'r>) -> Self {
        let session = context.session;
        // The reader comes first: without one, nothing can be emitted.
        let events = session.reader();
        let streams: Vec<_> = calls.into_iter().map(|call| start_call(call, context)).collect();
        let calls = stream::iter(streams).flatten_unordered(context.settings.parallel_tools).boxed();
        Self { calls, session, events, held: None }
    }

    /// Events come in the order of their emission, and before the result of their call.
    pub(super) async fn next(&mut self) -> Option<CallOutcome> {
        poll_fn(|cx| self.poll_next(cx)).await
    }

    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<CallOutcome>> {
        loop {
            if let Poll::Ready(event) = self.events.poll_next(cx) {
                return Poll::Ready(Some(CallOutcome::Event(event)));
            }
            if let Some(outcome) = self.held.take() {
                return Poll::Ready(outcome);
            }
            match self.calls.poll_next_unpin(cx) {
                Poll::Ready(Some(CallOutcome::Event(event))) => {
                    if let Err(error) = self.session.emit(event) {
                        tracing::warn!(?error, "left out an event of a subagent");
                    }
                }
                Poll::Ready(outcome) => self.held = Some(outcome),
                Poll::Pending => return self.events.poll_next(cx).map(|event| Some(CallOutcome::Event(event))),
            }
        }
    }
}

impl CallResult {
    /// Returns the result and what follows it, as events and as a message.
    pub(super) fn into_events_and_message(mut self) -> (Vec<Event>, Message) {
        let mut entries = Vec::new();
        if self.failed {
            entries.push((FAILED.to_owned(), Value::Bool(true)));
        }
        if let Some(edited) = self.edited {
            entries.push((EDITED.to_owned(), Value::Object(edited)));
        }
        let metadata: Option<Metadata> = (!entries.is_empty()).then(|| entries.into_iter().collect());
        let id = MessageId::random();
        let mut event = Event::from(ToolCallResult::new(id.clone(), self.call.clone(), self.content.clone()));
        event.base_mut().set_metadata(metadata.clone());
        let message = Message::Tool(ToolMessage { metadata, ..ToolMessage::new(id, self.content, self.call) });
        self.after.insert(0, event);
        (self.after, message)
    }
}

fn start_call<'r>(pending: PendingCall, context: &CallContext<'r>) -> BoxStream<'r, CallOutcome> {
    let PendingCall { call, name, tool, edited, action, .. } = pending;
    let mut meter = ToolMeter::start(context.cx, &call, tool, &name);
    if meter.scope.records_content() {
        meter.scope.span().record("gen_ai.tool.call.arguments", action.arguments());
    }
    let result_of = |call: ToolCallId| {
        move |content: MessageContent, failed: bool| CallResult { call, content, failed, edited, after: Vec::new() }
    };
    match action {
        CallAction::Immediate(text) => {
            let content = MessageContent::from(text);
            meter.end_with(ToolOutcome::Refused, &content);
            stream::iter([CallOutcome::Result(result_of(call)(content, true))]).boxed()
        }
        CallAction::Known(text) => {
            let content = MessageContent::from(text);
            meter.end_with(ToolOutcome::Ok, &content);
            stream::iter([CallOutcome::Result(result_of(call)(content, false))]).boxed()
        }
        CallAction::State(arguments) => {
            let (content, failed) = match update_state(context.session, &arguments) {
                Ok(()) => ("The state was updated.".into(), false),
                Err(error) => (format!("Error: {}", error.message()).into(), true),
            };
            meter.end_with(ToolOutcome::of_result(failed), &content);
            stream::iter([CallOutcome::Result(result_of(call)(content, failed))]).boxed()
        }
        CallAction::Tool(action) => {
            let (limit, session) = (context.settings.tool_timeout, context.session.clone());
            stream::once(async move {
                let cx = ToolContext::of_call(session, call.clone(), name, action.answers);
                let cx = cx.within(meter.scope.clone());
                match call_tool(&action.tool, action.arguments, &cx, limit).await {
                    Ok((outcome, content)) => {
                        meter.end_with(outcome, &content);
                        drop(meter);
                        let result = result_of(call)(content, outcome != ToolOutcome::Ok);
                        CallOutcome::Result(CallResult { after: cx.take_after_result(), ..result })
                    }
                    Err(questions) => {
                        meter.end(ToolOutcome::Question);
                        drop(meter);
                        CallOutcome::Questions(questions)
                    }
                }
            })
            .boxed()
        }
        CallAction::Task(task) => run_task(task, context, meter, result_of(call)),
    }
}

fn update_state(session: &ToolSession, arguments: &str) -> Result<(), ToolError> {
    session.change_state(|state| state::update(Arc::make_mut(state), arguments).map_err(ToolError::new))
}

/// Returns the content for the model, or the questions that the call waits for.
async fn call_tool(
    tool: &OfferedTool,
    arguments: JsonObject,
    cx: &ToolContext,
    limit: Duration,
) -> Result<(ToolOutcome, MessageContent), Vec<Interrupt>> {
    let name = cx.tool_name();
    match within_limit(limit, cx, tool.tool.call(arguments, cx)).await {
        Some(Ok(content)) => Ok((ToolOutcome::Ok, content)),
        Some(Err(error)) if error.is_question() => Err(cx.take_questions()),
        Some(Err(error)) => {
            tracing::warn!(tool = name, ?error, "a tool failed");
            Ok((ToolOutcome::Error, format!("Error: {}", error.message()).into()))
        }
        None => {
            tracing::warn!(tool = name, ?limit, "a tool took too long and was stopped");
            let seconds = limit.as_secs_f32();
            Ok((ToolOutcome::Timeout, format!("Error: the tool took longer than {seconds} s and was stopped").into()))
        }
    }
}

/// Returns `None` if a call neither ends nor reports progress within a time.
pub(super) async fn within_limit<T>(limit: Duration, cx: &ToolContext, call: impl Future<Output = T>) -> Option<T> {
    let mut call = pin!(call);
    loop {
        tokio::select! {
            biased;
            result = &mut call => return Some(result),
            () = cx.progressed() => {}
            () = sleep(limit) => return None,
        }
    }
}

/// The request chose a model of this agent. The subagent has its own.
fn without_model(mut forwarded_props: Option<Value>) -> Option<Value> {
    if let Some(Value::Object(members)) = &mut forwarded_props {
        members.remove(MODEL);
    }
    forwarded_props
}

fn run_task<'r>(
    task: SubagentTask,
    context: &CallContext<'r>,
    mut meter: ToolMeter,
    result: impl FnOnce(MessageContent, bool) -> CallResult + Send + 'r,
) -> BoxStream<'r, CallOutcome> {
    let input = RunAgentInput {
        state: Some(Value::clone(&context.session.state())),
        context: context.input.context.clone(),
        forwarded_props: without_model(context.input.forwarded_props.clone()),
        ..RunAgentInput::new(context.input.thread_id.clone(), context.input.run_id.clone(), Vec::new())
    };
    let mut result = Some(result);
    let outcomes = task.run(input, context.cx.within(meter.scope.clone())).filter_map(move |item| {
        ready(match item {
            TaskItem::Event(event) => Some(CallOutcome::Event(event)),
            TaskItem::Result { content, failed } => {
                meter.end_with(ToolOutcome::of_result(failed), &content);
                result.take().map(|result| CallOutcome::Result(result(content, failed)))
            }
        })
    });
    outcomes.boxed()
}
