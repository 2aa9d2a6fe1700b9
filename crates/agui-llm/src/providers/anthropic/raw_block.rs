//! A content block in the provider's own JSON, put together from its events.

use serde_json::{Value, json};

/// A block that is sent back unchanged.
#[derive(Debug)]
pub(super) struct RawBlock {
    json: Value,
    /// The pieces of the input's JSON.
    input: String,
}

impl RawBlock {
    /// Creates a block with the content of its first event.
    pub(super) fn new(block: &Value) -> Self {
        let json = if block.is_object() { block.clone() } else { json!({}) };
        Self { json, input: String::new() }
    }

    /// Adds the content of a `content_block_delta`. Returns the number of additional bytes.
    pub(super) fn add(&mut self, delta: &Value) -> usize {
        let text = |key: &str| delta.get(key).and_then(Value::as_str).unwrap_or_default();
        match text("type") {
            "text_delta" => self.append("text", text("text")),
            "thinking_delta" => self.append("thinking", text("thinking")),
            "signature_delta" => self.append("signature", text("signature")),
            "input_json_delta" => {
                self.input.push_str(text("partial_json"));
                text("partial_json").len()
            }
            "citations_delta" => {
                let Some(citation) = delta.get("citation") else { return 0 };
                match self.json.get_mut("citations").and_then(Value::as_array_mut) {
                    Some(citations) => citations.push(citation.clone()),
                    None => self.json["citations"] = json!([citation]),
                }
                citation.to_string().len()
            }
            _ => 0,
        }
    }

    /// Returns the whole block, after its last delta.
    pub(super) fn whole(&mut self) -> &Value {
        if let Ok(input) = serde_json::from_str::<Value>(&std::mem::take(&mut self.input)) {
            self.json["input"] = input;
        }
        &self.json
    }

    pub(super) fn finish(mut self) -> Value {
        self.whole();
        self.json
    }

    fn append(&mut self, key: &str, more: &str) -> usize {
        match self.json.get_mut(key) {
            Some(Value::String(text)) => text.push_str(more),
            _ => self.json[key] = more.into(),
        }
        more.len()
    }
}
