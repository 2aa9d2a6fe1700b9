//! How asking fails: what the person at the client is told, what the log is told, and whether to try again.
//!
//! | code | what happened | tried again |
//! |---|---|---|
//! | `model_unreachable` | no connection, or it closed without an answer | yes |
//! | `model_timeout` | silence, before the answer or in it | no |
//! | `model_rate_limited` | 429 | yes, unless a quota is used up |
//! | `model_unavailable` | 408, 409, 5xx, overloaded | yes |
//! | `model_unauthorized` | 401, 403 | no |
//! | `model_rejected` | any other status | no |
//! | `model_protocol` | the answer is not a stream of what it should be | no |
//! | `model_interrupted` | the stream ended before the answer did | no |
//! | `model_failed` | the provider says so in the stream | no |
//!
//! "Tried again" ends with the first piece of an answer, which somebody may have read. What a provider says reaches
//! the client only where it is about the request; all of it reaches the log, and nothing secret reaches either.

use std::{error::Error as StdError, time::Duration};

use http::StatusCode;
use reqwest::Url;
use serde_json::Value;

use super::{
    decode::{Fault, Kind},
    retry::Retry,
    scrub::Scrubber,
};
use crate::{llm::ModelError, upstream::events::StreamFault};

/// How much of a provider's own message a client is shown.
const LONGEST_MESSAGE: usize = 300;
/// How much of what a provider said a log is shown.
const LONGEST_DETAIL: usize = 2000;

/// A failure, and whether it is worth another attempt.
#[derive(Debug)]
pub(super) struct Failure {
    pub(super) error: ModelError,
    pub(super) retry: Retry,
}

/// Whom one speaks to, and what must not be said about it.
pub(super) struct Peer {
    /// The host and the port, if one is named. Nothing else of the URL is fit to be shown.
    name: String,
    scrubber: Scrubber,
}

impl Peer {
    pub(super) fn new(url: &Url, secrets: Vec<String>) -> Self {
        let host = url.host_str().unwrap_or("the provider");
        let name = url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"));
        Self { name, scrubber: Scrubber::new(secrets) }
    }

    /// The request could not be sent, or there was no answer to it.
    pub(super) fn unreachable(&self, error: reqwest::Error) -> Failure {
        let message = format!("The model provider at {} cannot be reached", self.name);
        self.failure("model_unreachable", message, Retry::Backoff, &chain(&error.without_url()))
    }

    /// There was no head of an answer in time.
    pub(super) fn silent(&self, waited: Duration) -> Failure {
        let message = format!("The model provider at {} does not answer", self.name);
        self.failure("model_timeout", message, Retry::Never, &format!("nothing came for {waited:?}"))
    }

    /// The answer is an error. `asked` is what its head says about trying again, `body` what was read of it.
    pub(super) fn refused(&self, status: StatusCode, asked: Retry, body: &[u8]) -> Failure {
        let said = Said::read(body);
        let name = &self.name;
        let detail = format!("{name} answered {status}: {}", String::from_utf8_lossy(body));
        let number = status.as_u16();
        let (code, message, retry) = match Kind::of_status(number.into()) {
            Kind::RateLimited if said.exhausted => {
                let message = format!("The account at the model provider {name} has used up its quota");
                ("model_rate_limited", message, Retry::Never)
            }
            Kind::RateLimited => {
                let message = format!("The model provider at {name} was asked too often; try again later");
                ("model_rate_limited", message, asked)
            }
            Kind::Unavailable => {
                let message = format!("The model provider at {name} is not available now ({number}); try again later");
                ("model_unavailable", message, asked)
            }
            Kind::Other if matches!(number, 401 | 403) => {
                let what = if number == 401 { "does not accept the API key" } else { "does not allow this request" };
                let message = format!("The model provider at {name} {what}; check the key that the server is given");
                ("model_unauthorized", message, Retry::Never)
            }
            Kind::Other if status.is_redirection() => {
                let message = format!("The model provider at {name} answered with a redirect; check its base URL");
                ("model_rejected", message, Retry::Never)
            }
            Kind::Other => {
                let message =
                    format!("The model provider at {name} refused the request ({number}){}", self.quote(&said));
                ("model_rejected", message, Retry::Never)
            }
        };
        self.failure(code, message, retry, &detail)
    }

    /// The answer is something else than a stream of events.
    pub(super) fn no_events(&self, content_type: &str, body: &[u8]) -> Failure {
        let detail = format!("it has the type {content_type:?}: {}", String::from_utf8_lossy(body));
        self.confused(&detail)
    }

    /// The stream ended, or broke, before the answer did.
    pub(super) fn interrupted(&self, detail: &str) -> Failure {
        let message = format!("The model provider at {} broke off in the middle of its answer", self.name);
        self.failure("model_interrupted", message, Retry::Never, detail)
    }

    /// The stream cannot be read on.
    pub(super) fn body_failed(&self, fault: StreamFault) -> Failure {
        let detail = chain(&fault);
        match fault {
            StreamFault::Silent(_) => {
                let message = format!("The model provider at {} fell silent in the middle of its answer", self.name);
                self.failure("model_timeout", message, Retry::Never, &detail)
            }
            StreamFault::Broken(_) => self.interrupted(&detail),
            _ => self.confused(&detail),
        }
    }

    /// An event is no part of an answer. One that fails before it has begun is worth another attempt.
    pub(super) fn answer_failed(&self, fault: Fault, spoken: bool) -> Failure {
        let name = &self.name;
        let (kind, said) = match fault {
            Fault::Malformed(detail) => return self.confused(&detail),
            Fault::Failed { kind, message } => (kind, message),
        };
        let (code, message, retry) = match kind {
            Kind::RateLimited if !spoken => {
                let message = format!("The model provider at {name} was asked too often; try again later");
                ("model_rate_limited", message, Retry::Backoff)
            }
            Kind::Unavailable if !spoken => {
                let message = format!("The model provider at {name} is not available now; try again later");
                ("model_unavailable", message, Retry::Backoff)
            }
            _ => {
                let quote = self.quote(&Said { message: Some(said.clone()), exhausted: false });
                ("model_failed", format!("The model provider at {name} failed while it answered{quote}"), Retry::Never)
            }
        };
        self.failure(code, message, retry, &format!("{name} says in the stream: {said}"))
    }

    fn confused(&self, detail: &str) -> Failure {
        let message =
            format!("The model provider at {} sent something that is no answer; check its base URL", self.name);
        self.failure("model_protocol", message, Retry::Never, detail)
    }

    fn failure(&self, code: &'static str, message: String, retry: Retry, detail: &str) -> Failure {
        let detail = shorten(&self.scrubber.scrub(detail), LONGEST_DETAIL);
        Failure { error: ModelError::new(code, message).caused_by(detail), retry }
    }

    /// What the provider said, as the end of a sentence. It is cleaned before it is cut, as half a key has no looks.
    fn quote(&self, said: &Said) -> String {
        let message = said.message.as_deref().unwrap_or_default();
        let message = shorten(self.scrubber.scrub(message).trim(), LONGEST_MESSAGE);
        if message.is_empty() { message } else { format!(": {message}") }
    }
}

/// What the body of an error says.
#[derive(Debug, Default, PartialEq, Eq)]
struct Said {
    message: Option<String>,
    /// Whether there is no money left, so that waiting is no use.
    exhausted: bool,
}

impl Said {
    /// Finds the message in any of the shapes that servers give it. A page of HTML is no message.
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
        let exhausted =
            [error.get("code"), error.get("type")].iter().flatten().any(|code| *code == "insufficient_quota");
        Self { message: message.or_else(|| text(error)), exhausted }
    }
}

/// The text without anything that would break a line, and not longer than `most` characters.
fn shorten(text: &str, most: usize) -> String {
    let mut chars = text.chars().map(|c| if c.is_control() { ' ' } else { c });
    let mut short: String = chars.by_ref().take(most).collect();
    if chars.next().is_some() {
        short.pop();
        short.push('…');
    }
    short
}

/// The error and all its causes.
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
            assert_eq!(Said::read(body.as_bytes()).message.as_deref(), Some("no"), "{body}");
        }
        for body in ["", "<html>", "[]", "null", "7", "{\"error\":{}}"] {
            assert_eq!(Said::read(body.as_bytes()), Said::default(), "{body}");
        }
        assert!(Said::read(br#"{"error":{"message":"no","code":"insufficient_quota"}}"#).exhausted);
    }

    #[test]
    fn a_client_is_shown_little_of_a_long_message_and_nothing_that_breaks_a_line() {
        let peer = Peer::new(&Url::parse("https://u:p@host:8/v1?key=1").unwrap(), Vec::new());
        let body = format!(r#"{{"error":{{"message":"a\nb\u001b{}"}}}}"#, "é ".repeat(500));
        let failure = peer.refused(StatusCode::BAD_REQUEST, Retry::Backoff, body.as_bytes());
        let message = failure.error.message();
        assert!(message.starts_with("The model provider at host:8 refused the request (400): a b é "), "{message}");
        assert!(message.ends_with('…') && message.chars().count() < 400, "{message}");
        assert_eq!(failure.retry, Retry::Never);
    }

    #[test]
    fn a_used_up_quota_is_not_asked_again() {
        let peer = Peer::new(&Url::parse("https://host").unwrap(), Vec::new());
        let asked = Retry::After(Duration::ZERO);
        let quota = br#"{"error":{"type":"insufficient_quota","message":"pay"}}"#;
        assert_eq!(peer.refused(StatusCode::TOO_MANY_REQUESTS, asked, quota).retry, Retry::Never);
        assert_eq!(peer.refused(StatusCode::TOO_MANY_REQUESTS, asked, b"").retry, asked);
        for (status, retry) in
            [(408, asked), (409, asked), (500, asked), (529, asked), (400, Retry::Never), (301, Retry::Never)]
        {
            let status = StatusCode::from_u16(status).unwrap();
            assert_eq!(peer.refused(status, asked, b"").retry, retry, "{status}");
        }
    }
}
