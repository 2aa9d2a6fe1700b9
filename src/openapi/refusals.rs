//! The refusals of routes, in groups of what a handler does.

use crate::http::error_code::ErrorCode;

/// Several groups together.
pub(super) type Groups = &'static [&'static [ErrorCode]];

/// The middleware of all routes.
pub(super) const EVERY: &[ErrorCode] = &[ErrorCode::INTERNAL_ERROR, ErrorCode::ORIGIN_NOT_ALLOWED];

/// The middleware of servers without authentication.
pub(super) const WITHOUT_AUTHENTICATION: &[ErrorCode] = &[ErrorCode::HOST_NOT_ALLOWED];

pub(super) const AUTHENTICATION: &[ErrorCode] = &[
    ErrorCode::AUTHENTICATION_UNAVAILABLE,
    ErrorCode::INVALID_KEY,
    ErrorCode::INVALID_TOKEN,
    ErrorCode::KEYS_UNAVAILABLE,
    ErrorCode::UNAUTHENTICATED,
];

/// A request with a body to a route that needs a credential.
pub(super) const MEDIA_TYPE: &[ErrorCode] =
    &[ErrorCode::UNSUPPORTED_CONTENT_ENCODING, ErrorCode::UNSUPPORTED_MEDIA_TYPE];

pub(super) const URL: &[ErrorCode] = &[ErrorCode::INVALID_URL];

pub(super) const PARAMETER: &[ErrorCode] = &[ErrorCode::INVALID_PARAMETER];

/// Reading a body and its JSON.
pub(super) const BODY: &[ErrorCode] = &[
    ErrorCode::BODY_IN_TINY_PIECES,
    ErrorCode::BODY_INCOMPLETE,
    ErrorCode::BODY_TIMEOUT,
    ErrorCode::BODY_TOO_LARGE,
    ErrorCode::INVALID_INPUT,
    ErrorCode::INVALID_JSON,
    ErrorCode::TOO_DEEP,
    ErrorCode::TOO_MANY_BODY_BYTES,
    ErrorCode::TOO_MANY_VALUES,
];

pub(super) const AGENT: &[ErrorCode] = &[ErrorCode::UNKNOWN_AGENT];

pub(super) const STATELESS: &[ErrorCode] = &[ErrorCode::NO_STORED_THREADS];

pub(super) const STORE: &[ErrorCode] = &[ErrorCode::LEASE_LOST, ErrorCode::STORE_UNAVAILABLE];

/// The limits of runs, which copies of threads have as well.
pub(super) const LIMITS: &[ErrorCode] = &[
    ErrorCode::SHUTTING_DOWN,
    ErrorCode::TOO_MANY_CONCURRENT_RUNS,
    ErrorCode::TOO_MANY_RUNS,
    ErrorCode::TOO_MANY_RUNS_PER_MINUTE,
];

/// The start of a run.
pub(super) const START: &[ErrorCode] = &[
    ErrorCode::INVALID_INPUT,
    ErrorCode::ROLE_NOT_ACCEPTED,
    ErrorCode::RUN_IS_RUNNING,
    ErrorCode::THREAD_IS_BUSY,
    ErrorCode::THREAD_TOO_LARGE,
    ErrorCode::TOO_MANY_DETACHED_RUNS,
    ErrorCode::TOO_MANY_DETACHED_RUNS_OF_PRINCIPAL,
    ErrorCode::TOO_MANY_FOLLOWERS,
    ErrorCode::TOO_MANY_WAITING,
    ErrorCode::UNSUPPORTED_PROTOCOL_VERSION,
];

pub(super) const THREAD: &[ErrorCode] = &[ErrorCode::UNKNOWN_THREAD];

pub(super) const RUN: &[ErrorCode] = &[ErrorCode::UNKNOWN_RUN];

pub(super) const MESSAGE: &[ErrorCode] = &[ErrorCode::UNKNOWN_MESSAGE];

/// Following a detached run.
pub(super) const FOLLOW: &[ErrorCode] = &[
    ErrorCode::LOG_REMOVED,
    ErrorCode::RUN_HAS_NO_LOG,
    ErrorCode::TOO_MANY_FOLLOWERS,
    ErrorCode::UNKNOWN_RUN,
    ErrorCode::UNKNOWN_THREAD,
];

pub(super) const RUNNING: &[ErrorCode] = &[ErrorCode::RUN_IS_RUNNING];

pub(super) const EDIT: &[ErrorCode] =
    &[ErrorCode::METADATA_TOO_LARGE, ErrorCode::RUN_IS_RUNNING, ErrorCode::THREAD_CHANGED];

/// A thread that begins as a copy.
pub(super) const COPY: &[ErrorCode] =
    &[ErrorCode::INVALID_INPUT, ErrorCode::THREAD_EXISTS, ErrorCode::THREAD_TOO_LARGE];

pub(super) const LOOPBACK: &[ErrorCode] = &[ErrorCode::LOOPBACK_ONLY];

pub(super) const SHUTDOWN: &[ErrorCode] = &[ErrorCode::SHUTTING_DOWN];

pub(super) const SOCKET: &[ErrorCode] =
    &[ErrorCode::NO_WEBSOCKET, ErrorCode::TOO_MANY_SOCKETS, ErrorCode::UNAUTHENTICATED];
