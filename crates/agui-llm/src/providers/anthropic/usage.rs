//! Token counts of the Messages API, as the protocol counts them.

use serde_json::Value;

use crate::providers::wire::{ANTHROPIC, token_usage};
use agui_protocol::TokenUsage;

/// The provider's counts, in which cached tokens are not a part of the input.
#[derive(Debug, Default)]
pub(super) struct TokenCounts(TokenUsage);

impl TokenCounts {
    /// Reads the counts of an event. They replace earlier values; other counts stay.
    pub(super) fn read(&mut self, usage: &Value) {
        let replace = |count: &mut Option<u64>, path: &str| {
            *count = usage.pointer(path).and_then(Value::as_u64).or(*count)
        };
        replace(&mut self.0.input_tokens, "/input_tokens");
        replace(&mut self.0.cached_input_tokens, "/cache_read_input_tokens");
        replace(&mut self.0.cache_write_input_tokens, "/cache_creation_input_tokens");
        replace(&mut self.0.output_tokens, "/output_tokens");
        replace(&mut self.0.reasoning_tokens, "/output_tokens_details/thinking_tokens");
    }

    /// Returns the counts of the protocol, in which cached tokens are a part of the input.
    pub(super) fn usage(&self, model: &str) -> Option<TokenUsage> {
        let Self(counts) = self;
        let cached =
            [counts.cached_input_tokens, counts.cache_write_input_tokens].into_iter().flatten();
        let input_tokens = counts.input_tokens.map(|input| cached.fold(input, u64::saturating_add));
        let usage = token_usage(ANTHROPIC, model, [input_tokens, counts.output_tokens, None])?;
        let TokenUsage { provider, model, total_tokens, .. } = usage;
        Some(TokenUsage { provider, model, input_tokens, total_tokens, ..counts.clone() })
    }
}
