//! AG-UI's events for pages with TanStack AI. Two things are added at the end of a run: a custom event for each call that the
//! page has to run, without which its client runs none, and metadata, without which its client lets nobody answer an
//! interrupt.

use std::collections::{HashMap, HashSet};

use serde_json::{Value, json};

use agui_protocol::{
    Event, FunctionCall, Interrupt, ToolCallId,
    encode::{ClientTraits, Sse, SseDialect, write_number},
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
    /// The calls of this run, and those that have a result.
    begun: Vec<ToolCallId>,
    answered: HashSet<ToolCallId>,
}

impl SseDialect for TanStackEncoder {
    fn event(&mut self, event: &Event, out: &mut Vec<u8>) {
        self.skip(event);
        let number = self.number.take();
        let mut bound = None;
        if let Event::RunFinished(finished) = event {
            match &finished.outcome {
                Some(RunOutcome::Success { pending_tool_call_ids }) => {
                    self.page_calls(pending_tool_call_ids, out)
                }
                Some(RunOutcome::Interrupt { interrupts }) => {
                    self.answered.extend(
                        interrupts.iter().filter_map(|interrupt| interrupt.tool_call_id.clone()),
                    );
                    self.begun.retain(|id| !self.answered.contains(id));
                    self.page_calls(&self.begun, out);
                    let mut interrupts = interrupts.clone();
                    interrupts
                        .iter_mut()
                        .for_each(|interrupt| bind(interrupt, |id| self.calls.get(id)));
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
                let call =
                    FunctionCall { name: e.tool_call_name.to_string(), arguments: String::new() };
                self.calls.insert(e.tool_call_id.clone(), call);
                self.answered.remove(&e.tool_call_id);
                self.begun.push(e.tool_call_id.clone());
            }
            Event::ToolCallArgs(e) => {
                if let Some(call) = self.calls.get_mut(&e.tool_call_id) {
                    call.arguments.push_str(&e.delta);
                }
            }
            Event::ToolCallResult(e) => _ = self.answered.insert(e.tool_call_id.clone()),
            // It precedes each interrupt, which can be about a call of an earlier run.
            Event::MessagesSnapshot(e) => {
                let calls = e.messages.iter().flat_map(|message| message.tool_calls());
                self.calls = calls.map(|call| (call.id.clone(), call.function.clone())).collect();
            }
            _ => {}
        }
    }
}

impl TanStackEncoder {
    pub(super) fn new(traits: ClientTraits) -> Self {
        Self { sse: Sse::for_client(traits), ..Self::default() }
    }

    /// A call with arguments that are not JSON stays open: the page shows it, and may answer it itself.
    fn page_calls(&self, pending: &[ToolCallId], out: &mut Vec<u8>) {
        for id in pending {
            if let Some(call) = self.calls.get(id)
                && let Some(input) = input(call)
            {
                let value = json!({ "toolCallId": id, "toolName": call.name, "input": input });
                Sse::default().event(&Custom::new(TOOL_INPUT, value).into(), out);
            }
        }
    }
}

/// Adds the metadata without which the client only shows an interrupt. `call` finds the tool call that it is about.
pub(super) fn bind<'a>(
    interrupt: &mut Interrupt,
    call: impl Fn(&ToolCallId) -> Option<&'a FunctionCall>,
) {
    let call = interrupt.tool_call_id.as_ref().and_then(call);
    let name = call.map_or(&interrupt.reason, |call| &call.name);
    // The arguments that will run, if the agent names them.
    let arguments = interrupt.arguments().cloned().map(Value::Object);
    let members = [
        ("kind", json!("approval")),
        ("toolName", json!(name)),
        ("input", arguments.or_else(|| call.and_then(input)).unwrap_or_else(|| json!({}))),
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

#[cfg(test)]
mod tests {
    use super::TanStackEncoder;
    use agui_protocol::encode::Encoder;

    fn call(id: &str, arguments: &str) -> [String; 2] {
        [
            format!(r#"{{"type":"TOOL_CALL_START","toolCallId":"{id}","toolCallName":"pick"}}"#),
            format!(r#"{{"type":"TOOL_CALL_ARGS","toolCallId":"{id}","delta":"{arguments}"}}"#),
        ]
    }

    #[test]
    fn calls_with_whole_arguments_come_before_the_numbered_end_of_the_run() {
        let mut encoder = Encoder::Dialect(Box::<TanStackEncoder>::default());
        let mut out = Vec::new();
        let calls =
            [call("whole", "[1]"), call("none", ""), call("cut", "[1"), call("answered", "[2]")];
        calls.as_flattened().iter().for_each(|json| encoder.skip(json));
        encoder.number(9, &mut out);
        let end = concat!(
            r#"{"type":"RUN_FINISHED","threadId":"t","runId":"r","#,
            r#""outcome":{"type":"success","pendingToolCallIds":["whole","none","cut","unknown"]}}"#
        );
        encoder.line(end, &mut out);
        let run = |id: &str, input: &str| {
            let value = format!(r#"{{"toolCallId":"{id}","toolName":"pick","input":{input}}}"#);
            format!(
                "data: {{\"type\":\"CUSTOM\",\"name\":\"tool-input-available\",\"value\":{value}}}\n\n"
            )
        };
        let expected =
            format!("{}{}id: 9\ndata: {end}\n\n", run("whole", "[1]"), run("none", "{}"));
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }

    #[test]
    fn interrupts_are_bound_to_their_calls_and_keep_their_metadata() {
        let mut encoder = Encoder::Dialect(Box::<TanStackEncoder>::default());
        let mut out = Vec::new();
        call("c", r#"{\"a\":1}"#).iter().for_each(|json| encoder.skip(json));
        let end = concat!(
            r#"{"type":"RUN_FINISHED","threadId":"t","runId":"r","outcome":{"type":"interrupt","interrupts":["#,
            r#"{"id":"1","reason":"tool_call","toolCallId":"c","metadata":{"toolName":"shown"}},"#,
            r#"{"id":"2","reason":"input_required"}]}}"#
        );
        encoder.line(end, &mut out);
        let sent = String::from_utf8(out).unwrap();
        assert!(
            sent.contains(r#""metadata":{"toolName":"shown","kind":"approval","input":{"a":1}}"#),
            "{sent}"
        );
        assert!(
            sent.contains(
                r#""metadata":{"kind":"approval","toolName":"input_required","input":{}}"#
            ),
            "{sent}"
        );
        assert_eq!(sent.matches("data: ").count(), 1, "{sent}");
    }
}
