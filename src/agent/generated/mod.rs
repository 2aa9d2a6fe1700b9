//! Interfaces that agents generate: activities made of the arguments of tool calls, while these stream in.
//!
//! [`run`] stands between every agent and the guard of its run. Whether anything is made into activities is decided once, when
//! a run begins; other runs pass unchanged.

mod arguments;
mod sandboxed_ui;

use futures::StreamExt as _;

use self::sandboxed_ui::SandboxedUi;
use super::{Agent, AppRequest, EventStream, RunContext, event_stream};
use crate::protocol::{Event, RunAgentInput, ToolCallId};

/// Starts a run of an agent, and adds the activities.
pub(crate) fn run(agent: &dyn Agent, input: RunAgentInput, cx: RunContext) -> EventStream {
    let Some(mut projection) = Projection::of_run(&input) else { return agent.run(input, cx) };
    let mut events = agent.run(input, cx);
    event_stream(async_stream::stream! {
        let mut ready = Vec::new();
        while let Some(event) = events.next().await {
            let failed = match event {
                Ok(event) => {
                    projection.pass(event, &mut ready);
                    None
                }
                Err(error) => {
                    projection.end(&mut ready);
                    Some(error)
                }
            };
            for event in ready.drain(..) {
                yield Ok(event);
            }
            if let Some(error) = failed {
                yield Err(error);
            }
        }
        projection.end(&mut ready);
        for event in ready {
            yield Ok(event);
        }
    })
}

/// The calls of a run that are shown as activities.
struct Projection {
    open: Vec<SandboxedUi>,
    /// The call that is open by chunks: it has no event at its end.
    chunked: Option<ToolCallId>,
}

impl Projection {
    /// Returns `None` if nothing of the run becomes an activity.
    fn of_run(input: &RunAgentInput) -> Option<Self> {
        let shows_html = input.tool(sandboxed_ui::TOOL).is_some() && !AppRequest::is_in(input);
        shows_html.then_some(Self { open: Vec::new(), chunked: None })
    }

    /// Adds an event and the activities that it makes. An activity begins before its call, and ends before it.
    fn pass(&mut self, event: Event, ready: &mut Vec<Event>) {
        match &event {
            Event::ToolCallStart(start) => self.begin(&start.tool_call_id, &start.tool_call_name, ready),
            Event::ToolCallChunk(chunk) => {
                if chunk.tool_call_id.is_some() && chunk.tool_call_id != self.chunked {
                    self.end_chunked(ready);
                    self.chunked.clone_from(&chunk.tool_call_id);
                    if let (Some(id), Some(name)) = (&chunk.tool_call_id, &chunk.tool_call_name) {
                        self.begin(id, name, ready);
                    }
                }
            }
            Event::ActivitySnapshot(_) | Event::ActivityDelta(_) | Event::Raw(_) | Event::ToolCallArgs(_) => {}
            Event::ToolCallEnd(end) => self.end_call(&end.tool_call_id, ready),
            Event::RunFinished(_) | Event::RunError(_) => self.end(ready),
            _ => self.end_chunked(ready),
        }
        let (call, delta) = match &event {
            Event::ToolCallArgs(args) => (Some(&args.tool_call_id), Some(&args.delta)),
            Event::ToolCallChunk(chunk) => (self.chunked.as_ref(), chunk.delta.as_ref()),
            _ => (None, None),
        };
        let open = self.open.iter_mut().find(|open| Some(&open.call) == call);
        let change = open.zip(delta).and_then(|(open, delta)| open.push(delta));
        ready.push(event);
        ready.extend(change);
    }

    fn begin(&mut self, call: &ToolCallId, name: &str, ready: &mut Vec<Event>) {
        if name == sandboxed_ui::TOOL {
            let ui = SandboxedUi::new(call.clone());
            ready.push(ui.start());
            self.open.push(ui);
        }
    }

    fn end_call(&mut self, call: &ToolCallId, ready: &mut Vec<Event>) {
        ready.extend(self.open.extract_if(.., |open| open.call == *call).map(|open| open.end()));
    }

    fn end_chunked(&mut self, ready: &mut Vec<Event>) {
        if let Some(call) = self.chunked.take() {
            self.end_call(&call, ready);
        }
    }

    /// Ends all activities.
    fn end(&mut self, ready: &mut Vec<Event>) {
        ready.extend(self.open.drain(..).map(|open| open.end()));
    }
}

#[cfg(test)]
mod tests;
