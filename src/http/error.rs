//! All refusals: the errors of the modules below, and the variants of [`ApiError`], each with its
//! text, code and status. Their responses are in `refusal_response.rs`.
//!
//! A client never sees the cause of a failure within the server: it goes to the log, and the client gets a 500 or 503.

use std::time::Duration;

use axum::{
    http::{HeaderValue, Method},
    response::Response,
};

use crate::auth::AuthError;
use agui_agent::{files::UploadError, host::AgentEntry};
use agui_base::{
    refusals,
    text::{short_line, short_name},
};
use agui_protocol::{decode::DecodeError, host::PROTOCOL_VERSION};
use agui_run::{host::StartError, threads::ThreadError};
use agui_store::StoreError;

const MAX_LISTED_AGENTS: usize = 20;

/// The response of a handler.
pub(crate) type ApiResult<T = Response> = Result<T, ApiError>;

refusals! {
    /// A request is refused.
    #[derive(Debug, thiserror::Error)]
    pub(crate) enum ApiError {
        #[error(transparent)]
        #[refusal(AuthError)]
        Auth(AuthError),
        #[error("{0}")]
        #[refusal(BAD_REQUEST, "invalid_json", Body)]
        InvalidJson(DecodeError),
        #[error("{0}")]
        #[refusal(BAD_REQUEST, "too_deep", Body)]
        TooDeep(DecodeError),
        #[error("{0}")]
        #[refusal(PAYLOAD_TOO_LARGE, "too_many_values", Body)]
        TooManyValues(DecodeError),
        #[error("{0}")]
        #[refusal(BAD_REQUEST, "invalid_input", Body)]
        Malformed(DecodeError),
        #[error(transparent)]
        #[refusal(StartError)]
        Start(StartError),
        #[error(transparent)]
        #[refusal(ThreadError)]
        Thread(ThreadError),
        #[error("{}", match .0 {
            StoreError::LeaseLost => "the thread was deleted, or taken over by another server; try again",
            StoreError::Unavailable(_) => "the server's store is not available; try again later",
            _ => "the server failed",
        })]
        #[refusal(StoreError)]
        Store(StoreError),
        #[error(transparent)]
        #[refusal(UploadError)]
        Upload(UploadError),
        #[error("you have no such file")]
        #[refusal(NOT_FOUND, "unknown_file", File)]
        UnknownFile,
        #[error("the store of this server keeps no files")]
        #[refusal(NOT_IMPLEMENTED, "no_files", File)]
        NoFiles,
        #[error("the messages of {0} threads use the file: delete them, or send `?force`")]
        #[refusal(CONFLICT, "file_in_use", FileDeletion)]
        FileInUse(u64),
        #[error("the file has {0} bytes")]
        #[refusal(RANGE_NOT_SATISFIABLE, "range_not_satisfiable", FileRange)]
        UnsatisfiableRange(u64),
        #[error("the URL has expired, or its signature is wrong: snapshots of messages and GET /files have new URLs")]
        #[refusal(FORBIDDEN, "invalid_signature", FileRange)]
        InvalidSignature,
        #[error("the server failed")]
        #[refusal(INTERNAL_SERVER_ERROR, "internal_error", Every)]
        Internal,
        #[error("the server is at its limit of connections; try again later")]
        #[refusal(SERVICE_UNAVAILABLE, "too_many_connections", Every)]
        TooManyConnections,
        #[error("pages {pages} may not use this server: add their origin to [cors] allow_origins")]
        #[refusal(FORBIDDEN, "origin_not_allowed", Every)]
        ForeignOrigin { pages: String },
        #[error(
            "without authentication, this server answers under localhost and IP addresses only, not under {host}: add the host \
             name to [server] allowed_hosts, or configure [auth]"
        )]
        #[refusal(FORBIDDEN, "host_not_allowed", WithoutAuthentication)]
        ForeignHost { host: String },
        #[error("the request needs `Content-Type: application/json`; {found}")]
        #[refusal(UNSUPPORTED_MEDIA_TYPE, "unsupported_media_type", MediaType)]
        NotJson { found: String },
        #[error("compressed request bodies are not supported; send the JSON uncompressed")]
        #[refusal(UNSUPPORTED_MEDIA_TYPE, "unsupported_content_encoding", MediaType)]
        EncodedBody,
        #[error("{0}")]
        #[refusal(BAD_REQUEST, "invalid_url", Url)]
        InvalidUrl(String),
        #[error("{name}: expected {expected}")]
        #[refusal(BAD_REQUEST, "invalid_parameter", Parameter)]
        InvalidParameter { name: &'static str, expected: &'static str },
        #[error("the request body is larger than {0} bytes")]
        #[refusal(PAYLOAD_TOO_LARGE, "body_too_large", Body)]
        BodyTooLarge(usize),
        #[error("the request body arrives in too many tiny pieces: send chunks of at least {0} bytes")]
        #[refusal(BAD_REQUEST, "body_in_tiny_pieces", Body)]
        BodyInTinyPieces(usize),
        #[error("the server is receiving too many request bodies at once; try again later")]
        #[refusal(SERVICE_UNAVAILABLE, "too_many_body_bytes", Body)]
        TooManyBodyBytes,
        #[error("the request body took too long to arrive")]
        #[refusal(REQUEST_TIMEOUT, "body_timeout", Body)]
        BodyTimeout,
        #[error("the request body ended too early")]
        #[refusal(BAD_REQUEST, "body_incomplete", Body)]
        BodyIncomplete,
        #[error("{message}")]
        #[refusal(BAD_REQUEST, "invalid_input", Body)]
        InvalidInput { path: String, message: String },
        #[error("this server speaks AG-UI {PROTOCOL_VERSION}, not {0}")]
        #[refusal(BAD_REQUEST, "unsupported_protocol_version", Start)]
        UnsupportedVersion(String),
        #[error("the server is sending too many messages of threads at once; try again later")]
        #[refusal(SERVICE_UNAVAILABLE, "too_many_response_bytes", ResponseMemory)]
        TooManyResponseBytes,
        #[error("your credential does not allow the agent {0:?}: see [[allow]] in the server's configuration")]
        #[refusal(FORBIDDEN, "agent_not_allowed", Agent)]
        AgentNotAllowed(String),
        #[error("there is no agent {name:?}{known}")]
        #[refusal(NOT_FOUND, "unknown_agent", Agent)]
        UnknownAgent { name: String, known: String },
        #[error("this server has no default agent; use /agents/{{agent}}/send-message")]
        #[refusal(NOT_FOUND, "unknown_agent", Agent)]
        NoDefaultAgent,
        #[error(
            "without authentication, only processes of the server's own machine get {0}: connect to the server's own port \
             through 127.0.0.1, or configure authentication"
        )]
        #[refusal(FORBIDDEN, "loopback_only", Loopback)]
        LoopbackOnly(&'static str),
        #[error("the server, or the principal, is at its limit of event streams and WebSockets; try again later")]
        #[refusal(SERVICE_UNAVAILABLE, "too_many_streams", Streams, Socket)]
        TooManyStreams,
        #[error("the join_token is unknown or has expired: get one from POST /threads/subscribe")]
        #[refusal(UNAUTHORIZED, "unauthenticated", Socket)]
        InvalidJoinToken,
        #[error("this route is a WebSocket: send its handshake")]
        #[refusal(BAD_REQUEST, "no_websocket", Socket)]
        NoWebsocket,
        #[error("{path}: this server does not support it; leave it out")]
        #[refusal(BAD_REQUEST, "unsupported_parameter", Completion)]
        UnsupportedParameter { path: String },
        #[error("this Idempotency-Key belongs to a request with another body: send a new key")]
        #[refusal(UNPROCESSABLE_ENTITY, "idempotency_key_reused", Completion)]
        IdempotencyKeyReused,
        #[error("the request was answered, but its answer was too large to be kept: send a new Idempotency-Key to run it again")]
        #[refusal(CONFLICT, "answer_not_kept", Completion)]
        AnswerNotKept,
        #[error("the server, or the principal, is at its limit of requests with an Idempotency-Key; try again later")]
        #[refusal(SERVICE_UNAVAILABLE, "too_many_idempotency_keys", Completion)]
        TooManyIdempotencyKeys,
        #[error("{0}")]
        #[refusal(NOT_FOUND, "not_found", Envelope)]
        NoSuchRoute(String),
        #[error("{0}")]
        #[refusal(METHOD_NOT_ALLOWED, "method_not_allowed", Envelope)]
        MethodNotAllowed(String),
    }
}

impl ApiError {
    pub(crate) fn not_json(found: Option<&HeaderValue>) -> Self {
        let found = match found.map(|value| String::from_utf8_lossy(value.as_bytes())) {
            Some(value) => format!("it has {:?}", short_name(&value)),
            None => "it has no Content-Type".to_owned(),
        };
        Self::NotJson { found }
    }

    /// The text lists these agents, so it is for callers that are authenticated.
    pub(crate) fn unknown_agent(name: &str, agents: impl Iterator<Item = AgentEntry>) -> Self {
        let mut known: Vec<_> =
            agents.take(MAX_LISTED_AGENTS + 1).map(|agent| agent.name().to_owned()).collect();
        if known.len() > MAX_LISTED_AGENTS {
            known[MAX_LISTED_AGENTS] = "…".to_owned();
        }
        let known = match &known[..] {
            [] => ": this server has no agents".to_owned(),
            names => format!("; the agents are: {}", names.join(", ")),
        };
        Self::UnknownAgent { name: short_name(name), known }
    }

    pub(crate) fn foreign_host(host: Option<&HeaderValue>) -> Self {
        Self::ForeignHost { host: quoted(host) }
    }

    pub(crate) fn foreign_origin(origin: Option<&HeaderValue>) -> Self {
        let pages = match origin {
            Some(_) => format!("of the origin {}", quoted(origin)),
            None => "of other sites".to_owned(),
        };
        Self::ForeignOrigin { pages }
    }

    pub(crate) fn invalid_url(problem: &str) -> Self {
        Self::InvalidUrl(short_line(problem))
    }

    pub(crate) fn invalid_input(path: &str, expected: &str) -> Self {
        Self::InvalidInput {
            path: path.to_owned(),
            message: format!("{path}: expected {expected}"),
        }
    }

    /// `nearest` is the route that may be meant, `prefix` the path of the whole server.
    pub(crate) fn no_such_route(path: &str, nearest: Option<String>, prefix: &str) -> Self {
        let nearest = nearest.map(|route| format!(" Did you mean {route}?")).unwrap_or_default();
        let root = if prefix.is_empty() { "/" } else { prefix };
        let path = short_name(path);
        Self::NoSuchRoute(format!(
            "there is no route {path:?}.{nearest} GET {root} lists all routes"
        ))
    }

    pub(crate) fn method_not_allowed(method: &Method, path: &str, allowed: Option<&str>) -> Self {
        let allowed = allowed.map(|methods| format!("; use {methods}")).unwrap_or_default();
        Self::MethodNotAllowed(format!(
            "{method} is not allowed on {:?}{allowed}",
            short_name(path)
        ))
    }

    /// The member or the parameter that is wrong.
    pub(super) fn path(&self) -> Option<&str> {
        match self {
            Self::TooManyValues(error) | Self::Malformed(error) => error.path(),
            Self::Start(error) => error.path(),
            Self::Thread(error) => error.path(),
            Self::InvalidInput { path, .. } | Self::UnsupportedParameter { path } => Some(path),
            Self::InvalidParameter { name, .. } => Some(name),
            Self::UnsupportedVersion(_) => Some("protocolVersion"),
            _ => None,
        }
    }

    /// The time after which the same request may succeed.
    pub(super) fn retry_after(&self) -> Duration {
        match self {
            Self::Start(StartError::TooManyRunsPerMinute { retry_after })
            | Self::Auth(AuthError::NoKeys { retry_after }) => *retry_after,
            _ => Duration::from_secs(1),
        }
    }
}

impl From<DecodeError> for ApiError {
    fn from(error: DecodeError) -> Self {
        match error {
            DecodeError::Syntax(_) => Self::InvalidJson(error),
            DecodeError::TooDeep(_) => Self::TooDeep(error),
            DecodeError::TooManyValues { .. } => Self::TooManyValues(error),
            DecodeError::Malformed { .. } => Self::Malformed(error),
        }
    }
}

impl From<StartError> for ApiError {
    fn from(error: StartError) -> Self {
        match error {
            StartError::Store(error) => error.into(),
            error => Self::Start(error),
        }
    }
}

impl From<ThreadError> for ApiError {
    fn from(error: ThreadError) -> Self {
        match error {
            ThreadError::Store(error) => error.into(),
            error => Self::Thread(error),
        }
    }
}

impl From<UploadError> for ApiError {
    fn from(error: UploadError) -> Self {
        match error {
            UploadError::Store(error) => error.into(),
            error => Self::Upload(error),
        }
    }
}

impl From<StoreError> for ApiError {
    fn from(error: StoreError) -> Self {
        if !matches!(error, StoreError::LeaseLost) {
            tracing::error!(?error, "the store failed");
        }
        Self::Store(error)
    }
}

impl From<AuthError> for ApiError {
    fn from(error: AuthError) -> Self {
        if let AuthError::Failed(cause) = &error {
            let error = &**cause as &(dyn std::error::Error + 'static);
            tracing::error!(error, "cannot authenticate a request");
        }
        Self::Auth(error)
    }
}

fn quoted(header: Option<&HeaderValue>) -> String {
    let text = header.map(|value| String::from_utf8_lossy(value.as_bytes())).unwrap_or_default();
    format!("{:?}", short_name(&text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use agui_base::refusal::RefusalCodes as _;

    #[test]
    fn a_lost_lease_is_a_conflict_and_no_failure_of_the_server() {
        let error = ApiError::from(StartError::Store(StoreError::LeaseLost));
        assert_eq!(error.refusal_code().name, "lease_lost");
    }
}
