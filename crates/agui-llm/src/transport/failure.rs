//! Errors of requests to a provider: the message for the client, the detail for the log, and the rule for retries.
//!
//! Nothing is retried after the first piece of an answer, because the client may have shown it, nor after silence. A
//! provider's message reaches the client only when it is about the request. Addresses are removed from it, and secrets
//! from it and from the log. The log names the provider's host and its id of the request.

use std::{sync::Arc, time::Duration};

use http::{HeaderMap, StatusCode};
use reqwest::Url;

use super::{decode::DecodeFault, retry::Retry};
use crate::{
    ModelError, StopReason,
    refusal::{FailureKind, ProviderMessage, ProviderRefusal},
};
use agui_base::{
    RunErrorCode,
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
    /// The refusal, if the provider refused the request itself. The request is not in it.
    pub(super) refusal: Option<Box<ProviderRefusal>>,
}

impl AttemptError {
    pub(super) fn is_unauthorized(&self) -> bool {
        self.error.code() == RunErrorCode::ModelUnauthorized.as_str()
    }

    /// Adds the refusal, if another form of the request may mend it.
    fn mendable(mut self, kind: FailureKind, body: &str) -> Self {
        self.refusal = kind.may_be_mended().then(|| Box::new(ProviderRefusal::new(kind, body)));
        self
    }

    fn without_access(self) -> Self {
        Self { error: self.error.without_access(), ..self }
    }

    /// Returns the error, with the detail as its cause, and the refusal with the request's body.
    pub(super) fn into_error(
        mut self,
        request_id: Option<&str>,
        sent: &[u8],
        fixed: &Arc<[String]>,
    ) -> ModelError {
        if let Some(refusal) = &mut self.refusal {
            refusal.sent = serde_json::from_slice(sent).unwrap_or_default();
            refusal.fixed = fixed.clone();
        }
        let detail = match request_id {
            Some(id) => format!("{} (request id {id})", self.detail),
            None => self.detail,
        };
        self.error.caused_by(detail).with_refusal(self.refusal)
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

    pub(super) fn refused(
        &self,
        status: StatusCode,
        content_type: &str,
        wait: Retry,
        body: &[u8],
    ) -> AttemptError {
        let number = status.as_u16();
        let message = ProviderMessage::read(number, content_type, body);
        let body = String::from_utf8_lossy(body);
        let detail = format!("answered {status}: {body}");
        match message.kind {
            FailureKind::ContextTooLong => self.too_long(&detail).mendable(message.kind, &body),
            FailureKind::Filtered => self.stopped(StopReason::Filtered, &detail),
            FailureKind::MalformedCall => self.stopped(StopReason::MalformedCall, &detail),
            FailureKind::QuotaUsedUp => self.quota_used_up(&detail),
            FailureKind::RateLimited => self.rate_limited(wait, &detail),
            FailureKind::Unavailable => {
                let message =
                    format!("The model provider is not available now ({number}); try again later");
                self.error(RunErrorCode::ModelUnavailable, message, wait, &detail)
            }
            FailureKind::Unauthorized | FailureKind::NoAccess => {
                let message_kind = message.kind;
                let message = match message_kind {
                    FailureKind::Unauthorized => {
                        "The model provider does not accept the key of this server"
                    }
                    _ => "The model provider does not allow this server's request",
                };
                let detail = format!("{detail}; check the configured key");
                let failure =
                    self.error(RunErrorCode::ModelUnauthorized, message, Retry::Never, &detail);
                match message_kind {
                    FailureKind::NoAccess => failure.without_access(),
                    _ => failure,
                }
            }
            FailureKind::NotFound if status.is_redirection() => {
                let message = "The model provider answered with a redirect";
                self.error(
                    RunErrorCode::ModelRejected,
                    message,
                    Retry::Never,
                    &format!("{detail}; check base_url"),
                )
            }
            FailureKind::NotFound | FailureKind::Other => {
                let quoted = self.quote(&message.text);
                let shown = format!("The model provider refused the request ({number}){quoted}");
                self.error(RunErrorCode::ModelRejected, shown, Retry::Never, &detail)
                    .mendable(message.kind, &body)
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
            kind @ FailureKind::ContextTooLong => self.too_long(&detail).mendable(kind, &said),
            FailureKind::Filtered => self.stopped(StopReason::Filtered, &detail),
            FailureKind::MalformedCall => self.stopped(StopReason::MalformedCall, &detail),
            FailureKind::RateLimited if !has_answer => self.rate_limited(Retry::Backoff, &detail),
            FailureKind::Unavailable if !has_answer => {
                let message = "The model provider is not available now; try again later";
                self.error(RunErrorCode::ModelUnavailable, message, Retry::Backoff, &detail)
            }
            kind => {
                let message =
                    format!("The model provider failed while it answered{}", self.quote(&said));
                self.error(RunErrorCode::ModelFailed, message, Retry::Never, &detail)
                    .mendable(kind, &said)
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

fn shorten(text: &str, max_chars: usize) -> String {
    shortened(&text.replace(char::is_control, " "), max_chars)
}

#[cfg(test)]
mod tests;
