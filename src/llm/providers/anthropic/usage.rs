//! Token counts of the Messages API, as the protocol counts them.

use serde_json::Value;

use crate::{llm::providers::wire::ANTHROPIC, protocol::TokenUsage};

/// Each event has some of the counts, and replaces earlier values.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct TokenCounts {
    input: Option<u64>,
    cache_read: Option<u64>,
    cache_write: Option<u64>,
    output: Option<u64>,
    reasoning: Option<u64>,
}

impl TokenCounts {
    pub(super) fn read(&mut self, usage: &Value) {
        let count = |path: &str, old: Option<u64>| usage.pointer(path).and_then(Value::as_u64).or(old);
        self.input = count("/input_tokens", self.input);
        self.cache_read = count("/cache_read_input_tokens", self.cache_read);
        self.cache_write = count("/cache_creation_input_tokens", self.cache_write);
        self.output = count("/output_tokens", self.output);
        self.reasoning = count("/output_tokens_details/thinking_tokens", self.reasoning);
    }

    /// The provider counts cached tokens apart from the input; in the protocol they are a part of it.
    pub(super) fn usage(&self, model: &str) -> Option<TokenUsage> {
        if *self == Self::default() {
            return None;
        }
        let cached = self.cache_read.unwrap_or(0).saturating_add(self.cache_write.unwrap_or(0));
        let input_tokens = self.input.map(|input| input.saturating_add(cached));
        let total = || input_tokens?.checked_add(self.output?);
        Some(TokenUsage {
            provider: Some(ANTHROPIC.to_owned()),
            model: Some(model.to_owned()),
            input_tokens,
            output_tokens: self.output,
            total_tokens: total(),
            reasoning_tokens: self.reasoning,
            cached_input_tokens: self.cache_read,
            cache_write_input_tokens: self.cache_write,
        })
    }
}
