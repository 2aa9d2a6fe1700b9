use serde_json::json;

use super::*;

fn kind_of(message: &str) -> FailureKind {
    FailureKind::Other.or_from_message(message)
}

#[test]
fn a_conversation_that_is_too_long_is_recognised_by_what_is_too_long_and_not_by_a_phrase() {
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
        "Input is too long for requested model.",
        "the input length exceeds the context length",
        "Your request exceeded model token limit: 262144",
        "Prompt exceeds max length",
        "Range of input length should be [1, 30720]",
    ] {
        assert_eq!(kind_of(message), FailureKind::ContextTooLong, "{message}");
    }
    for message in [
        "Unsupported parameter: 'max_tokens'",
        "the context is unclear",
        "max_tokens exceeds the limit of 4096",
        "max_tokens: 5 > 4, which is the maximum allowed number of output tokens",
        "'max_tokens' is too large: 64000. This model supports at most 16384 completion tokens",
        "Invalid 'input[3].name': string too long. Expected a string with maximum length 64",
        "messages.1.content.2.image.source.base64: image exceeds 5 MB maximum",
        "context deadline exceeded",
        "prompt_cache_key: string too long, maximum length 64",
        "temperature: Input should be less than or equal to 1",
    ] {
        assert_eq!(kind_of(message), FailureKind::Other, "{message}");
    }
}

#[test]
fn a_failure_in_a_stream_is_recognised_by_the_codes_of_all_providers() {
    use FailureKind::{ContextTooLong, Other, QuotaUsedUp, RateLimited, Unavailable};
    for (error, kind) in [
        (json!({"code": 400}), Other),
        (json!({"code": 502}), Unavailable),
        (json!({"code": "429"}), RateLimited),
        (json!({"code": null, "type": "server_error"}), Unavailable),
        (json!({"code": 400, "type": "server_error"}), Other),
        (json!({"code": "rate_limit_exceeded"}), RateLimited),
        (json!({"code": "slow_down", "type": "service_unavailable_error"}), Unavailable),
        (json!({"type": "overloaded_error"}), Unavailable),
        (json!({"type": "rate_limit_error"}), RateLimited),
        (json!({"type": "invalid_request_error"}), Other),
        (json!({"code": 429, "status": "RESOURCE_EXHAUSTED"}), RateLimited),
        (json!({"code": 504, "status": ""}), Unavailable),
        (json!({"status": "INTERNAL"}), Unavailable),
        (json!({"type": "rate_limit_error", "code": "insufficient_quota"}), QuotaUsedUp),
        (json!({"type": "insufficient_quota", "code": 429}), QuotaUsedUp),
        (
            json!({"type": "invalid_request_error", "code": "context_length_exceeded"}),
            ContextTooLong,
        ),
        (json!({"type": "exceed_context_size_error", "code": 500}), ContextTooLong),
        (json!({"code": 400, "metadata": {"raw": "{\"error\":{\"code\":429}}"}}), RateLimited),
        (json!({"message": "no", "error_type": "provider_overloaded"}), Unavailable),
        (json!({"metadata": {"error_type": "rate_limit_exceeded"}}), RateLimited),
        (json!({"code": 502, "metadata": {"error_type": "invalid_request"}}), Unavailable),
        (json!({"error": {"error": {"type": "overloaded_error"}}}), Unavailable),
        (json!({"code": 413}), ContextTooLong),
        (json!({"code": 400, "metadata": {"raw": "plain text"}}), Other),
        (json!({}), Other),
    ] {
        assert_eq!(FailureKind::from_error(&error), kind, "{error}");
    }
    let deep = (0..200).fold(json!({"code": 429}), |inner, _| json!({"error": inner}));
    assert_eq!(FailureKind::from_error(&deep), FailureKind::Other);
}

#[test]
fn the_status_the_type_and_the_body_say_the_kind_together() {
    use FailureKind::{
        ContextTooLong, NoAccess, NotFound, Other, RateLimited, Unauthorized, Unavailable,
    };
    let page = "<html><head><title>400 Bad Request</title></head></html>";
    for (status, content_type, body, kind) in [
        (400, "application/json", "{}", Other),
        (422, "", "no", Other),
        (400, "text/html", page, NotFound),
        (400, "", page, NotFound),
        (404, "application/json", r#"{"detail":"Not Found"}"#, NotFound),
        (405, "", "", NotFound),
        (301, "text/html", page, NotFound),
        (413, "text/html", page, ContextTooLong),
        (502, "text/html", page, Unavailable),
        (500, "application/json", r#"{"error":{"message":"prompt is too long"}}"#, ContextTooLong),
        (
            503,
            "application/json",
            r#"{"error":{"type":"insufficient_quota"}}"#,
            FailureKind::QuotaUsedUp,
        ),
        (401, "application/json", r#"{"error":{"message":"prompt is too long"}}"#, Unauthorized),
        (403, "application/json", r#"{"error":{"message":"prompt is too long"}}"#, NoAccess),
        (403, "application/json", r#"{"error":{"code":"content_filter"}}"#, FailureKind::Filtered),
        (429, "application/json", "content_filter", RateLimited),
        (429, "application/json", r#"{"error":{"message":"maximum context length"}}"#, RateLimited),
    ] {
        assert_eq!(
            ProviderMessage::read(status, content_type, body.as_bytes()).kind,
            kind,
            "{status} {body}"
        );
    }
}

#[test]
fn the_message_is_found_in_every_shape_and_in_the_words_of_a_gateway() {
    for body in [
        r#"{"error":{"message":"no"}}"#,
        r#"{"type":"error","error":{"type":"invalid_request_error","message":"no"}}"#,
        r#"{"error":"no"}"#,
        r#"{"message":"no"}"#,
        r#"{"detail":"no"}"#,
        r#"[{"error":{"message":"no"}}]"#,
        r#"{"detail":[{"msg":"no"}]}"#,
    ] {
        assert_eq!(ProviderMessage::read(400, "", body.as_bytes()).text, "no", "{body}");
    }
    for body in ["7", "{\"error\":{}}"] {
        assert_eq!(ProviderMessage::read(400, "", body.as_bytes()).text, "", "{body}");
    }
    let inner = json!({"error": {"message": "Corrupted signature", "input": "quoted"}}).to_string();
    let refusal =
        ProviderRefusal::new(FailureKind::Other, &json!({"error": {"message": inner}}).to_string());
    assert!(refusal.words().contains("corrupted signature") && !refusal.words().contains("quoted"));
}
