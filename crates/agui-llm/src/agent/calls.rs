//! The calls of a step while they run: several at a time, each within its time limit, each with one outcome.

use std::{
    future::poll_fn,
    pin::pin,
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
    request_options::MODEL_OPTIONS,
    run_scope::RunScope,
    state,
    subagent::SubagentTask,
    tool_meter::{CallOutcome, MeteredCall},
};
use agui_observe::metrics::ToolOutcome;
use agui_protocol::{JsonObject, RunAgentInput};
use agui_tools::{
    OfferedTool, ToolContext,
    host::{ToolEvents, ToolSession},
};

/// The running calls of a step. Dropping this stops them.
pub(super) struct RunningCalls<'r> {
    calls: BoxStream<'r, CallOutcome>,
    session: &'r ToolSession,
    events: ToolEvents,
    /// An item of `calls` that waits until the events before it are yielded.
    held: Option<Option<CallOutcome>>,
}

impl<'r> RunningCalls<'r> {
    pub(super) fn start(calls: Vec<PendingCall>, run: &RunScope<'r>) -> Self {
        let session = run.session;
        // The reader comes first: without one, nothing can be emitted.
        let events = session.reader();
        let streams: Vec<_> = calls.into_iter().map(|call| start_call(call, run)).collect();
        let calls = stream::iter(streams)
            .flatten_unordered(run.settings.options.parallel_tools.get())
            .boxed();
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
                Poll::Pending => {
                    return self.events.poll_next(cx).map(|event| Some(CallOutcome::Event(event)));
                }
            }
        }
    }
}

fn start_call<'r>(pending: PendingCall, run: &RunScope<'r>) -> BoxStream<'r, CallOutcome> {
    let PendingCall { call, name, tool, edited, action, .. } = pending;
    let open = MeteredCall::start(run.cx, &call, tool, &name, edited);
    let scope = open.scope.clone();
    if scope.records_content() {
        scope.span().record("gen_ai.tool.call.arguments", action.arguments());
    }
    match action {
        CallAction::Done(result) => {
            let outcome = if result.is_ok() { ToolOutcome::Ok } else { ToolOutcome::Refused };
            let (Ok(text) | Err(text)) = result;
            stream::iter([open.end(outcome, text.into(), Vec::new())]).boxed()
        }
        CallAction::State(arguments) => {
            let (session, schema) = (run.session, run.settings.state_schema.as_deref());
            let running = async move {
                let (outcome, content) = match state::change(session, &arguments, schema).await {
                    Ok(()) => (ToolOutcome::Ok, "The state was updated.".to_owned()),
                    Err(error) => (ToolOutcome::Error, format!("Error: {}", error.message())),
                };
                open.end(outcome, content.into(), Vec::new())
            };
            stream::once(running).boxed()
        }
        CallAction::Tool(action) => {
            let (limit, session) = (run.settings.options.tool_timeout, run.session.clone());
            let running = async move {
                let cx =
                    ToolContext::for_call(session, call, name, &action.arguments, action.replies)
                        .within(scope);
                call_tool(&action.tool, action.arguments, &cx, limit, open).await
            };
            stream::once(running).boxed()
        }
        CallAction::Task(task) => run_task(task, run, open),
    }
}

async fn call_tool(
    tool: &OfferedTool,
    arguments: JsonObject,
    cx: &ToolContext,
    limit: Duration,
    open: MeteredCall,
) -> CallOutcome {
    let name = cx.tool_name();
    let (outcome, content) = match within_limit(limit, cx, tool.tool.call(arguments, cx)).await {
        Some(Ok(content)) => (ToolOutcome::Ok, content),
        Some(Err(error)) if error.is_question() => return open.ask(cx.take_questions()),
        Some(Err(error)) => {
            tracing::warn!(tool = name, ?error, "a tool failed");
            (ToolOutcome::Error, format!("Error: {}", error.message()).into())
        }
        None => {
            tracing::warn!(tool = name, ?limit, "a tool took too long and was stopped");
            let seconds = limit.as_secs_f32();
            (
                ToolOutcome::Timeout,
                format!("Error: the tool took longer than {seconds} s and was stopped").into(),
            )
        }
    };
    open.end(outcome, content, cx.take_after_result())
}

/// Returns `None` if a call neither ends nor reports progress within a time.
pub(super) async fn within_limit<T>(
    limit: Duration,
    cx: &ToolContext,
    call: impl Future<Output = T>,
) -> Option<T> {
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

fn run_task<'r>(
    task: SubagentTask,
    run: &RunScope<'r>,
    open: MeteredCall,
) -> BoxStream<'r, CallOutcome> {
    let mut forwarded_props = run.input.forwarded_props.clone();
    // The request chose a model of this agent, and its options. The subagent has its own.
    if let Some(Value::Object(members)) = &mut forwarded_props {
        members.remove(MODEL);
        members.remove(MODEL_OPTIONS);
    }
    let input = RunAgentInput {
        state: Some(Value::clone(&run.session.state())),
        context: run.input.context.clone(),
        forwarded_props,
        ..RunAgentInput::new(run.input.thread_id.clone(), run.input.run_id.clone(), Vec::new())
    };
    let cx = run.cx.within(open.scope.clone());
    task.run(input, cx, open).boxed()
}
