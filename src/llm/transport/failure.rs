//! Errors of requests to a provider: the message for the client, the detail for the log, and the rule for retries.
//!
//! Nothing is retried after the first piece of an answer, because the client may have shown it, nor after silence. A
//! provider's message reaches the client only when it is about the request. Addresses are removed from it, and secrets
//! from it and from the log. The log names the provider's host and its id of the request.

use std::{sync::Arc, time::Duration};

use http::{HeaderMap, StatusCode};
use reqwest::Url;
use serde_json::Value;

use super::{decode::DecodeFault, refusal_texts::FailureKind, retry::Retry};
use crate::{
    base::{
        RunErrorCode, lenient_json,
        repairs::Partner,
        text::{error_chain, shortened},
    },
    llm::{ModelError, StopReason},
    upstream::{events::StreamError, scrub::Scrubber},
};

const MAX_MESSAGE_CHARS: usize = 300;
const MAX_DETAIL_CHARS: usize = 2000;
const MAX_REQUEST_ID_CHARS: usize = 100;
/// The headers in which providers name a request, the more specific ones first.
const REQUEST_ID_HEADERS: &[&str] = &[
    "x-request-id",
    "request-id",
    "apim-request-id",
    "x-goog-request-id",
    "x-goog-trace-id",
    "mistral-correlation-id",
    "x-ds-trace-id",
    "x-amzn-requestid",
    "cf-ray",
];

#[derive(Debug)]
pub(super) struct AttemptError {
    /// What the client is told.
    pub(super) error: ModelError,
    /// For the log.
    detail: String,
    pub(super) retry: Retry,
    /// Set if the failure is an end that other providers report as the reason of a stop.
    pub(super) stop: Option<StopReason>,
    /// What the provider said, if it refused the request itself.
    pub(super) refusal: Option<String>,
}

impl AttemptError {
    pub(super) fn is_unauthorized(&self) -> bool {
        self.error.code() == RunErrorCode::ModelUnauthorized.as_str()
    }

    /// Returns the error, with the detail as its cause.
    pub(super) fn into_error(self, request_id: Option<&str>) -> ModelError {
        let detail = match request_id {
            Some(id) => format!("{} (request id {id})", self.detail),
            None => self.detail,
        };
        self.error.caused_by(detail)
    }
}

pub(super) struct ProviderErrors {
    /// The host, for the log. The rest of the URL may contain secrets.
    name: String,
    pub(super) scrubber: Arc<Scrubber>,
}

impl ProviderErrors {
    pub(super) fn new(url: &Url, secrets: Vec<String>) -> Self {
        let host = url.host_str().unwrap_or("the provider");
        let name = url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"));
        Self { name, scrubber: Arc::new(Scrubber::new(secrets, host)) }
    }

    pub(super) fn unreachable(&self, error: reqwest::Error) -> AttemptError {
        let detail = error_chain(&error.without_url());
        self.error(
            RunErrorCode::ModelUnreachable,
            "The model provider cannot be reached",
            Retry::Backoff,
            &detail,
        )
    }

    /// The server's own key cannot be read.
    pub(super) fn no_key(&self, detail: &str) -> AttemptError {
        let message = "The server cannot get its key for the model provider";
        self.error(RunErrorCode::ModelUnauthorized, message, Retry::Never, detail)
    }

    pub(super) fn not_recorded(&self) -> AttemptError {
        let message = "No recorded exchange with the model provider has this conversation";
        self.error(
            RunErrorCode::NoRecordedExchange,
            message,
            Retry::Never,
            "requests are answered from recordings",
        )
    }

    pub(super) fn silent(&self, waited: Duration) -> AttemptError {
        let detail = format!("nothing came for {waited:?}");
        self.error(
            RunErrorCode::ModelTimeout,
            "The model provider does not answer",
            Retry::Never,
            &detail,
        )
    }

    pub(super) fn refused(&self, status: StatusCode, wait: Retry, body: &[u8]) -> AttemptError {
        let body_message = ProviderMessage::read(body);
        let detail = format!("answered {status}: {}", String::from_utf8_lossy(body));
        let number = status.as_u16();
        let kind = FailureKind::of_status(number.into());
        let is_about_request = kind != FailureKind::RateLimited && !matches!(number, 401 | 403);
        match body_message.kind {
            FailureKind::ContextTooLong if is_about_request => return self.too_long(&detail),
            FailureKind::Filtered if is_about_request || number == 403 => {
                return self.stopped(StopReason::Filtered, &detail);
            }
            FailureKind::MalformedCall if is_about_request => {
                return self.stopped(StopReason::MalformedCall, &detail);
            }
            _ => {}
        }
        match kind {
            FailureKind::RateLimited if body_message.kind == FailureKind::QuotaUsedUp => {
                self.quota_used_up(&detail)
            }
            FailureKind::RateLimited => self.rate_limited(wait, &detail),
            FailureKind::ContextTooLong => self.too_long(&detail),
            FailureKind::Unavailable => {
                let message =
                    format!("The model provider is not available now ({number}); try again later");
                self.error(RunErrorCode::ModelUnavailable, message, wait, &detail)
            }
            _ if matches!(number, 401 | 403) => {
                let message = match number {
                    401 => "The model provider does not accept the key of this server",
                    _ => "The model provider does not allow this server's request",
                };
                let detail = format!("{detail}; check the configured key");
                self.error(RunErrorCode::ModelUnauthorized, message, Retry::Never, &detail)
            }
            _ if status.is_redirection() => {
                let message = "The model provider answered with a redirect";
                self.error(
                    RunErrorCode::ModelRejected,
                    message,
                    Retry::Never,
                    &format!("{detail}; check base_url"),
                )
            }
            _ => {
                let message = format!(
                    "The model provider refused the request ({number}){}",
                    self.quote(&body_message.text)
                );
                let refusal = Some(String::from_utf8_lossy(body).into_owned());
                AttemptError {
                    refusal,
                    ..self.error(RunErrorCode::ModelRejected, message, Retry::Never, &detail)
                }
            }
        }
    }

    pub(super) fn no_events(&self, content_type: &str, body: &[u8]) -> AttemptError {
        let detail = format!("it has the type {content_type:?}: {}", String::from_utf8_lossy(body));
        self.not_an_answer(&detail)
    }

    /// The caller retries only before the answer has begun.
    pub(super) fn interrupted(&self, detail: &str) -> AttemptError {
        let message = "The model provider broke off in the middle of its answer";
        self.error(RunErrorCode::ModelInterrupted, message, Retry::Backoff, detail)
    }

    pub(super) fn body_failed(&self, fault: StreamError) -> AttemptError {
        let detail = error_chain(&fault);
        match fault {
            StreamError::Silent(_) => {
                let message = "The model provider stopped sending in the middle of its answer";
                self.error(RunErrorCode::ModelTimeout, message, Retry::Never, &detail)
            }
            StreamError::Broken(_) => self.interrupted(&detail),
            StreamError::TooLong(_) => {
                let message = "The model provider sent an event that is too large for this server";
                let advice = "Connection::max_event_bytes sets the limit";
                self.error(
                    RunErrorCode::ModelProtocol,
                    message,
                    Retry::Never,
                    &format!("{detail}; {advice}"),
                )
            }
            _ => self.not_an_answer(&detail),
        }
    }

    /// A failure before the answer has begun is retried.
    pub(super) fn answer_failed(&self, fault: DecodeFault, has_answer: bool) -> AttemptError {
        let (kind, said) = match fault {
            DecodeFault::Malformed(detail) => return self.not_an_answer(&detail),
            DecodeFault::Failed { kind, message } => (kind, message),
        };
        let detail = format!("said in the stream: {said}");
        match kind.or_of_message(&said) {
            FailureKind::QuotaUsedUp => self.quota_used_up(&detail),
            FailureKind::ContextTooLong => self.too_long(&detail),
            FailureKind::Filtered => self.stopped(StopReason::Filtered, &detail),
            FailureKind::MalformedCall => self.stopped(StopReason::MalformedCall, &detail),
            FailureKind::RateLimited if !has_answer => self.rate_limited(Retry::Backoff, &detail),
            FailureKind::Unavailable if !has_answer => {
                let message = "The model provider is not available now; try again later";
                self.error(RunErrorCode::ModelUnavailable, message, Retry::Backoff, &detail)
            }
            _ => {
                let message =
                    format!("The model provider failed while it answered{}", self.quote(&said));
                AttemptError {
                    refusal: Some(said),
                    ..self.error(RunErrorCode::ModelFailed, message, Retry::Never, &detail)
                }
            }
        }
    }

    /// Returns the provider's id of a request, for the log.
    pub(super) fn request_id(&self, headers: &HeaderMap) -> Option<String> {
        let id = REQUEST_ID_HEADERS.iter().find_map(|name| headers.get(*name)?.to_str().ok())?;
        Some(shorten(&self.scrubber.scrub_known(id), MAX_REQUEST_ID_CHARS))
    }

    fn quota_used_up(&self, detail: &str) -> AttemptError {
        let message = "The account at the model provider has used up its quota";
        self.error(RunErrorCode::ModelRateLimited, message, Retry::Never, detail)
    }

    fn rate_limited(&self, retry: Retry, detail: &str) -> AttemptError {
        let message = "The model provider got too many requests; try again later";
        self.error(RunErrorCode::ModelRateLimited, message, retry, detail)
    }

    fn too_long(&self, detail: &str) -> AttemptError {
        let message = "The conversation is too long for the model";
        self.error(RunErrorCode::ContextTooLong, message, Retry::Never, detail)
    }

    fn stopped(&self, reason: StopReason, detail: &str) -> AttemptError {
        let (code, message) = match reason {
            StopReason::Filtered => (
                RunErrorCode::ModelFiltered,
                "A content filter of the model provider refused the request",
            ),
            _ => (
                RunErrorCode::ModelCallMalformed,
                "The model provider could not read a call that the model wrote",
            ),
        };
        AttemptError { stop: Some(reason), ..self.error(code, message, Retry::Never, detail) }
    }

    fn not_an_answer(&self, detail: &str) -> AttemptError {
        let message = "The model provider sent a response that is not an answer";
        self.error(
            RunErrorCode::ModelProtocol,
            message,
            Retry::Never,
            &format!("{detail}; check base_url"),
        )
    }

    fn error(
        &self,
        code: RunErrorCode,
        message: impl Into<String>,
        retry: Retry,
        detail: &str,
    ) -> AttemptError {
        let detail = shorten(&self.scrubber.scrub(detail), MAX_DETAIL_CHARS);
        let detail = format!("{}: {detail}", self.name);
        AttemptError {
            error: ModelError::new(code.as_str(), message.into()),
            detail,
            retry,
            stop: None,
            refusal: None,
        }
    }

    /// Secrets are removed before the message is cut, because a cut key is not recognised.
    fn quote(&self, message: &str) -> String {
        let message = self.scrubber.without_addresses(&self.scrubber.scrub(message));
        let message = shorten(message.trim(), MAX_MESSAGE_CHARS);
        if message.is_empty() { message } else { format!(": {message}") }
    }
}

/// The message of a refusal, and the kind that its codes say.
struct ProviderMessage {
    text: String,
    kind: FailureKind,
}

impl ProviderMessage {
    fn read(body: &[u8]) -> Self {
        let mut value =
            lenient_json::parse(&String::from_utf8_lossy(body), Partner::Model).unwrap_or_default();
        if let Value::Array(items) = &mut value {
            value = items.first_mut().map(Value::take).unwrap_or_default();
        }
        let error = value.get("error").unwrap_or(&value);
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let message = ["message", "error", "detail", "msg"].iter().find_map(|name| {
            let found = error.get(name).or_else(|| value.get(name))?;
            text(found).or_else(|| text(found.get(0)?.get("msg")?))
        });
        let text = message.or_else(|| text(error)).unwrap_or_default();
        let kind = FailureKind::of_error(&value).or_of_message(&text);
        Self { text, kind }
    }
}

fn shorten(text: &str, max_chars: usize) -> String {
    shortened(&text.replace(char::is_control, " "), max_chars)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_message_is_found_in_every_shape() {
        for body in [
            r#"{"error":{"message":"no"}}"#,
            r#"{"type":"error","error":{"type":"invalid_request_error","message":"no"}}"#,
            r#"[{"error":{"code":400,"message":"no"}}]"#,
            r#"{"error":"no"}"#,
            r#"{"message":"no"}"#,
            r#"{"detail":"no"}"#,
            r#"{"detail":[{"loc":["body"],"msg":"no"}]}"#,
            r#"{"error":null,"message":"no"}"#,
        ] {
            assert_eq!(ProviderMessage::read(body.as_bytes()).text, "no", "{body}");
        }
        for body in ["", "<html>", "[]", "null", "7", "{\"error\":{}}"] {
            assert_eq!(ProviderMessage::read(body.as_bytes()).text, "", "{body}");
        }
        let used_up =
            ProviderMessage::read(br#"{"error":{"message":"no","code":"insufficient_quota"}}"#);
        assert_eq!(used_up.kind, FailureKind::QuotaUsedUp);
    }

    #[test]
    fn a_long_message_is_cut_and_control_characters_are_removed_for_the_client() {
        let errors =
            ProviderErrors::new(&Url::parse("https://u:p@host:8/v1?key=1").unwrap(), Vec::new());
        let body = format!(r#"{{"error":{{"message":"a\nb\u001b{}"}}}}"#, "é ".repeat(500));
        let failure = errors.refused(StatusCode::BAD_REQUEST, Retry::Backoff, body.as_bytes());
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
        let failure = errors.refused(StatusCode::BAD_REQUEST, Retry::Backoff, body.as_bytes());
        let expected = "The model provider refused the request (400): no model m at [address] ([address]), see [address].";
        assert_eq!(failure.error.message(), expected);
        let log = format!("{:?}", failure.into_error(Some("req_1")));
        for text in
            ["gpu-7.internal:8443: answered 400 Bad Request", "10.0.0.5", "(request id req_1)"]
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
            (
                413,
                r#"{"object":"error","message":"This model's maximum context length is 9 tokens"}"#,
            ),
        ] {
            let failure = errors.refused(
                StatusCode::from_u16(status).unwrap(),
                Retry::Backoff,
                body.as_bytes(),
            );
            assert_eq!(
                (failure.error.code(), failure.retry),
                ("context_too_long", Retry::Never),
                "{body}"
            );
        }
        let limit = br#"{"error":{"message":"Request too large: maximum context length"}}"#;
        let failure = errors.refused(StatusCode::TOO_MANY_REQUESTS, Retry::Backoff, limit);
        assert_eq!(failure.error.code(), "model_rate_limited");
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
        let limit = json!({"message": "Request too large: maximum context length", "code": "rate_limit_exceeded"});
        let failure = errors.answer_failed(DecodeFault::from_provider(&limit), false);
        assert_eq!(failure.error.code(), "model_rate_limited");
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
            let headers = HeaderMap::from_iter([(
                http::HeaderName::from_static(name),
                value.parse().unwrap(),
            )]);
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
            errors.refused(StatusCode::TOO_MANY_REQUESTS, Retry::Backoff, b"content_filter");
        assert_eq!(too_many.stop, None);
    }

    #[test]
    fn an_error_is_what_the_code_of_the_provider_behind_a_gateway_says() {
        let kind = |error: Value| FailureKind::of_error(&error);
        for (error, expected) in [
            (
                json!({"code": 400, "metadata": {"raw": "{\"error\":{\"code\":429}}"}}),
                FailureKind::RateLimited,
            ),
            (
                json!({"message": "no", "error_type": "provider_overloaded"}),
                FailureKind::Unavailable,
            ),
            (json!({"metadata": {"error_type": "rate_limit_exceeded"}}), FailureKind::RateLimited),
            (
                json!({"code": 502, "metadata": {"error_type": "invalid_request"}}),
                FailureKind::Unavailable,
            ),
            (json!({"error": {"error": {"type": "overloaded_error"}}}), FailureKind::Unavailable),
            (json!({"code": 413}), FailureKind::ContextTooLong),
            (json!({"code": 400, "metadata": {"raw": "plain text"}}), FailureKind::Other),
        ] {
            assert_eq!(kind(error.clone()), expected, "{error}");
        }
        let deep = (0..200).fold(json!({"code": 429}), |inner, _| json!({"error": inner}));
        assert_eq!(kind(deep), FailureKind::Other);
    }

    #[test]
    fn a_request_with_too_many_bytes_is_too_long() {
        let errors = ProviderErrors::new(&Url::parse("http://127.0.0.1:1/").unwrap(), Vec::new());
        for body in ["", "<html>", r#"{"error":{"type":"request_too_large","message":"no"}}"#] {
            let failure =
                errors.refused(StatusCode::PAYLOAD_TOO_LARGE, Retry::Backoff, body.as_bytes());
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
        let failure = errors.refused(StatusCode::TOO_MANY_REQUESTS, wait, quota);
        assert_eq!((failure.error.code(), failure.retry), ("model_rate_limited", Retry::Never));
        let in_stream =
            DecodeFault::from_provider(&json!({"type": "insufficient_quota", "message": "pay"}));
        let in_stream = errors.answer_failed(in_stream, false);
        assert_eq!((in_stream.error.code(), in_stream.retry), ("model_rate_limited", Retry::Never));
        assert_eq!(in_stream.error.message(), failure.error.message());
        assert_eq!(errors.refused(StatusCode::TOO_MANY_REQUESTS, wait, b"").retry, wait);
    }
}
