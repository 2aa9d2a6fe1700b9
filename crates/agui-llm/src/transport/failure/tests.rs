use serde_json::json;

use super::*;

#[test]
fn a_long_message_is_cut_and_control_characters_are_removed_for_the_client() {
    let errors =
        ProviderErrors::new(&Url::parse("https://u:p@host:8/v1?key=1").unwrap(), Vec::new());
    let body = format!(r#"{{"error":{{"message":"a\nb\u001b{}"}}}}"#, "é ".repeat(500));
    let failure = errors.refused(StatusCode::BAD_REQUEST, "", Retry::Backoff, body.as_bytes());
    let message = failure.error.message();
    assert!(
        message.starts_with("The model provider refused the request (400): a b é "),
        "{message}"
    );
    assert!(message.ends_with('…') && message.chars().count() < 400, "{message}");
    assert_eq!(failure.retry, Retry::Never);
}

#[test]
fn a_message_for_the_client_names_no_addresses() {
    let errors =
        ProviderErrors::new(&Url::parse("https://gpu-7.internal:8443/v1").unwrap(), Vec::new());
    let said =
        "no model m at gpu-7.internal:8443 (10.0.0.5:8000), see https://docs.internal/m?x=1.";
    let body = json!({"error": {"message": said}}).to_string();
    let failure = errors.refused(StatusCode::BAD_REQUEST, "", Retry::Backoff, body.as_bytes());
    let expected = "The model provider refused the request (400): no model m at [address] ([address]), see [address].";
    assert_eq!(failure.error.message(), expected);
    let log = format!("{:?}", failure.into_error(Some("req_1"), b"", &Arc::default()));
    for text in ["gpu-7.internal:8443: answered 400 Bad Request", "10.0.0.5", "(request id req_1)"]
    {
        assert!(log.contains(text), "{text} is not in {log}");
    }
}

#[test]
fn a_conversation_that_is_too_long_has_its_own_code() {
    let errors = ProviderErrors::new(&Url::parse("https://host").unwrap(), Vec::new());
    for (status, body) in [
        (400, r#"{"error":{"message":"no","code":"context_length_exceeded"}}"#),
        (
            400,
            r#"{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 9 > 8"}}"#,
        ),
        (
            500,
            r#"{"error":{"code":500,"message":"no","type":"exceed_context_size_error","n_ctx":256}}"#,
        ),
        (413, r#"{"object":"error","message":"This model's maximum context length is 9 tokens"}"#),
    ] {
        let failure = errors.refused(
            StatusCode::from_u16(status).unwrap(),
            "",
            Retry::Backoff,
            body.as_bytes(),
        );
        assert_eq!(
            (failure.error.code(), failure.retry),
            ("context_too_long", Retry::Never),
            "{body}"
        );
    }
    // A wait does not mend this limit of tokens in a minute.
    let limit = br#"{"error":{"message":"Request too large for m on tokens per min (TPM): Limit 3, Requested 4."}}"#;
    let failure = errors.refused(StatusCode::TOO_MANY_REQUESTS, "", Retry::Backoff, limit);
    assert_eq!((failure.error.code(), failure.retry), ("context_too_long", Retry::Never));
    for error in [
        json!({"message": "Your input exceeds the context window of this model"}),
        json!({"message": "no", "code": "context_length_exceeded"}),
        json!({"message": "no", "type": "exceed_context_size_error", "code": 500}),
    ] {
        let failure = errors.answer_failed(DecodeFault::from_provider(&error), false);
        assert_eq!(
            (failure.error.code(), failure.retry),
            ("context_too_long", Retry::Never),
            "{error}"
        );
    }
    let limit = json!({"message": "Request too large for m", "code": "rate_limit_exceeded"});
    let failure = errors.answer_failed(DecodeFault::from_provider(&limit), false);
    assert_eq!(failure.error.code(), "context_too_long");
}

#[test]
fn a_request_id_is_found_in_the_headers_of_each_provider() {
    let errors = ProviderErrors::new(
        &Url::parse("https://host").unwrap(),
        vec!["a-secret-key-of-some-length".into()],
    );
    for (name, value, id) in [
        ("x-request-id", "req_1", Some("req_1")),
        ("request-id", "req_2", Some("req_2")),
        (
            "x-ds-trace-id",
            "0123456789abcdef0123456789abcdef",
            Some("0123456789abcdef0123456789abcdef"),
        ),
        ("x-request-id", "a-secret-key-of-some-length", Some("[secret]")),
        ("x-other", "a", None),
    ] {
        let headers =
            HeaderMap::from_iter([(http::HeaderName::from_static(name), value.parse().unwrap())]);
        assert_eq!(errors.request_id(&headers).as_deref(), id, "{name}");
    }
}

#[test]
fn what_a_filter_refuses_and_a_malformed_call_are_ends_of_an_answer() {
    let errors = ProviderErrors::new(&Url::parse("http://127.0.0.1:1/").unwrap(), Vec::new());
    let azure = json!({"error": {"message": "The response was filtered", "type": null, "param": "prompt",
        "code": "content_filter", "status": 400, "innererror": {"code": "ResponsibleAIPolicyViolation"}}});
    let wrapped = json!({"error": {"message": "Provider returned error", "code": 400,
        "metadata": {"raw": azure.to_string(), "provider_name": "Azure"}}});
    let nested = json!({"error": {"message": "no", "code": "400",
        "provider_specific_fields": {"innererror": {"code": "ResponsibleAIPolicyViolation"}}}});
    let groq = json!({"error": {"message": "Failed to call a function. Please adjust your prompt.",
        "type": "invalid_request_error", "code": "tool_use_failed", "failed_generation": "<function=f>"}});
    for (error, stop) in [
        (azure, StopReason::Filtered),
        (wrapped, StopReason::Filtered),
        (nested, StopReason::Filtered),
        (
            json!({"error": {"message": "Content Exists Risk", "type": "invalid_request_error"}}),
            StopReason::Filtered,
        ),
        (
            json!({"error": {"code": "data_inspection_failed", "message": "no"}}),
            StopReason::Filtered,
        ),
        (groq, StopReason::MalformedCall),
    ] {
        let refused = errors.refused(
            StatusCode::BAD_REQUEST,
            "",
            Retry::Backoff,
            error.to_string().as_bytes(),
        );
        let in_stream = errors.answer_failed(DecodeFault::from_provider(&error), true);
        for failure in [refused, in_stream] {
            assert_eq!(
                (failure.stop, failure.retry),
                (Some(stop.clone()), Retry::Never),
                "{error}"
            );
        }
    }
    let too_many =
        errors.refused(StatusCode::TOO_MANY_REQUESTS, "", Retry::Backoff, b"content_filter");
    assert_eq!(too_many.stop, None);
}

#[test]
fn a_request_with_too_many_bytes_is_too_long() {
    let errors = ProviderErrors::new(&Url::parse("http://127.0.0.1:1/").unwrap(), Vec::new());
    for body in ["", "<html>", r#"{"error":{"type":"request_too_large","message":"no"}}"#] {
        let failure =
            errors.refused(StatusCode::PAYLOAD_TOO_LARGE, "", Retry::Backoff, body.as_bytes());
        assert_eq!(
            (failure.error.code(), failure.retry),
            ("context_too_long", Retry::Never),
            "{body}"
        );
    }
}

#[test]
fn a_used_up_quota_is_not_retried() {
    let errors = ProviderErrors::new(&Url::parse("https://host").unwrap(), Vec::new());
    let wait = Retry::After(Duration::ZERO);
    let quota = br#"{"error":{"type":"insufficient_quota","message":"pay"}}"#;
    let failure = errors.refused(StatusCode::TOO_MANY_REQUESTS, "", wait, quota);
    assert_eq!((failure.error.code(), failure.retry), ("model_rate_limited", Retry::Never));
    let in_stream =
        DecodeFault::from_provider(&json!({"type": "insufficient_quota", "message": "pay"}));
    let in_stream = errors.answer_failed(in_stream, false);
    assert_eq!((in_stream.error.code(), in_stream.retry), ("model_rate_limited", Retry::Never));
    assert_eq!(in_stream.error.message(), failure.error.message());
    assert_eq!(errors.refused(StatusCode::TOO_MANY_REQUESTS, "", wait, b"").retry, wait);
}
