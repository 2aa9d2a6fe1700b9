//! User interfaces that agents draw: activities made from the arguments of tool calls, while these
//! stream in.
//!
//! [`begin`] decides at the start of a run whether the run draws anything. If so, its [`Drawing`]
//! processes events between the agent and the guard. Other runs have no cost after that.

pub mod a2ui;
pub mod arguments;
mod emitter;
mod sandboxed_ui;
mod surface;

use std::{collections::HashSet, sync::Arc};

use futures::StreamExt as _;
use indexmap::IndexSet;
use parking_lot::Mutex;
use serde_json::json;

use self::{
    a2ui::{RENDER, add_click, click_mark},
    sandboxed_ui::SandboxedUi,
    surface::Surface,
};
use crate::{Agent, AppRequest, Drawing, EventStream, RunContext, RunSurfaces, event_stream};
use agui_protocol::{
    Event, MessageId, RunAgentInput, ToolCallId,
    event::{RunOutcome, ToolCallResult},
};

/// Surfaces that servers draw ([`BeginDrawing`](crate::BeginDrawing)): A2UI surfaces, and HTML in a sandboxed frame.
pub fn begin(
    agent: &dyn Agent,
    input: &mut RunAgentInput,
    cx: &mut RunContext,
) -> Option<Box<dyn Drawing>> {
    let surfaces = a2ui::surfaces(agent.a2ui(), input);
    let shows_html = input.tool(sandboxed_ui::TOOL).is_some();
    if surfaces.is_none() && !shows_html || AppRequest::is_in(input) {
        return None;
    }
    let mut click = None;
    if let Some(surfaces) = &surfaces {
        a2ui::add_guide(surfaces, input);
        click = if cx.take_mark(&click_mark()) { None } else { add_click(input) };
    }
    cx.surfaces.clone_from(&surfaces);
    let projection =
        Arc::new(Mutex::new(Projection { shows_html, surfaces, ..Projection::default() }));
    Some(Box::new(RunDrawing { projection, click, cx: cx.clone() }))
}

struct RunDrawing {
    projection: Arc<Mutex<Projection>>,
    /// The events of the click that the run begins with.
    click: Option<[Event; 4]>,
    cx: RunContext,
}

impl Drawing for RunDrawing {
    fn draw(&mut self, mut events: EventStream) -> EventStream {
        let projection = self.projection.clone();
        let click = self.click.take();
        let cx = self.cx.clone();
        event_stream(async_stream::try_stream! {
            if let Some(click) = click {
                for event in click {
                    yield event;
                }
                cx.mark(click_mark());
            }
            let mut ready = Vec::new();
            while let Some(event) = events.next().await.transpose()? {
                projection.lock().pass(event, &mut ready);
                for event in ready.drain(..) {
                    yield event;
                }
            }
            projection.lock().end_successfully(&mut ready);
            for event in ready {
                yield event;
            }
        })
    }

    fn stop(&mut self) -> Vec<Event> {
        let mut ready = Vec::new();
        self.projection.lock().end(&mut ready);
        ready
    }
}

/// The calls without results that are examined when a surface begins or a result arrives, the
/// newest ones.
const MAX_OTHERS: usize = 1024;

/// The calls of a run that are shown as activities.
#[derive(Default)]
struct Projection {
    shows_html: bool,
    surfaces: Option<Arc<RunSurfaces>>,
    open: Vec<Projected>,
    /// The call that chunks have opened: it has no end event.
    chunked: Option<ToolCallId>,
    /// The activity of the last failed attempt to render a surface, and whether it was painted
    /// before.
    failed: Option<(MessageId, bool)>,
    painted: HashSet<String>,
    /// Calls of other tools that wait for their results, with their messages.
    others: Vec<(ToolCallId, Option<MessageId>)>,
    /// Calls of `render_a2ui` without a result.
    unanswered: IndexSet<ToolCallId>,
}

/// A call that is shown as an activity.
enum Projected {
    Html(SandboxedUi),
    Surface(Box<Surface>),
}

impl Projected {
    fn call(&self) -> &ToolCallId {
        match self {
            Self::Html(html) => &html.call,
            Self::Surface(surface) => &surface.call,
        }
    }
}

impl Projection {
    /// Adds an event and its activities. An activity begins before its call begins, and ends before
    /// its call ends.
    fn pass(&mut self, event: Event, ready: &mut Vec<Event>) {
        match &event {
            Event::ToolCallStart(start) => {
                self.begin(
                    &start.tool_call_id,
                    &start.tool_call_name,
                    start.parent_message_id.as_ref(),
                    ready,
                );
            }
            Event::ToolCallChunk(chunk) => {
                if chunk.tool_call_id.is_some() && chunk.tool_call_id != self.chunked {
                    self.end_chunked(ready);
                    self.chunked.clone_from(&chunk.tool_call_id);
                    if let (Some(id), Some(name)) = (&chunk.tool_call_id, &chunk.tool_call_name) {
                        self.begin(id, name, chunk.parent_message_id.as_ref(), ready);
                    }
                }
            }
            Event::ActivitySnapshot(_)
            | Event::ActivityDelta(_)
            | Event::Raw(_)
            | Event::ToolCallArgs(_) => {}
            Event::ToolCallEnd(end) => self.end_call(&end.tool_call_id, ready),
            Event::RunFinished(finished) => match finished.outcome {
                Some(RunOutcome::Interrupt { .. } | RunOutcome::Cancelled) => self.end(ready),
                _ => self.end_successfully(ready),
            },
            _ => self.end_chunked(ready),
        }
        let (call, delta) = match &event {
            Event::ToolCallArgs(args) => (Some(&args.tool_call_id), Some(&args.delta)),
            Event::ToolCallChunk(chunk) => (self.chunked.as_ref(), chunk.delta.as_ref()),
            _ => (None, None),
        };
        let open = self.open.iter_mut().find(|open| Some(open.call()) == call);
        let change = open.zip(delta).and_then(|(open, delta)| match open {
            Projected::Html(html) => html.push(delta),
            Projected::Surface(surface) => surface.push(delta),
        });
        let painted = match &event {
            Event::ToolCallResult(result) => self.result(result),
            _ => Vec::new(),
        };
        ready.push(event);
        ready.extend(change);
        ready.extend(painted);
    }

    fn begin(
        &mut self,
        call: &ToolCallId,
        name: &str,
        message: Option<&MessageId>,
        ready: &mut Vec<Event>,
    ) {
        match (name, &self.surfaces) {
            (sandboxed_ui::TOOL, _) if self.shows_html => {
                let html = SandboxedUi::new(call.clone());
                ready.push(html.start());
                self.open.push(Projected::Html(html));
            }
            (RENDER, Some(run)) => {
                self.unanswered.insert(call.clone());
                if !run.has_given_up() {
                    // Calls of one message run in parallel. If a call of an earlier message is
                    // still running, this call is a part of it.
                    let outer =
                        self.others.iter().rev().find(|(_, other)| other.as_ref() != message);
                    let earlier = self.failed.take().map(|(activity, _)| activity);
                    let surface =
                        Surface::new(call.clone(), outer.map(|(id, _)| id), earlier, run.clone());
                    ready.extend(surface.start());
                    self.open.push(Projected::Surface(Box::new(surface)));
                }
            }
            (_, Some(_)) => {
                if self.others.len() == MAX_OTHERS {
                    self.others.remove(0);
                }
                self.others.push((call.clone(), message.cloned()));
            }
            _ => {}
        }
    }

    fn end_call(&mut self, call: &ToolCallId, ready: &mut Vec<Event>) {
        if let Some(at) = self.open.iter().position(|open| open.call() == call) {
            let ended = self.open.remove(at);
            self.end_projected(ended, ready);
        }
    }

    fn end_projected(&mut self, ended: Projected, ready: &mut Vec<Event>) {
        match ended {
            Projected::Html(html) => ready.push(html.end()),
            Projected::Surface(mut surface) => {
                ready.extend(surface.end());
                if surface.is_retried() {
                    self.failed = Some((surface.activity.clone(), surface.is_painted));
                }
                self.painted.extend(surface.id().filter(|_| surface.is_painted).map(str::to_owned));
            }
        }
    }

    fn end_chunked(&mut self, ready: &mut Vec<Event>) {
        if let Some(call) = self.chunked.take() {
            self.end_call(&call, ready);
        }
    }

    /// Returns the surfaces that the result of a tool paints.
    fn result(&mut self, result: &ToolCallResult) -> Vec<Event> {
        let call = &result.tool_call_id;
        self.others.retain(|(other, _)| other != call);
        self.unanswered.swap_remove(call);
        match self.surfaces {
            None => Vec::new(),
            Some(_) => {
                surface::result_events(call, &result.content.text(), |id| self.painted.contains(id))
            }
        }
    }

    /// Ends all activities.
    fn end(&mut self, ready: &mut Vec<Event>) {
        self.unanswered.clear();
        for open in std::mem::take(&mut self.open) {
            self.end_projected(open, ready);
        }
        if let (Some((activity, false)), Some(run)) = (self.failed.take(), &self.surfaces) {
            ready.push(Surface::give_up(&activity, run));
        }
    }

    /// Ends all activities, and answers the calls of `render_a2ui` of agents that leave this to their front end.
    fn end_successfully(&mut self, ready: &mut Vec<Event>) {
        let unanswered = std::mem::take(&mut self.unanswered);
        self.end(ready);
        for call in unanswered {
            let content = json!({ "status": "rendered" }).to_string();
            ready.push(ToolCallResult::new(MessageId::random(), call, content).into());
        }
    }
}

#[cfg(test)]
mod tests;
