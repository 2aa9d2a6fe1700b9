//! Token counts of the Responses API, as the protocol counts them.

use serde_json::Value;

use crate::{llm::providers::wire::OPENAI, protocol::TokenUsage};

/// A missing count stays absent. Reasoning is a part of the output, and cached tokens are a part of the input.
pub(super) fn usage(model: &str, value: &Value) -> Option<TokenUsage> {
    let count = |path: &str| value.pointer(path).and_then(Value::as_u64);
    let (input_tokens, output_tokens) = (count("/input_tokens"), count("/output_tokens"));
    let sum = || input_tokens?.checked_add(output_tokens?);
    let total_tokens = count("/total_tokens").or_else(sum);
    (input_tokens.is_some() || output_tokens.is_some() || total_tokens.is_some()).then(|| TokenUsage {
        provider: Some(OPENAI.to_owned()),
        model: Some(model.to_owned()),
        input_tokens,
        output_tokens,
        total_tokens,
        reasoning_tokens: count("/output_tokens_details/reasoning_tokens"),
        cached_input_tokens: count("/input_tokens_details/cached_tokens"),
        cache_write_input_tokens: count("/input_tokens_details/cache_write_tokens"),
    })
}
