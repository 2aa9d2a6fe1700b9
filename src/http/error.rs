//! All refusals, with their status codes, error codes and texts.
//!
//! A client never sees the cause of a failure within the server: it goes to the log, and the client gets a 500 or 503.

use std::time::Duration;

use axum::{
    Json,
    http::{HeaderValue, Method, StatusCode, header},
    response::{IntoResponse, Response},
};
use serde::Serialize;

use crate::{
    auth::AuthError,
    protocol::{PROTOCOL_VERSION, decode::DecodeError},
    run::{CopyError, EditError, FeedbackError, LookupError, Runs, StartError},
    store::StoreError,
};

const MAX_LISTED_AGENTS: usize = 20;
/// The longest text of a request that an error repeats, in characters.
const MAX_QUOTED_CHARS: usize = 80;

#[derive(Debug)]
pub(crate) struct ApiError {
    status: StatusCode,
    code: &'static str,
    message: String,
    path: Option<String>,
    retry_after: Duration,
}

/// The code of a refusal, in the extensions of its response, for the metrics.
#[derive(Debug, Clone, Copy)]
pub(super) struct RefusalCode(pub(super) &'static str);

#[derive(Serialize)]
struct Body<'a> {
    error: Detail<'a>,
}

#[derive(Serialize)]
struct Detail<'a> {
    code: &'a str,
    message: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<&'a str>,
}

impl ApiError {
    fn new(status: StatusCode, code: &'static str, message: impl Into<String>) -> Self {
        Self { status, code, message: message.into(), path: None, retry_after: Duration::from_secs(1) }
    }

    /// Names the member or the parameter that is wrong.
    pub(crate) fn at(self, path: impl Into<String>) -> Self {
        Self { path: Some(path.into()), ..self }
    }

    pub(super) fn not_json(found: Option<&HeaderValue>) -> Self {
        let found = match found.map(|value| String::from_utf8_lossy(value.as_bytes())) {
            Some(value) => format!("it has {:?}", shortened(&value)),
            None => "it has no Content-Type".to_owned(),
        };
        let message = format!("the request needs `Content-Type: application/json`; {found}");
        Self::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "unsupported_media_type", message)
    }

    pub(super) fn encoded_body() -> Self {
        let message = "compressed request bodies are not supported; send the JSON uncompressed";
        Self::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "unsupported_content_encoding", message)
    }

    pub(super) fn body_too_large(limit: usize) -> Self {
        let message = format!("the request body is larger than {limit} bytes");
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "body_too_large", message)
    }

    pub(super) fn too_many_body_bytes() -> Self {
        let message = "the server is receiving too many request bodies at once; try again later";
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "too_many_body_bytes", message)
    }

    pub(super) fn body_in_tiny_pieces(min_average: usize) -> Self {
        let message =
            format!("the request body arrives in too many tiny pieces: send chunks of at least {min_average} bytes");
        Self::new(StatusCode::BAD_REQUEST, "body_in_tiny_pieces", message)
    }

    /// True if the client may have more to send than the server reads.
    pub(super) fn is_about_body_size(&self) -> bool {
        matches!(self.code, "body_too_large" | "too_many_body_bytes")
    }

    pub(super) fn body_timeout() -> Self {
        Self::new(StatusCode::REQUEST_TIMEOUT, "body_timeout", "the request body took too long to arrive")
    }

    pub(super) fn body_incomplete() -> Self {
        Self::new(StatusCode::BAD_REQUEST, "body_incomplete", "the request body ended too early")
    }

    /// The text lists the agents, so it is for callers that are authenticated.
    pub(crate) fn unknown_agent(name: &str, runs: &Runs) -> Self {
        let mut known: Vec<_> =
            runs.agents().take(MAX_LISTED_AGENTS + 1).map(|agent| agent.name().to_owned()).collect();
        if known.len() > MAX_LISTED_AGENTS {
            known[MAX_LISTED_AGENTS] = "…".to_owned();
        }
        let message = match known.is_empty() {
            true => format!("there is no agent {:?}: this server has no agents", shortened(name)),
            false => format!("there is no agent {:?}; the agents are: {}", shortened(name), known.join(", ")),
        };
        Self::new(StatusCode::NOT_FOUND, "unknown_agent", message)
    }

    pub(crate) fn no_default_agent() -> Self {
        let message = "this server has no default agent; use /agents/{agent}/send-message";
        Self::new(StatusCode::NOT_FOUND, "unknown_agent", message)
    }

    pub(super) fn unsupported_version(declared: &str) -> Self {
        let declared: String = declared.chars().take(16).collect();
        let message = format!("this server speaks AG-UI {PROTOCOL_VERSION}, not {declared}");
        Self::new(StatusCode::BAD_REQUEST, "unsupported_protocol_version", message).at("protocolVersion")
    }

    pub(super) fn foreign_host(host: Option<&HeaderValue>) -> Self {
        let host = quoted(host);
        let message = format!(
            "without authentication, this server answers under localhost and IP addresses only, not under {host}: \
             add the host name to [server] allowed_hosts, or configure [auth]"
        );
        Self::new(StatusCode::FORBIDDEN, "host_not_allowed", message)
    }

    pub(super) fn foreign_origin(origin: Option<&HeaderValue>) -> Self {
        let page = match origin {
            Some(_) => format!("of the origin {}", quoted(origin)),
            None => "of other sites".to_owned(),
        };
        let message = format!("pages {page} may not use this server: add their origin to [cors] allow_origins");
        Self::new(StatusCode::FORBIDDEN, "origin_not_allowed", message)
    }

    pub(super) fn invalid_url(status: StatusCode, problem: &str) -> Self {
        Self::new(status, "invalid_url", problem.chars().take(200).collect::<String>())
    }

    pub(super) fn invalid_parameter(name: &str, expected: &str) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "invalid_parameter", format!("{name}: expected {expected}")).at(name)
    }

    pub(crate) fn invalid_input(path: &str, expected: &str) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "invalid_input", format!("{path}: expected {expected}")).at(path)
    }

    pub(crate) fn no_stored_threads() -> Self {
        let message = "this server stores no threads; a run ends with its connection, and has no log";
        Self::new(StatusCode::NOT_IMPLEMENTED, "no_stored_threads", message)
    }

    pub(crate) fn loopback_only(what: &str) -> Self {
        let message = format!(
            "without authentication, only processes of the server's own machine get {what}: connect to the server's own \
             port through 127.0.0.1, or configure authentication"
        );
        Self::new(StatusCode::FORBIDDEN, "loopback_only", message)
    }

    pub(crate) fn invalid_join_token() -> Self {
        let message = "the join_token is unknown or has expired: get one from POST /threads/subscribe";
        Self::new(StatusCode::UNAUTHORIZED, "unauthenticated", message)
    }

    pub(crate) fn no_websocket() -> Self {
        Self::new(StatusCode::BAD_REQUEST, "no_websocket", "this route is a WebSocket: send its handshake")
    }

    pub(crate) fn too_many_sockets() -> Self {
        let message = "the server, or the principal, is at its limit of WebSockets; try again later";
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "too_many_sockets", message)
    }

    pub(crate) fn shutting_down() -> Self {
        StartError::ShuttingDown.into()
    }

    pub(crate) fn internal() -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "internal_error", "the server failed")
    }

    /// `nearest` is the route that may be meant, `prefix` the path of the whole server.
    pub(super) fn no_such_route(path: &str, nearest: Option<String>, prefix: &str) -> Self {
        let nearest = nearest.map(|route| format!(" Did you mean {route}?")).unwrap_or_default();
        let root = if prefix.is_empty() { "/" } else { prefix };
        let message = format!("there is no route {:?}.{nearest} GET {root} lists all routes", shortened(path));
        Self::new(StatusCode::NOT_FOUND, "not_found", message)
    }

    pub(super) fn method_not_allowed(method: &Method, path: &str, allowed: Option<&str>) -> Self {
        let allowed = allowed.map(|methods| format!("; use {methods}")).unwrap_or_default();
        let message = format!("{method} is not allowed on {:?}{allowed}", shortened(path));
        Self::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", message)
    }
}

impl From<DecodeError> for ApiError {
    fn from(error: DecodeError) -> Self {
        let (status, code) = match error {
            DecodeError::Syntax(_) => (StatusCode::BAD_REQUEST, "invalid_json"),
            DecodeError::TooDeep(_) => (StatusCode::BAD_REQUEST, "too_deep"),
            DecodeError::TooManyValues { .. } => (StatusCode::PAYLOAD_TOO_LARGE, "too_many_values"),
            DecodeError::Malformed { .. } => (StatusCode::BAD_REQUEST, "invalid_input"),
        };
        Self { path: error.path().map(str::to_owned), ..Self::new(status, code, error.to_string()) }
    }
}

impl From<StartError> for ApiError {
    fn from(error: StartError) -> Self {
        let (status, code) = match error {
            StartError::Store(error) => return error.into(),
            StartError::TooManyRuns => (StatusCode::SERVICE_UNAVAILABLE, "too_many_runs"),
            StartError::ShuttingDown => (StatusCode::SERVICE_UNAVAILABLE, "shutting_down"),
            StartError::TooManyDetachedRuns => (StatusCode::SERVICE_UNAVAILABLE, "too_many_detached_runs"),
            StartError::TooManyDetachedRunsOfPrincipal => (StatusCode::TOO_MANY_REQUESTS, "too_many_detached_runs"),
            StartError::TooManyRunsOfPrincipal => (StatusCode::TOO_MANY_REQUESTS, "too_many_concurrent_runs"),
            StartError::TooManyRunsPerMinute { .. } => (StatusCode::TOO_MANY_REQUESTS, "too_many_runs_per_minute"),
            StartError::TooManyFollowers => (StatusCode::SERVICE_UNAVAILABLE, "too_many_followers"),
            StartError::InvalidInput { .. } => (StatusCode::BAD_REQUEST, "invalid_input"),
            StartError::RoleNotAccepted { .. } => (StatusCode::BAD_REQUEST, "role_not_accepted"),
            StartError::RunIsRunning => (StatusCode::CONFLICT, "run_is_running"),
            StartError::ThreadIsBusy => (StatusCode::CONFLICT, "thread_is_busy"),
            StartError::QueueFull => (StatusCode::CONFLICT, "too_many_waiting"),
            StartError::ThreadTooLarge { .. } => (StatusCode::PAYLOAD_TOO_LARGE, "thread_too_large"),
        };
        let mut refusal = Self::new(status, code, error.to_string());
        match error {
            StartError::TooManyRunsPerMinute { retry_after } => refusal.retry_after = retry_after,
            StartError::InvalidInput { path, .. } | StartError::RoleNotAccepted { path } => refusal.path = Some(path),
            _ => {}
        }
        refusal
    }
}

impl From<LookupError> for ApiError {
    fn from(error: LookupError) -> Self {
        let (status, code) = match error {
            LookupError::Store(error) => return error.into(),
            LookupError::NoThread => (StatusCode::NOT_FOUND, "unknown_thread"),
            LookupError::NoRun => (StatusCode::NOT_FOUND, "unknown_run"),
            LookupError::NoLog => (StatusCode::NOT_FOUND, "run_has_no_log"),
            LookupError::TooManyFollowers => (StatusCode::SERVICE_UNAVAILABLE, "too_many_followers"),
            LookupError::LogRemoved => (StatusCode::GONE, "log_removed"),
        };
        Self::new(status, code, error.to_string())
    }
}

impl From<EditError> for ApiError {
    fn from(error: EditError) -> Self {
        let (status, code, path) = match error {
            EditError::Lookup(error) => return error.into(),
            EditError::NoMessage => (StatusCode::NOT_FOUND, "unknown_message", None),
            EditError::TitleTooLong => (StatusCode::BAD_REQUEST, "invalid_input", Some("title")),
            EditError::MetadataTooLarge => (StatusCode::PAYLOAD_TOO_LARGE, "metadata_too_large", Some("metadata")),
            EditError::Running => (StatusCode::CONFLICT, "run_is_running", None),
            EditError::Changed => (StatusCode::CONFLICT, "thread_changed", None),
        };
        Self { path: path.map(str::to_owned), ..Self::new(status, code, error.to_string()) }
    }
}

impl From<CopyError> for ApiError {
    fn from(error: CopyError) -> Self {
        let (status, code) = match error {
            CopyError::Lookup(error) => return error.into(),
            CopyError::NoMessage => (StatusCode::NOT_FOUND, "unknown_message"),
            CopyError::Exists => (StatusCode::CONFLICT, "thread_exists"),
            CopyError::Invalid { .. } => (StatusCode::BAD_REQUEST, "invalid_input"),
            CopyError::TooLarge { .. } => (StatusCode::PAYLOAD_TOO_LARGE, "thread_too_large"),
        };
        let mut refusal = Self::new(status, code, error.to_string());
        if let CopyError::Invalid { path, .. } = error {
            refusal.path = Some(path);
        }
        refusal
    }
}

impl From<FeedbackError> for ApiError {
    fn from(error: FeedbackError) -> Self {
        let (status, code) = match error {
            FeedbackError::Lookup(error) => return error.into(),
            FeedbackError::NoMessage => (StatusCode::NOT_FOUND, "unknown_message"),
            FeedbackError::CommentTooLong => {
                return Self::new(StatusCode::BAD_REQUEST, "invalid_input", error.to_string()).at("comment");
            }
        };
        Self::new(status, code, error.to_string())
    }
}

impl From<StoreError> for ApiError {
    fn from(error: StoreError) -> Self {
        if matches!(error, StoreError::LeaseLost) {
            let message = "the thread was deleted, or taken over by another server; try again";
            return Self::new(StatusCode::CONFLICT, "lease_lost", message);
        }
        tracing::error!(?error, "the store failed");
        if error.is_transient() {
            let message = "the server's store is not available; try again later";
            Self::new(StatusCode::SERVICE_UNAVAILABLE, "store_unavailable", message)
        } else {
            Self::internal()
        }
    }
}

impl From<AuthError> for ApiError {
    fn from(error: AuthError) -> Self {
        let (status, code) = match &error {
            AuthError::UnknownKey => (StatusCode::UNAUTHORIZED, "invalid_key"),
            AuthError::Token(_) => (StatusCode::UNAUTHORIZED, "invalid_token"),
            AuthError::NoKeys { .. } => (StatusCode::SERVICE_UNAVAILABLE, "keys_unavailable"),
            AuthError::Failed(cause) => {
                tracing::error!(
                    error = &**cause as &(dyn std::error::Error + 'static),
                    "cannot authenticate a request"
                );
                (StatusCode::SERVICE_UNAVAILABLE, "authentication_unavailable")
            }
            AuthError::Missing | AuthError::NotBearer | AuthError::Refused(_) => {
                (StatusCode::UNAUTHORIZED, "unauthenticated")
            }
        };
        let mut refusal = Self::new(status, code, error.to_string());
        if let AuthError::NoKeys { retry_after } = error {
            refusal.retry_after = retry_after;
        }
        refusal
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        tracing::info!(status = self.status.as_u16(), code = self.code, reason = self.message, "refused");
        let detail = Detail { code: self.code, message: &self.message, path: self.path.as_deref() };
        let mut response = (self.status, Json(Body { error: detail })).into_response();
        response.extensions_mut().insert(RefusalCode(self.code));
        let headers = response.headers_mut();
        match self.status {
            StatusCode::UNAUTHORIZED => {
                let challenge = challenge(self.code, &self.message);
                headers.insert(header::WWW_AUTHENTICATE, challenge);
            }
            StatusCode::SERVICE_UNAVAILABLE | StatusCode::TOO_MANY_REQUESTS => {
                headers.insert(header::RETRY_AFTER, whole_seconds(self.retry_after).into());
            }
            _ => {}
        }
        response
    }
}

/// RFC 6750, section 3. The text about a token is one of this server's own, so it can stand between quotation marks.
fn challenge(code: &str, message: &str) -> HeaderValue {
    const REALM: &str = "Bearer realm=\"agui-server\"";
    const INVALID: HeaderValue = HeaderValue::from_static("Bearer realm=\"agui-server\", error=\"invalid_token\"");
    match code {
        "invalid_token" => {
            let described = format!("{REALM}, error=\"invalid_token\", error_description=\"{message}\"");
            HeaderValue::from_str(&described).unwrap_or(INVALID)
        }
        "invalid_key" => INVALID,
        _ => HeaderValue::from_static(REALM),
    }
}

/// Rounds up to at least 1: a client that retries at once would be refused again.
fn whole_seconds(time: Duration) -> u64 {
    (time.as_secs() + u64::from(time.subsec_nanos() > 0)).max(1)
}

fn quoted(header: Option<&HeaderValue>) -> String {
    let text = header.map(|value| String::from_utf8_lossy(value.as_bytes())).unwrap_or_default();
    format!("{:?}", shortened(&text))
}

fn shortened(text: &str) -> String {
    text.chars().take(MAX_QUOTED_CHARS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lost_lease_is_a_conflict_and_no_failure_of_the_server() {
        let error = ApiError::from(StartError::Store(StoreError::LeaseLost));
        assert_eq!((error.status, error.code), (StatusCode::CONFLICT, "lease_lost"));
    }
}
