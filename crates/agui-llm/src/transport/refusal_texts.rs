//! Recognizes refusals by the codes and texts of errors: conversations that exceed a model's
//! context window, refusals of a content filter, and calls that the provider could not read.

/// The kind of a provider's refusal or failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FailureKind {
    Unavailable,
    RateLimited,
    /// The account has no credit or quota left. A retry would fail again.
    QuotaUsedUp,
    /// The conversation does not fit into the model's context window.
    ContextTooLong,
    /// A content filter refused the conversation or the answer.
    Filtered,
    /// The model wrote a call that the provider could not read.
    MalformedCall,
    /// A failure that a retry would repeat.
    Other,
}

const TOO_LONG_CODES: &[&str] = &[
    // https://platform.claude.com/docs/en/api/errors: the request has too many bytes
    "request_too_large",
    "context_length_exceeded",
    "context_window_exceeded",
    "exceed_context_size_error",
    "model_context_window_exceeded",
];

/// Parts of messages in lower case. A message must contain all texts of a row.
const TOO_LONG: &[&[&str]] = &[
    // OpenAI, vLLM, Mistral, OpenRouter, DeepSeek
    &["maximum context length"],
    &["context window", "exceed"],
    // vLLM
    &["longer than the maximum model length"],
    // Anthropic: https://docs.claude.com/en/docs/build-with-claude/context-windows
    &["prompt is too long"],
    &["exceed context limit"],
    // Bedrock: https://github.com/aws-samples/bedrock-chat/issues/95, https://github.com/anthropics/claude-code/issues/8637
    &["input is too long for requested model"],
    // Gemini
    &["exceeds the maximum number of tokens"],
    // llama.cpp: https://github.com/ggml-org/llama.cpp/pull/15780
    &["exceeds the available context size"],
    // Ollama
    &["input length exceeds", "context length"],
    // LM Studio
    &["tokens", "context length of only"],
    // xAI
    &["maximum prompt length is"],
    // Moonshot
    &["exceeded model token limit"],
    // Z.ai
    &["prompt exceeds max length"],
    // Qwen
    &["range of input length should be"],
];

const FILTERED_CODES: &[&str] = &[
    // https://learn.microsoft.com/azure/ai-foundry/openai/concepts/content-filter, also within `innererror`; Moonshot
    "content_filter",
    "ResponsibleAIPolicyViolation",
    // OpenAI, LiteLLM, OpenRouter
    "content_policy_violation",
    // https://www.alibabacloud.com/help/en/model-studio/error-code
    "data_inspection_failed",
    "DataInspectionFailed",
    // https://docs.z.ai/api-reference/api-code
    "1301",
];
const FILTERED: &[&[&str]] = &[
    &["content management policy"],
    // DeepSeek
    &["content exists risk"],
    // Moonshot
    &["rejected because it was considered high risk"],
];

const MALFORMED_CALL_CODES: &[&str] = &[
    // https://console.groq.com/docs/tool-use: the text of the call is in `failed_generation`
    "tool_use_failed",
    "MALFORMED_FUNCTION_CALL",
];
const MALFORMED_CALL: &[&[&str]] = &[&["failed to call a function"], &["malformed_function_call"]];

/// Returns the kind of a failure by its code or its message.
pub(super) fn kind_of(code: &str, message: &str) -> Option<FailureKind> {
    let message = message.to_lowercase();
    let fits = |codes: &[&str], messages: &[&[&str]]| {
        codes.contains(&code)
            || messages.iter().any(|words| words.iter().all(|word| message.contains(word)))
    };
    match code {
        "insufficient_quota" => Some(FailureKind::QuotaUsedUp),
        _ if fits(TOO_LONG_CODES, TOO_LONG) => Some(FailureKind::ContextTooLong),
        _ if fits(FILTERED_CODES, FILTERED) => Some(FailureKind::Filtered),
        _ if fits(MALFORMED_CALL_CODES, MALFORMED_CALL) => Some(FailureKind::MalformedCall),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_messages_of_all_providers_are_recognised() {
        for message in [
            "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens.",
            "Your input exceeds the context window of this model. Please adjust your input and try again.",
            "prompt is too long: 210000 tokens > 200000 maximum",
            "input length and `max_tokens` exceed context limit: 199000 + 20000 > 200000",
            "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
            "request (124315 tokens) exceeds the available context size (123904 tokens), try increasing it",
            "The decoder prompt (length 9000) is longer than the maximum model length of 8192.",
            "Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length",
            "This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
        ] {
            assert_eq!(kind_of("", message), Some(FailureKind::ContextTooLong), "{message}");
        }
        for message in [
            "Unsupported parameter: 'max_tokens'",
            "the context is unclear",
            "max_tokens exceeds the limit of 4096",
        ] {
            assert_eq!(kind_of("", message), None, "{message}");
        }
        assert_eq!(kind_of("context_length_exceeded", ""), Some(FailureKind::ContextTooLong));
    }
}
