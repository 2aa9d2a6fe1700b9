//! AG-UI's events for pages with TanStack AI. Two things are added at the end of a run: a custom event for each call that the
//! page has to run, without which its client runs none, and metadata, without which its client lets nobody answer an
//! interrupt.

use std::collections::HashMap;

use serde_json::{Value, json};

use crate::protocol::{
    Event, FunctionCall, Interrupt, ToolCallId,
    encode::{Sse, SseDialect, write_number},
    event::{Custom, RunOutcome},
};

/// The custom event that makes the client run a tool of the page.
const TOOL_INPUT: &str = "tool-input-available";

/// Writes the events of one run.
#[derive(Debug, Default)]
pub(crate) struct TanStackEncoder {
    sse: Sse,
    number: Option<u64>,
    calls: HashMap<ToolCallId, FunctionCall>,
}

impl SseDialect for TanStackEncoder {
    fn event(&mut self, event: &Event, out: &mut Vec<u8>) {
        self.skip(event);
        let number = self.number.take();
        let mut bound = None;
        if let Event::RunFinished(finished) = event {
            match &finished.outcome {
                Some(RunOutcome::Success { pending_tool_call_ids }) => self.page_calls(pending_tool_call_ids, out),
                Some(RunOutcome::Interrupt { interrupts }) => {
                    let mut interrupts = interrupts.clone();
                    interrupts.iter_mut().for_each(|interrupt| bind(interrupt, |id| self.calls.get(id)));
                    let mut finished = (**finished).clone();
                    finished.outcome = Some(RunOutcome::Interrupt { interrupts });
                    bound = Some(Event::from(finished));
                }
                Some(RunOutcome::Cancelled) | None => {}
            }
        }
        // The client drops the second event of a number, and reconnects after the last number that it has read.
        if let Some(number) = number {
            write_number(number, out);
        }
        self.sse.event(bound.as_ref().unwrap_or(event), out);
    }

    fn number(&mut self, number: u64, _: &mut Vec<u8>) {
        self.number = Some(number);
    }

    fn skip(&mut self, event: &Event) {
        match event {
            Event::ToolCallStart(e) => {
                let call = FunctionCall { name: e.tool_call_name.to_string(), arguments: String::new() };
                self.calls.insert(e.tool_call_id.clone(), call);
            }
            Event::ToolCallArgs(e) => {
                if let Some(call) = self.calls.get_mut(&e.tool_call_id) {
                    call.arguments.push_str(&e.delta);
                }
            }
            // An interrupt can be about a call of an earlier run.
            Event::MessagesSnapshot(e) => {
                let calls = e.messages.iter().flat_map(|message| message.tool_calls());
                self.calls.extend(calls.map(|call| (call.id.clone(), call.function.clone())));
            }
            _ => {}
        }
    }
}

impl TanStackEncoder {
    /// A call with arguments that are not JSON stays open: the page shows it, and may answer it itself.
    fn page_calls(&mut self, pending: &[ToolCallId], out: &mut Vec<u8>) {
        for id in pending {
            if let Some(call) = self.calls.get(id)
                && let Some(input) = input(call)
            {
                let value = json!({ "toolCallId": id, "toolName": call.name, "input": input });
                self.sse.event(&Custom::new(TOOL_INPUT, value).into(), out);
            }
        }
    }
}

/// Adds the metadata without which the client only shows an interrupt. `call` finds the tool call that it is about.
pub(super) fn bind<'a>(interrupt: &mut Interrupt, call: impl Fn(&ToolCallId) -> Option<&'a FunctionCall>) {
    let call = interrupt.tool_call_id.as_ref().and_then(call);
    let name = call.map_or(&interrupt.reason, |call| &call.name);
    let members = [
        ("kind", json!("approval")),
        ("toolName", json!(name)),
        ("input", call.and_then(input).unwrap_or_else(|| json!({}))),
    ];
    let metadata = interrupt.metadata.get_or_insert_default();
    for (member, value) in members {
        metadata.entry(member).or_insert(value);
    }
}

/// Returns the arguments; `None` if the model wrote something that is not JSON.
fn input(call: &FunctionCall) -> Option<Value> {
    match call.arguments.trim() {
        "" => Some(json!({})),
        arguments => serde_json::from_str(arguments).ok(),
    }
}
