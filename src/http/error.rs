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
use utoipa::ToSchema;

use super::error_code::ErrorCode;
use crate::{
    auth::AuthError,
    base::text::shortened,
    protocol::{PROTOCOL_VERSION, decode::DecodeError},
    run::{AgentEntry, StartError, limits::stored_bytes::StorageLimit},
    store::StoreError,
    threads::ThreadError,
};

const MAX_LISTED_AGENTS: usize = 20;
/// The longest text of a request that an error repeats, in characters.
const MAX_QUOTED_CHARS: usize = 80;

/// The answer of a handler.
pub(crate) type ApiResult<T = Response> = Result<T, ApiError>;

#[derive(Debug)]
pub(crate) struct ApiError {
    code: ErrorCode,
    message: String,
    path: Option<String>,
    retry_after: Duration,
}

/// The code of a refusal, in the extensions of its response, for the metrics.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RefusalCode(pub(crate) &'static str);

/// The request was refused.
#[derive(Serialize, ToSchema)]
#[schema(as = Error)]
pub(crate) struct Refusal<'a> {
    #[schema(inline)]
    error: RefusalDetail<'a>,
}

#[derive(Serialize, ToSchema)]
struct RefusalDetail<'a> {
    #[schema(value_type = ErrorCode)]
    code: &'a str,
    message: &'a str,
    /// The member or the parameter that is wrong, such as `messages[0].id`.
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<&'a str>,
}

impl ApiError {
    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), path: None, retry_after: Duration::from_secs(1) }
    }

    /// Names the member or the parameter that is wrong.
    pub(crate) fn at(self, path: impl Into<String>) -> Self {
        Self { path: Some(path.into()), ..self }
    }

    pub(crate) fn not_json(found: Option<&HeaderValue>) -> Self {
        let found = match found.map(|value| String::from_utf8_lossy(value.as_bytes())) {
            Some(value) => format!("it has {:?}", shortened(&value, MAX_QUOTED_CHARS)),
            None => "it has no Content-Type".to_owned(),
        };
        let message = format!("the request needs `Content-Type: application/json`; {found}");
        Self::new(ErrorCode::UNSUPPORTED_MEDIA_TYPE, message)
    }

    pub(crate) fn body_too_large(limit: usize) -> Self {
        let message = format!("the request body is larger than {limit} bytes");
        Self::new(ErrorCode::BODY_TOO_LARGE, message)
    }

    pub(crate) fn body_in_tiny_pieces(min_average: usize) -> Self {
        let message =
            format!("the request body arrives in too many tiny pieces: send chunks of at least {min_average} bytes");
        Self::new(ErrorCode::BODY_IN_TINY_PIECES, message)
    }

    /// True if the client may have more to send than the server reads.
    pub(crate) fn is_about_body_size(&self) -> bool {
        matches!(self.code, ErrorCode::BODY_TOO_LARGE | ErrorCode::TOO_MANY_BODY_BYTES)
    }

    pub(crate) fn agent_not_allowed(name: &str) -> Self {
        let message =
            format!("your credential does not allow the agent {name:?}: see [[allow]] in the server's configuration");
        Self::new(ErrorCode::AGENT_NOT_ALLOWED, message)
    }

    /// The text lists these agents, so it is for callers that are authenticated.
    pub(crate) fn unknown_agent(name: &str, agents: impl Iterator<Item = AgentEntry>) -> Self {
        let mut known: Vec<_> = agents.take(MAX_LISTED_AGENTS + 1).map(|agent| agent.name().to_owned()).collect();
        if known.len() > MAX_LISTED_AGENTS {
            known[MAX_LISTED_AGENTS] = "…".to_owned();
        }
        let name = shortened(name, MAX_QUOTED_CHARS);
        let message = match known.is_empty() {
            true => format!("there is no agent {name:?}: this server has no agents"),
            false => format!("there is no agent {name:?}; the agents are: {}", known.join(", ")),
        };
        Self::new(ErrorCode::UNKNOWN_AGENT, message)
    }

    pub(crate) fn unsupported_version(declared: &str) -> Self {
        let declared = shortened(declared, 16);
        let message = format!("this server speaks AG-UI {PROTOCOL_VERSION}, not {declared}");
        Self::new(ErrorCode::UNSUPPORTED_PROTOCOL_VERSION, message).at("protocolVersion")
    }

    pub(crate) fn foreign_host(host: Option<&HeaderValue>) -> Self {
        let host = quoted(host);
        let message = format!(
            "without authentication, this server answers under localhost and IP addresses only, not under {host}: \
             add the host name to [server] allowed_hosts, or configure [auth]"
        );
        Self::new(ErrorCode::HOST_NOT_ALLOWED, message)
    }

    pub(crate) fn foreign_origin(origin: Option<&HeaderValue>) -> Self {
        let page = match origin {
            Some(_) => format!("of the origin {}", quoted(origin)),
            None => "of other sites".to_owned(),
        };
        let message = format!("pages {page} may not use this server: add their origin to [cors] allow_origins");
        Self::new(ErrorCode::ORIGIN_NOT_ALLOWED, message)
    }

    pub(crate) fn invalid_url(problem: &str) -> Self {
        Self::new(ErrorCode::INVALID_URL, shortened(problem, 200))
    }

    pub(crate) fn invalid_parameter(name: &str, expected: &str) -> Self {
        Self::new(ErrorCode::INVALID_PARAMETER, format!("{name}: expected {expected}")).at(name)
    }

    pub(crate) fn invalid_input(path: &str, expected: &str) -> Self {
        Self::new(ErrorCode::INVALID_INPUT, format!("{path}: expected {expected}")).at(path)
    }

    pub(crate) fn loopback_only(what: &str) -> Self {
        let message = format!(
            "without authentication, only processes of the server's own machine get {what}: connect to the server's own \
             port through 127.0.0.1, or configure authentication"
        );
        Self::new(ErrorCode::LOOPBACK_ONLY, message)
    }

    pub(crate) fn shutting_down() -> Self {
        StartError::ShuttingDown.into()
    }

    /// `nearest` is the route that may be meant, `prefix` the path of the whole server.
    pub(crate) fn no_such_route(path: &str, nearest: Option<String>, prefix: &str) -> Self {
        let nearest = nearest.map(|route| format!(" Did you mean {route}?")).unwrap_or_default();
        let root = if prefix.is_empty() { "/" } else { prefix };
        let message =
            format!("there is no route {:?}.{nearest} GET {root} lists all routes", shortened(path, MAX_QUOTED_CHARS));
        Self::new(ErrorCode::NOT_FOUND, message)
    }

    pub(crate) fn method_not_allowed(method: &Method, path: &str, allowed: Option<&str>) -> Self {
        let allowed = allowed.map(|methods| format!("; use {methods}")).unwrap_or_default();
        let message = format!("{method} is not allowed on {:?}{allowed}", shortened(path, MAX_QUOTED_CHARS));
        Self::new(ErrorCode::METHOD_NOT_ALLOWED, message)
    }
}

/// Declares the refusals whose text is always the same.
macro_rules! fixed_refusals {
    ($($name:ident = $code:ident, $message:literal;)*) => {
        impl ApiError {$(
            pub(crate) fn $name() -> Self {
                Self::new(ErrorCode::$code, $message)
            }
        )*}
    };
}

fixed_refusals! {
    encoded_body = UNSUPPORTED_CONTENT_ENCODING,
        "compressed request bodies are not supported; send the JSON uncompressed";
    too_many_body_bytes = TOO_MANY_BODY_BYTES,
        "the server is receiving too many request bodies at once; try again later";
    too_many_answer_bytes = TOO_MANY_ANSWER_BYTES,
        "the server is sending too many messages of threads at once; try again later";
    body_timeout = BODY_TIMEOUT, "the request body took too long to arrive";
    body_incomplete = BODY_INCOMPLETE, "the request body ended too early";
    no_default_agent = UNKNOWN_AGENT, "this server has no default agent; use /agents/{agent}/send-message";
    no_stored_threads = NO_STORED_THREADS,
        "this server stores no threads; a run ends with its connection, and has no log";
    invalid_join_token = UNAUTHENTICATED,
        "the join_token is unknown or has expired: get one from POST /threads/subscribe";
    no_websocket = NO_WEBSOCKET, "this route is a WebSocket: send its handshake";
    too_many_connections = TOO_MANY_CONNECTIONS, "the server is at its limit of connections; try again later";
    too_many_streams = TOO_MANY_STREAMS,
        "the server, or the principal, is at its limit of event streams and WebSockets; try again later";
    internal = INTERNAL_ERROR, "the server failed";
    playground_is_off = NOT_FOUND,
        "the playground is off: set [playground] enabled = true (AGUI_PLAYGROUND__ENABLED=true). Without that \
        option, only a server on a loopback address without authentication has it";
}

impl From<DecodeError> for ApiError {
    fn from(error: DecodeError) -> Self {
        let code = match error {
            DecodeError::Syntax(_) => ErrorCode::INVALID_JSON,
            DecodeError::TooDeep(_) => ErrorCode::TOO_DEEP,
            DecodeError::TooManyValues { .. } => ErrorCode::TOO_MANY_VALUES,
            DecodeError::Malformed { .. } => ErrorCode::INVALID_INPUT,
        };
        Self { path: error.path().map(str::to_owned), ..Self::new(code, error.to_string()) }
    }
}

impl From<StartError> for ApiError {
    fn from(error: StartError) -> Self {
        let code = match error {
            StartError::Store(error) => return error.into(),
            StartError::TooManyRuns => ErrorCode::TOO_MANY_RUNS,
            StartError::ShuttingDown => ErrorCode::SHUTTING_DOWN,
            StartError::TooManyDetachedRuns => ErrorCode::TOO_MANY_DETACHED_RUNS,
            StartError::TooManyDetachedRunsOfPrincipal => ErrorCode::TOO_MANY_DETACHED_RUNS_OF_PRINCIPAL,
            StartError::TooManyRunsOfPrincipal => ErrorCode::TOO_MANY_CONCURRENT_RUNS,
            StartError::TooManyRunBytes => ErrorCode::TOO_MANY_RUN_BYTES,
            StartError::TooManyRunsPerMinute { .. } => ErrorCode::TOO_MANY_RUNS_PER_MINUTE,
            StartError::TooManyFollowers => ErrorCode::TOO_MANY_FOLLOWERS,
            StartError::InvalidInput { .. } => ErrorCode::INVALID_INPUT,
            StartError::RoleNotAccepted { .. } => ErrorCode::ROLE_NOT_ACCEPTED,
            StartError::RunIsRunning => ErrorCode::RUN_IS_RUNNING,
            StartError::ThreadIsBusy => ErrorCode::THREAD_IS_BUSY,
            StartError::QueueFull => ErrorCode::TOO_MANY_WAITING,
            StartError::Storage(limit) => code_of(limit),
            StartError::ThreadTooLarge { .. } => ErrorCode::THREAD_TOO_LARGE,
        };
        let mut refusal = Self::new(code, error.to_string());
        match error {
            StartError::TooManyRunsPerMinute { retry_after } => refusal.retry_after = retry_after,
            StartError::InvalidInput { path, .. } | StartError::RoleNotAccepted { path } => refusal.path = Some(path),
            _ => {}
        }
        refusal
    }
}

fn code_of(limit: StorageLimit) -> ErrorCode {
    match limit {
        StorageLimit::Principal(_) => ErrorCode::TOO_MANY_STORED_BYTES,
        StorageLimit::Server(_) => ErrorCode::STORAGE_FULL,
    }
}

impl From<ThreadError> for ApiError {
    fn from(error: ThreadError) -> Self {
        let message = error.to_string();
        let (code, path) = match error {
            ThreadError::Store(error) => return error.into(),
            ThreadError::NoThread => (ErrorCode::UNKNOWN_THREAD, None),
            ThreadError::NoRun => (ErrorCode::UNKNOWN_RUN, None),
            ThreadError::NoLog => (ErrorCode::RUN_HAS_NO_LOG, None),
            ThreadError::TooManyFollowers => (ErrorCode::TOO_MANY_FOLLOWERS, None),
            ThreadError::Running | ThreadError::BranchIsRunning => (ErrorCode::RUN_IS_RUNNING, None),
            ThreadError::LogRemoved => (ErrorCode::LOG_REMOVED, None),
            ThreadError::NoMessage | ThreadError::NoMessageYet => (ErrorCode::UNKNOWN_MESSAGE, None),
            ThreadError::CommentTooLong => (ErrorCode::INVALID_INPUT, Some("comment".to_owned())),
            ThreadError::TitleTooLong => (ErrorCode::INVALID_INPUT, Some("title".to_owned())),
            ThreadError::MetadataTooLarge => (ErrorCode::METADATA_TOO_LARGE, Some("metadata".to_owned())),
            ThreadError::Changed => (ErrorCode::THREAD_CHANGED, None),
            ThreadError::Exists => (ErrorCode::THREAD_EXISTS, None),
            ThreadError::Storage(limit) => (code_of(limit), None),
            ThreadError::Invalid { path, .. } => (ErrorCode::INVALID_INPUT, Some(path)),
            ThreadError::TooLarge { .. } => (ErrorCode::THREAD_TOO_LARGE, None),
        };
        Self { path, ..Self::new(code, message) }
    }
}

impl From<StoreError> for ApiError {
    fn from(error: StoreError) -> Self {
        if matches!(error, StoreError::LeaseLost) {
            let message = "the thread was deleted, or taken over by another server; try again";
            return Self::new(ErrorCode::LEASE_LOST, message);
        }
        tracing::error!(?error, "the store failed");
        if error.is_transient() {
            let message = "the server's store is not available; try again later";
            Self::new(ErrorCode::STORE_UNAVAILABLE, message)
        } else {
            Self::internal()
        }
    }
}

impl From<AuthError> for ApiError {
    fn from(error: AuthError) -> Self {
        let code = match &error {
            AuthError::UnknownKey => ErrorCode::INVALID_KEY,
            AuthError::Token(_) => ErrorCode::INVALID_TOKEN,
            AuthError::NoKeys { .. } => ErrorCode::KEYS_UNAVAILABLE,
            AuthError::Failed(cause) => {
                tracing::error!(
                    error = &**cause as &(dyn std::error::Error + 'static),
                    "cannot authenticate a request"
                );
                ErrorCode::AUTHENTICATION_UNAVAILABLE
            }
            AuthError::Missing | AuthError::NotBearer | AuthError::Refused(_) => ErrorCode::UNAUTHENTICATED,
        };
        let mut refusal = Self::new(code, error.to_string());
        if let AuthError::NoKeys { retry_after } = error {
            refusal.retry_after = retry_after;
        }
        refusal
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let (status, code) = (self.code.status(), self.code.name());
        tracing::debug!(status = status.as_u16(), code, reason = self.message, "refused");
        let error = RefusalDetail { code, message: &self.message, path: self.path.as_deref() };
        let mut response = (status, Json(Refusal { error })).into_response();
        response.extensions_mut().insert(RefusalCode(code));
        let headers = response.headers_mut();
        match status {
            StatusCode::UNAUTHORIZED => {
                let challenge = challenge(code, &self.message);
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
    format!("{:?}", shortened(&text, MAX_QUOTED_CHARS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lost_lease_is_a_conflict_and_no_failure_of_the_server() {
        let error = ApiError::from(StartError::Store(StoreError::LeaseLost));
        assert_eq!(error.code, ErrorCode::LEASE_LOST);
    }
}
