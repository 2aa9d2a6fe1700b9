//! The content of model calls as attributes of their spans: JSON in the form of OpenTelemetry's conventions.
//!
//! The texts of one attribute have at most [`MAX_CONTENT_BYTES`]. The newest texts of a
//! conversation are kept, and long texts are cut.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use smart_default::SmartDefault;

use super::{
    history::content_as_text,
    model::{Block, BlockStart, ModelEvent, ModelRequest, ModelStep, StopReason, ToolResult},
    providers::wire::media,
};
use agui_protocol::{ContentPart, MessageContent};

/// Bounds the memory of spans that wait to be sent.
pub(super) const MAX_CONTENT_BYTES: usize = 16 * 1024;
/// The bytes that a part counts beside its text.
const PART_BYTES: usize = 32;

#[derive(SmartDefault)]
struct Budget(#[default(MAX_CONTENT_BYTES)] usize);

impl Budget {
    /// Returns as much of a text as fits.
    fn take(&mut self, text: &str) -> String {
        let end = text.floor_char_boundary(self.0);
        self.0 = self.0.saturating_sub(end + PART_BYTES);
        if end < text.len() {
            self.0 = 0;
        }
        text[..end].to_owned()
    }

    fn is_used(&self) -> bool {
        self.0 == 0
    }
}

/// Returns the beginning of a text that an attribute can hold.
pub(super) fn bounded(text: &str) -> String {
    Budget::default().take(text)
}

/// Returns the text of a tool's result that an attribute can hold.
pub(super) fn result_text(content: &MessageContent) -> String {
    let mut budget = Budget::default();
    content_as_text(content, |text| budget.take(text))
}

/// `None` without instructions.
pub(super) fn system_instructions(request: &ModelRequest) -> Option<String> {
    let mut budget = Budget::default();
    let texts = request.system.iter().chain(&request.current);
    let parts: Vec<Value> = texts.map(|text| text_part(budget.take(text))).collect();
    (!parts.is_empty()).then(|| Value::from(parts).to_string())
}

pub(super) fn input_messages(request: &ModelRequest) -> String {
    let mut budget = Budget::default();
    let newest = request
        .steps
        .iter()
        .rev()
        .map_while(|step| (!budget.is_used()).then(|| message(step, &mut budget)));
    let mut messages: Vec<Value> = newest.collect();
    messages.reverse();
    Value::from(messages).to_string()
}

fn message(step: &ModelStep, budget: &mut Budget) -> Value {
    let (role, parts): (_, Vec<Value>) = match step {
        ModelStep::Instructions(text) => ("system", vec![text_part(budget.take(text))]),
        ModelStep::User(parts) => {
            ("user", parts.iter().map(|part| user_part(part, budget)).collect())
        }
        ModelStep::Assistant(blocks) => {
            ("assistant", blocks.iter().map(|block| block_part(block, budget)).collect())
        }
        ModelStep::ToolResults(results) => {
            ("tool", results.iter().map(|result| result_part(result, budget)).collect())
        }
    };
    json!({ "role": role, "parts": parts })
}

fn text_part(text: String) -> Value {
    json!({ "type": "text", "content": text })
}

/// Records only the kind of a file.
fn user_part(part: &ContentPart, budget: &mut Budget) -> Value {
    match media(part) {
        Err(text) => text_part(budget.take(text)),
        Ok((kind, _)) => json!({ "type": "file", "modality": kind }),
    }
}

fn block_part(block: &Block, budget: &mut Budget) -> Value {
    match block {
        Block::Reasoning(reasoning) => {
            json!({ "type": "reasoning", "content": budget.take(&reasoning.text) })
        }
        Block::Text(text) => text_part(budget.take(text)),
        Block::Call(call) => {
            let arguments = budget.take(&call.function.arguments);
            call_part(call.id.as_str(), &call.function.name, &arguments)
        }
    }
}

fn call_part(id: &str, name: &str, arguments: &str) -> Value {
    // Arguments that were cut, or that a model wrote wrong, stay a text.
    let arguments = serde_json::from_str(arguments).unwrap_or_else(|_| Value::from(arguments));
    json!({ "type": "tool_call", "id": id, "name": name, "arguments": arguments })
}

fn result_part(result: &ToolResult, budget: &mut Budget) -> Value {
    let response = content_as_text(&result.content, |text| budget.take(text));
    json!({ "type": "tool_call_response", "id": result.call_id, "response": response })
}

/// The answer of a model so far.
#[derive(Default)]
pub(super) struct OutputContent {
    blocks: BTreeMap<usize, (BlockStart, String)>,
    budget: Budget,
}

impl OutputContent {
    pub(super) fn apply(&mut self, event: &ModelEvent) {
        match event {
            ModelEvent::Start { index, block } if !self.budget.is_used() => {
                let _ = self.budget.take("");
                self.blocks.insert(*index, (block.clone(), String::new()));
            }
            ModelEvent::Delta { index, text } => {
                if let Some((_, kept)) = self.blocks.get_mut(index) {
                    let end = text.floor_char_boundary(self.budget.0);
                    self.budget.0 -= end;
                    kept.push_str(&text[..end]);
                }
            }
            ModelEvent::WrittenCalls { text, .. } if !self.budget.is_used() => {
                let text = self.budget.take(text);
                self.blocks.insert(usize::MAX, (BlockStart::Text, text));
            }
            _ => {}
        }
    }

    pub(super) fn to_json(&self, finish_reason: &str) -> String {
        let parts = self.blocks.values().map(|(block, text)| match block {
            BlockStart::Text => text_part(text.clone()),
            BlockStart::Reasoning { .. } => json!({ "type": "reasoning", "content": text }),
            BlockStart::Call { id, name } => call_part(id.as_str(), name, text),
        });
        let parts: Vec<Value> = parts.collect();
        json!([{ "role": "assistant", "parts": parts, "finish_reason": finish_reason }]).to_string()
    }
}

/// Returns the conventions' name of a reason.
pub(super) fn finish_reason(reason: &StopReason) -> &'static str {
    match reason {
        StopReason::Done => "stop",
        StopReason::Calls => "tool_call",
        StopReason::Length | StopReason::ContextFull => "length",
        StopReason::Filtered | StopReason::Refused => "content_filter",
        StopReason::MalformedCall | StopReason::Aborted => "error",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(text: String) -> ModelStep {
        ModelStep::User(vec![ContentPart::text(text)])
    }

    #[test]
    fn the_content_of_a_span_is_bounded_and_the_newest_messages_are_kept() {
        let steps = (0..100).map(|n| user(format!("{n}:{}", "ü".repeat(1000)))).collect();
        let request =
            ModelRequest { steps, system: vec!["s".repeat(100_000)], ..ModelRequest::default() };
        let text = input_messages(&request);
        assert!(text.len() < 2 * MAX_CONTENT_BYTES, "{}", text.len());
        let messages: Vec<Value> = serde_json::from_str(&text).unwrap();
        assert!(
            messages.last().unwrap()["parts"][0]["content"].as_str().unwrap().starts_with("99:"),
            "{text}"
        );
        assert!(system_instructions(&request).unwrap().len() < MAX_CONTENT_BYTES + 100);
        let mut output = OutputContent::default();
        output.apply(&ModelEvent::Start { index: 0, block: BlockStart::Text });
        for _ in 0..10_000 {
            output.apply(&ModelEvent::Delta { index: 0, text: "word ü ".to_owned() });
        }
        for index in 1..10_000 {
            output.apply(&ModelEvent::Start { index, block: BlockStart::Text });
        }
        assert!(output.to_json("stop").len() < MAX_CONTENT_BYTES + 100);
        assert_eq!(bounded(&"x".repeat(100_000)).len(), MAX_CONTENT_BYTES);
        let empty =
            ModelRequest { steps: vec![user(String::new()); 100_000], ..ModelRequest::default() };
        assert!(input_messages(&empty).len() < 10 * MAX_CONTENT_BYTES);
    }

    #[test]
    fn arguments_are_json_unless_a_model_wrote_them_wrong() {
        let mut output = OutputContent::default();
        for (index, arguments) in [(0, r#"{"n":1}"#), (1, "{n")] {
            let block = BlockStart::Call { id: "c".into(), name: "f".to_owned() };
            output.apply(&ModelEvent::Start { index, block });
            output.apply(&ModelEvent::Delta { index, text: arguments.to_owned() });
        }
        let expected = json!([{ "role": "assistant", "finish_reason": "tool_call", "parts": [
            { "type": "tool_call", "id": "c", "name": "f", "arguments": { "n": 1 } },
            { "type": "tool_call", "id": "c", "name": "f", "arguments": "{n" },
        ]}]);
        assert_eq!(serde_json::from_str::<Value>(&output.to_json("tool_call")).unwrap(), expected);
    }
}
