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
use crate::{ModelError, StopReason};
use agui_base::{
    RunErrorCode, lenient_json,
    repairs::Partner,
    text::{LINE_CHARS, NAME_CHARS, PARAGRAPH_CHARS, error_chain, shortened},
    upstream::{events::StreamError, scrub::Scrubber},
};

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
    /// The error for the client.
    pub(super) error: ModelError,
    /// The detail for the log.
    detail: String,
    pub(super) retry: Retry,
    /// Set if other providers report this failure as the reason of a stop.
    pub(super) stop: Option<StopReason>,
    /// The provider's words, if it refused the request itself.
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

    /// Returns the error of an unreadable key.
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
        let kind = FailureKind::from_status(number.into());
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

    /// Returns the error of an interrupted answer. The caller retries only before the answer has
    /// begun.
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
                let advice = "ProviderClient::max_event_bytes sets the limit";
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

    /// Returns the error of a failed answer. It is retried only before the answer has begun.
    pub(super) fn answer_failed(&self, fault: DecodeFault, has_answer: bool) -> AttemptError {
        let (kind, said) = match fault {
            DecodeFault::Malformed(detail) => return self.not_an_answer(&detail),
            DecodeFault::Failed { kind, message } => (kind, message),
        };
        let detail = format!("said in the stream: {said}");
        match kind.or_from_message(&said) {
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
        Some(shorten(&self.scrubber.scrub_known(id), NAME_CHARS))
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
        let detail = shorten(&self.scrubber.scrub(detail), PARAGRAPH_CHARS);
        let detail = format!("{}: {detail}", self.name);
        AttemptError {
            error: ModelError::new(code.as_str(), message.into()),
            detail,
            retry,
            stop: None,
            refusal: None,
        }
    }

    /// Quotes a message without secrets. They are removed before it is cut, because a cut key is
    /// not recognized.
    fn quote(&self, message: &str) -> String {
        let message = self.scrubber.without_addresses(&self.scrubber.scrub(message));
        let message = shorten(message.trim(), LINE_CHARS);
        if message.is_empty() { message } else { format!(": {message}") }
    }
}

/// The message of a refusal, and the kind by its codes.
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
        let kind = FailureKind::from_error(&value).or_from_message(&text);
        Self { text, kind }
    }
}

fn shorten(text: &str, max_chars: usize) -> String {
    shortened(&text.replace(char::is_control, " "), max_chars)
}

#[cfg(test)]
mod tests;
