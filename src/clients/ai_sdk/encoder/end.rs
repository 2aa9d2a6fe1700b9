//! The end of a run: its reason, the questions to the person, and the calls for the page.

use serde_json::{Value, json};

use super::{AiSdkEncoder, chunk::write};
use crate::clients::ai_sdk::part::{Ask, INTERRUPT, input};
use agui_protocol::{
    FunctionCall, Interrupt, ToolCallId,
    event::{RunError, RunFinished, RunOutcome},
};

const DONE: &[u8] = b"data: [DONE]\n\n";

impl AiSdkEncoder {
    pub(super) fn finish(&mut self, finished: &RunFinished, out: &mut Vec<u8>) {
        self.begin(None, out);
        for activity in std::mem::take(&mut self.unwritten) {
            self.write_activity(&activity, out);
        }
        let reason = match &finished.outcome {
            Some(RunOutcome::Interrupt { interrupts }) => {
                interrupts.iter().for_each(|interrupt| self.ask(interrupt, out));
                "tool-calls"
            }
            Some(RunOutcome::Success { pending_tool_call_ids: pending }) if !pending.is_empty() => {
                pending.iter().for_each(|call| self.hand_over(call, out));
                "tool-calls"
            }
            Some(RunOutcome::Cancelled) => {
                self.end_step(out);
                write(&json!({ "type": "abort", "reason": "The run was stopped." }), out);
                "interrupted"
            }
            Some(RunOutcome::Success { .. }) | None => {
                // A page that finds its own replies in the last step would send them again.
                if self.step.number == 0 {
                    write(&json!({ "type": "start-step" }), out);
                    self.step.is_open = true;
                }
                let result = finished.result.as_ref();
                match result.and_then(|result| result.pointer("/truncated/reason")?.as_str()) {
                    None => "stop",
                    Some("length" | "context_full") => "length",
                    Some("filtered" | "refused") => "content-filter",
                    Some(_) => "other",
                }
            }
        };
        self.end_step(out);
        self.end(json!({ "usage": finished.usage }), reason, out);
    }

    pub(super) fn fail(&mut self, error: &RunError, out: &mut Vec<u8>) {
        self.begin(None, out);
        self.end_step(out);
        write(&json!({ "type": "error", "errorText": error.message }), out);
        self.end(json!({ "usage": error.usage }), "error", out);
    }

    /// Ends the stream. The metadata make the page show the last step.
    fn end(&self, mut metadata: Value, reason: &str, out: &mut Vec<u8>) {
        metadata["runId"] = json!(self.run_id);
        write(&json!({ "type": "message-metadata", "messageMetadata": metadata }), out);
        write(&json!({ "type": "finish", "finishReason": reason }), out);
        out.extend_from_slice(DONE);
    }

    /// Gives a call to the page that the page has not offered a tool for in this request.
    fn hand_over(&mut self, call: &ToolCallId, out: &mut Vec<u8>) {
        let Some(shown) = self.calls.get(call) else { return };
        let function = &shown.function;
        if shown.step == self.step.number
            && !self.page_tools.contains(&function.name)
            && let Ok(input) = input(&function.arguments)
        {
            let chunk = json!({
                "type": "tool-input-available", "toolCallId": call, "toolName": function.name,
                "input": input, "providerExecuted": false,
            });
            write(&chunk, out);
        }
    }

    /// Asks the person: for approval of a call, or with a call that the page answers.
    fn ask(&mut self, interrupt: &Interrupt, out: &mut Vec<u8>) {
        let call = interrupt.tool_call_id.as_ref();
        let shown = call.and_then(|call| self.calls.get(call)).map(|call| &call.function);
        let earlier = || self.earlier_calls.get(call?);
        let ask = Ask::new(interrupt, shown.or_else(earlier));
        let step = self.calls.get(&ask.call).map(|call| call.step);
        // The page looks for the part in the open step only, and would get a second one.
        let is_in_earlier_step = step.is_some_and(|step| step != self.step.number);
        if !(ask.is_approval && is_in_earlier_step) {
            if step.is_none() {
                let function =
                    FunctionCall { name: ask.name.clone(), arguments: ask.input.to_string() };
                self.begin_call(&ask.call.as_str().into(), &ask.call, function, out);
            }
            let mut chunk = json!({
                "type": "tool-input-available", "toolCallId": ask.call, "toolName": ask.name,
                "input": ask.input, "providerExecuted": ask.is_approval,
            });
            if let Some(metadata) = ask.metadata() {
                chunk["providerMetadata"] = metadata;
            }
            if !ask.is_approval {
                chunk["toolMetadata"] = json!({ INTERRUPT: interrupt });
            }
            write(&chunk, out);
        }
        if ask.is_approval {
            let mut chunk = json!({
                "type": "tool-approval-request", "approvalId": interrupt.id,
                "toolCallId": ask.call, "approvalDescriptor": interrupt,
            });
            if let Some(message) = &interrupt.message {
                chunk["reason"] = message.as_str().into();
            }
            write(&chunk, out);
        }
    }
}
