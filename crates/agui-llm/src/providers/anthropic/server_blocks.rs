//! Blocks of tools that run at the provider, such as web search, which `extra_body` asks for.
//!
//! The API takes an assistant's step back only unchanged: a call to a server tool may still wait
//! for its result, and citations refer to results
//! (<https://platform.claude.com/docs/en/agents-and-tools/tool-use/server-tools>). So these blocks
//! stay in the conversation as hidden reasoning, whose artefact is the JSON of the block.

use std::collections::HashSet;

use serde_json::Value;

use crate::{Block, ModelStep};

/// Returns whether a block of this type is sent back unchanged.
pub(super) fn is_server_block(kind: &str) -> bool {
    matches!(
        kind,
        "server_tool_use" | "mcp_tool_use" | "container_upload" | "compaction" | "fallback"
    ) || (kind.ends_with("_tool_result") && kind != "tool_result")
}

/// Returns the block of an artefact. Signatures and hidden thinking are base64, never JSON.
pub(super) fn from_artefact(artefact: &str) -> Option<Value> {
    if !artefact.starts_with('{') {
        return None;
    }
    let block: Value = serde_json::from_str(artefact).ok()?;
    is_server_block(block.get("type")?.as_str()?).then_some(block)
}

/// The server tools' calls and results of a conversation. The API refuses a call without its
/// result, and a result without its call.
#[derive(Debug, Default)]
pub(super) struct ServerCalls {
    calls: HashSet<String>,
    results: HashSet<String>,
    /// Calls without a result in the last step. The API runs them when it gets the results of the
    /// step's other calls.
    open: HashSet<String>,
}

impl ServerCalls {
    pub(super) fn from_steps(steps: &[ModelStep]) -> Self {
        let mut found = Self::default();
        let last = steps.iter().rposition(|step| !matches!(step, ModelStep::ToolResults(_)));
        for (at, step) in steps.iter().enumerate() {
            let ModelStep::Assistant(blocks) = step else { continue };
            for block in blocks {
                let Block::Reasoning(block) = block else { continue };
                let Some(block) = block.artefact.as_deref().and_then(from_artefact) else {
                    continue;
                };
                if let Some(id) = result_of(&block) {
                    found.results.insert(id.to_owned());
                } else if let Some(id) = call_id(&block) {
                    found.calls.insert(id.to_owned());
                    if Some(at) == last && at + 1 < steps.len() {
                        found.open.insert(id.to_owned());
                    }
                }
            }
        }
        found.open.retain(|id| !found.results.contains(id));
        found
    }

    /// Returns whether a call waits for the API.
    pub(super) fn has_open(&self) -> bool {
        !self.open.is_empty()
    }

    /// Returns whether the block can be sent.
    pub(super) fn is_complete(&self, block: &Value) -> bool {
        match (result_of(block), call_id(block)) {
            (Some(id), _) => self.calls.contains(id),
            (None, Some(id)) => self.results.contains(id) || self.open.contains(id),
            (None, None) => true,
        }
    }
}

fn result_of(block: &Value) -> Option<&str> {
    block.get("tool_use_id")?.as_str()
}

fn call_id(block: &Value) -> Option<&str> {
    block.get("id")?.as_str()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::ModelReasoning;

    fn step(blocks: &[Value]) -> ModelStep {
        let blocks = blocks.iter().map(|block| {
            let artefact = Some(block.to_string());
            Block::Reasoning(ModelReasoning {
                artefact,
                redacted: true,
                ..ModelReasoning::default()
            })
        });
        ModelStep::Assistant(blocks.collect())
    }

    #[test]
    fn only_blocks_of_server_tools_are_read_from_artefacts() {
        let block = json!({"type": "web_search_tool_result", "tool_use_id": "s", "content": []});
        assert_eq!(from_artefact(&block.to_string()), Some(block));
        for artefact in
            ["", "EqQB", "{", "{}", r#"{"type":"text","text":"a"}"#, r#"{"type":"tool_result"}"#]
        {
            assert_eq!(from_artefact(artefact), None, "{artefact}");
        }
    }

    #[test]
    fn a_call_without_its_result_is_complete_only_in_the_last_step() {
        let call = json!({"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}});
        let result = json!({"type": "web_search_tool_result", "tool_use_id": "s", "content": []});
        let both = ServerCalls::from_steps(&[
            step(std::slice::from_ref(&call)),
            step(std::slice::from_ref(&result)),
        ]);
        assert!(both.is_complete(&call) && both.is_complete(&result) && !both.has_open());
        let results = ModelStep::ToolResults(Vec::new());
        let open = ServerCalls::from_steps(&[step(std::slice::from_ref(&call)), results.clone()]);
        assert!(open.is_complete(&call) && open.has_open());
        let left = ServerCalls::from_steps(&[
            step(std::slice::from_ref(&call)),
            results,
            ModelStep::User(Vec::new()),
        ]);
        assert!(!left.is_complete(&call) && !left.has_open());
        let alone = ServerCalls::from_steps(&[step(std::slice::from_ref(&result))]);
        assert!(!alone.is_complete(&result));
        assert!(alone.is_complete(&json!({"type": "container_upload", "file_id": "f"})));
    }
}
