//! Token counts of the Gemini API, as the protocol counts them.

use serde_json::Value;

use crate::{llm::providers::wire::GEMINI, protocol::TokenUsage};

/// The counts of a stream are cumulative. Returns `None` if there are none.
///
/// `candidatesTokenCount` does not contain the thoughts, and `promptTokenCount` contains the cached tokens:
/// <https://ai.google.dev/api/generate-content#UsageMetadata>.
pub(super) fn usage(model: &str, value: &Value) -> Option<TokenUsage> {
    let count = |name: &str| value.get(name).and_then(Value::as_u64);
    let sum = |a: Option<u64>, b: Option<u64>| match (a, b) {
        (Some(a), Some(b)) => a.checked_add(b),
        (a, b) => a.or(b),
    };
    let input_tokens = sum(count("promptTokenCount"), count("toolUsePromptTokenCount"));
    let reasoning_tokens = count("thoughtsTokenCount");
    let output_tokens = sum(count("candidatesTokenCount"), reasoning_tokens);
    let total_tokens = count("totalTokenCount").or_else(|| sum(input_tokens, output_tokens));
    total_tokens?;
    Some(TokenUsage {
        provider: Some(GEMINI.to_owned()),
        model: Some(model.to_owned()),
        input_tokens,
        output_tokens,
        total_tokens,
        reasoning_tokens,
        cached_input_tokens: count("cachedContentTokenCount"),
        cache_write_input_tokens: None,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn thoughts_are_a_part_of_the_output() {
        let read = |value| {
            usage("m", &value).map(|usage| {
                let TokenUsage { input_tokens, output_tokens, total_tokens, reasoning_tokens, .. } = usage;
                [input_tokens, output_tokens, total_tokens, reasoning_tokens, usage.cached_input_tokens]
            })
        };
        assert_eq!(read(json!({})), None);
        assert_eq!(read(json!({"trafficType": "ON_DEMAND"})), None);
        let whole = json!({
            "promptTokenCount": 9, "candidatesTokenCount": 23, "thoughtsTokenCount": 302, "totalTokenCount": 334,
            "cachedContentTokenCount": 4,
        });
        assert_eq!(read(whole), Some([Some(9), Some(325), Some(334), Some(302), Some(4)]));
        let thinking = json!({"promptTokenCount": 9, "thoughtsTokenCount": 5});
        assert_eq!(read(thinking), Some([Some(9), Some(5), Some(14), Some(5), None]));
        let with_tool = json!({"promptTokenCount": 9, "toolUsePromptTokenCount": 10, "candidatesTokenCount": 1});
        assert_eq!(read(with_tool), Some([Some(19), Some(1), Some(20), None, None]));
    }
}
