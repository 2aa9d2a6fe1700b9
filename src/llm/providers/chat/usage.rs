//! Token counts of chat completions, as the protocol counts them.

use serde_json::Value;

use crate::{llm::providers::wire::OPENAI, protocol::TokenUsage};

/// A missing count stays absent.
pub(super) fn usage(model: &str, value: &Value) -> Option<TokenUsage> {
    let count = |path: &str| value.pointer(path).and_then(Value::as_u64);
    let input_tokens = count("/prompt_tokens");
    let output = count("/completion_tokens");
    let total = count("/total_tokens");
    if input_tokens.is_none() && output.is_none() && total.is_none() {
        return None;
    }
    let reasoning_tokens = count("/completion_tokens_details/reasoning_tokens");
    let sum = |a: Option<u64>, b: Option<u64>| a?.checked_add(b?);
    // Some providers count reasoning apart from the output, as their total shows. In the protocol it is a part of it.
    let with_reasoning = sum(output, reasoning_tokens);
    let beside = reasoning_tokens.is_some_and(|count| count > 0)
        && total.is_some()
        && total == sum(input_tokens, with_reasoning);
    let output_tokens = if beside { with_reasoning } else { output };
    Some(TokenUsage {
        provider: Some(OPENAI.to_owned()),
        model: Some(model.to_owned()),
        input_tokens,
        output_tokens,
        total_tokens: total.or_else(|| sum(input_tokens, output_tokens)),
        reasoning_tokens,
        cached_input_tokens: count("/prompt_tokens_details/cached_tokens")
            .or_else(|| count("/prompt_cache_hit_tokens")),
        cache_write_input_tokens: None,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn missing_counts_are_absent_and_zeros_are_kept() {
        let read = |value| {
            usage("m", &value).map(|usage| {
                [
                    usage.input_tokens,
                    usage.output_tokens,
                    usage.total_tokens,
                    usage.reasoning_tokens,
                    usage.cached_input_tokens,
                ]
            })
        };
        assert_eq!(read(json!(null)), None);
        assert_eq!(read(json!({"prompt_tokens": null})), None);
        assert_eq!(read(json!({"prompt_tokens": 3})), Some([Some(3), None, None, None, None]));
        assert_eq!(
            read(json!({"prompt_tokens": 3, "completion_tokens": 4, "prompt_tokens_details": {"cached_tokens": 0}})),
            Some([Some(3), Some(4), Some(7), None, Some(0)])
        );
        let inside = json!({"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7, "completion_tokens_details": {"reasoning_tokens": 2}});
        assert_eq!(read(inside), Some([Some(3), Some(4), Some(7), Some(2), None]));
        let beside = json!({"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 9, "completion_tokens_details": {"reasoning_tokens": 2}});
        assert_eq!(read(beside), Some([Some(3), Some(6), Some(9), Some(2), None]));
    }
}
