//! Errors of requests to a provider: the message for the client, the detail for the log, and the rule for retries.
//!
//! Nothing is retried after the first piece of an answer, because the client may have shown it, nor after silence. A
//! provider's message reaches the client only when it is about the request. Secrets are removed from it and from the
//! log.

use std::{error::Error as StdError, time::Duration};

use http::StatusCode;
use reqwest::Url;
use serde_json::Value;

use super::{
    decode::{DecodeError, FailureKind},
    retry::Retry,
    scrub::Scrubber,
};
use crate::{llm::ModelError, upstream::events::StreamError};

const MAX_MESSAGE_CHARS: usize = 300;
const MAX_DETAIL_CHARS: usize = 2000;

#[derive(Debug)]
pub(super) struct AttemptError {
    pub(super) error: ModelError,
    pub(super) retry: Retry,
}

pub(super) struct ProviderErrors {
    /// The rest of the URL may contain secrets.
    name: String,
    scrubber: Scrubber,
}

impl ProviderErrors {
    pub(super) fn new(url: &Url, secrets: Vec<String>) -> Self {
        let host = url.host_str().unwrap_or("the provider");
        let name = url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"));
        Self { name, scrubber: Scrubber::new(secrets) }
    }

    pub(super) fn unreachable(&self, error: reqwest::Error) -> AttemptError {
        let message = format!("The model provider at {} cannot be reached", self.name);
        self.error("model_unreachable", message, Retry::Backoff, &chain(&error.without_url()))
    }

    pub(super) fn silent(&self, waited: Duration) -> AttemptError {
        let message = format!("The model provider at {} does not answer", self.name);
        self.error("model_timeout", message, Retry::Never, &format!("nothing came for {waited:?}"))
    }

    pub(super) fn refused(&self, status: StatusCode, wait: Retry, body: &[u8]) -> AttemptError {
        let body_message = ProviderMessage::read(body);
        let name = &self.name;
        let detail = format!("{name} answered {status}: {}", String::from_utf8_lossy(body));
        let number = status.as_u16();
        let (code, message, retry) = match FailureKind::of_status(number.into()) {
            FailureKind::RateLimited if body_message.quota_used_up => {
                let message = format!("The account at the model provider {name} has used up its quota");
                ("model_rate_limited", message, Retry::Never)
            }
            FailureKind::RateLimited => {
                let message = format!("The model provider at {name} got too many requests; try again later");
                ("model_rate_limited", message, wait)
            }
            FailureKind::Unavailable => {
                let message = format!("The model provider at {name} is not available now ({number}); try again later");
                ("model_unavailable", message, wait)
            }
            FailureKind::Other if matches!(number, 401 | 403) => {
                let what = if number == 401 { "does not accept the API key" } else { "does not allow this request" };
                let message = format!("The model provider at {name} {what}; check the key that the server is given");
                ("model_unauthorized", message, Retry::Never)
            }
            FailureKind::Other if status.is_redirection() => {
                let message = format!("The model provider at {name} answered with a redirect; check its base URL");
                ("model_rejected", message, Retry::Never)
            }
            FailureKind::Other => {
                let message =
                    format!("The model provider at {name} refused the request ({number}){}", self.quote(&body_message));
                ("model_rejected", message, Retry::Never)
            }
        };
        self.error(code, message, retry, &detail)
    }

    pub(super) fn no_events(&self, content_type: &str, body: &[u8]) -> AttemptError {
        let detail = format!("it has the type {content_type:?}: {}", String::from_utf8_lossy(body));
        self.not_an_answer(&detail)
    }

    pub(super) fn interrupted(&self, detail: &str) -> AttemptError {
        let message = format!("The model provider at {} broke off in the middle of its answer", self.name);
        self.error("model_interrupted", message, Retry::Never, detail)
    }

    pub(super) fn body_failed(&self, fault: StreamError) -> AttemptError {
        let detail = chain(&fault);
        match fault {
            StreamError::Silent(_) => {
                let message =
                    format!("The model provider at {} stopped sending in the middle of its answer", self.name);
                self.error("model_timeout", message, Retry::Never, &detail)
            }
            StreamError::Broken(_) => self.interrupted(&detail),
            _ => self.not_an_answer(&detail),
        }
    }

    /// A failure before the answer has begun is retried.
    pub(super) fn answer_failed(&self, fault: DecodeError, has_answer: bool) -> AttemptError {
        let name = &self.name;
        let (kind, said) = match fault {
            DecodeError::Malformed(detail) => return self.not_an_answer(&detail),
            DecodeError::Failed { kind, message } => (kind, message),
        };
        let (code, message, retry) = match kind {
            FailureKind::RateLimited if !has_answer => {
                let message = format!("The model provider at {name} got too many requests; try again later");
                ("model_rate_limited", message, Retry::Backoff)
            }
            FailureKind::Unavailable if !has_answer => {
                let message = format!("The model provider at {name} is not available now; try again later");
                ("model_unavailable", message, Retry::Backoff)
            }
            _ => {
                let quote = self.quote(&ProviderMessage { message: Some(said.clone()), quota_used_up: false });
                ("model_failed", format!("The model provider at {name} failed while it answered{quote}"), Retry::Never)
            }
        };
        self.error(code, message, retry, &format!("{name} says in the stream: {said}"))
    }

    fn not_an_answer(&self, detail: &str) -> AttemptError {
        let message =
            format!("The model provider at {} sent a response that is not an answer; check its base URL", self.name);
        self.error("model_protocol", message, Retry::Never, detail)
    }

    fn error(&self, code: &'static str, message: String, retry: Retry, detail: &str) -> AttemptError {
        let detail = shorten(&self.scrubber.scrub(detail), MAX_DETAIL_CHARS);
        AttemptError { error: ModelError::new(code, message).caused_by(detail), retry }
    }

    /// Secrets are removed before the message is cut, because a cut key is not recognised.
    fn quote(&self, provider: &ProviderMessage) -> String {
        let message = provider.message.as_deref().unwrap_or_default();
        let message = shorten(self.scrubber.scrub(message).trim(), MAX_MESSAGE_CHARS);
        if message.is_empty() { message } else { format!(": {message}") }
    }
}

#[derive(Debug, Default, PartialEq, Eq)]
struct ProviderMessage {
    message: Option<String>,
    /// A retry would be useless.
    quota_used_up: bool,
}

impl ProviderMessage {
    fn read(body: &[u8]) -> Self {
        let Ok(mut value) = serde_json::from_slice::<Value>(body) else { return Self::default() };
        if let Value::Array(items) = &mut value {
            value = items.first_mut().map(Value::take).unwrap_or_default();
        }
        let error = value.get("error").unwrap_or(&value);
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let message = ["message", "error", "detail", "msg"].iter().find_map(|name| {
            let found = error.get(name).or_else(|| value.get(name))?;
            text(found).or_else(|| text(found.get(0)?.get("msg")?))
        });
        let quota_used_up =
            [error.get("code"), error.get("type")].iter().flatten().any(|code| *code == "insufficient_quota");
        Self { message: message.or_else(|| text(error)), quota_used_up }
    }
}

fn shorten(text: &str, max_chars: usize) -> String {
    let mut chars = text.chars().map(|c| if c.is_control() { ' ' } else { c });
    let mut short: String = chars.by_ref().take(max_chars).collect();
    if chars.next().is_some() {
        short.pop();
        short.push('…');
    }
    short
}

fn chain(error: &dyn StdError) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
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
            assert_eq!(ProviderMessage::read(body.as_bytes()).message.as_deref(), Some("no"), "{body}");
        }
        for body in ["", "<html>", "[]", "null", "7", "{\"error\":{}}"] {
            assert_eq!(ProviderMessage::read(body.as_bytes()), ProviderMessage::default(), "{body}");
        }
        assert!(ProviderMessage::read(br#"{"error":{"message":"no","code":"insufficient_quota"}}"#).quota_used_up);
    }

    #[test]
    fn a_long_message_is_cut_and_control_characters_are_removed_for_the_client() {
        let errors = ProviderErrors::new(&Url::parse("https://u:p@host:8/v1?key=1").unwrap(), Vec::new());
        let body = format!(r#"{{"error":{{"message":"a\nb\u001b{}"}}}}"#, "é ".repeat(500));
        let failure = errors.refused(StatusCode::BAD_REQUEST, Retry::Backoff, body.as_bytes());
        let message = failure.error.message();
        assert!(message.starts_with("The model provider at host:8 refused the request (400): a b é "), "{message}");
        assert!(message.ends_with('…') && message.chars().count() < 400, "{message}");
        assert_eq!(failure.retry, Retry::Never);
    }

    #[test]
    fn a_used_up_quota_is_not_retried() {
        let errors = ProviderErrors::new(&Url::parse("https://host").unwrap(), Vec::new());
        let wait = Retry::After(Duration::ZERO);
        let quota = br#"{"error":{"type":"insufficient_quota","message":"pay"}}"#;
        assert_eq!(errors.refused(StatusCode::TOO_MANY_REQUESTS, wait, quota).retry, Retry::Never);
        assert_eq!(errors.refused(StatusCode::TOO_MANY_REQUESTS, wait, b"").retry, wait);
        for (status, retry) in
            [(408, wait), (409, wait), (500, wait), (529, wait), (400, Retry::Never), (301, Retry::Never)]
        {
            let status = StatusCode::from_u16(status).unwrap();
            assert_eq!(errors.refused(status, wait, b"").retry, retry, "{status}");
        }
    }
}
