//! The codes of refused requests, each with its status. `/openapi.json` describes all of them.
//!
//! To add one, add a line to `error_codes!`, use it in `error.rs`, and name it in `docs/protocol.md` and in
//! `openapi/refuse.rs`; a test compares the lists.

use std::collections::BTreeSet;

use axum::http::StatusCode;
use utoipa::{
    PartialSchema, ToSchema,
    openapi::{RefOr, Schema},
};

use super::openapi::schema::text_of;

/// The reason of a refusal, as clients see it. Values exist only in this file, so [`ALL`](Self::ALL) is complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ErrorCode {
    status: StatusCode,
    name: &'static str,
}

impl ErrorCode {
    pub(crate) fn status(self) -> StatusCode {
        self.status
    }

    pub(crate) fn name(self) -> &'static str {
        self.name
    }
}

impl PartialSchema for ErrorCode {
    fn schema() -> RefOr<Schema> {
        let names: BTreeSet<_> = Self::ALL.iter().map(|code| code.name).collect();
        text_of(names).into()
    }
}

impl ToSchema for ErrorCode {}

macro_rules! error_codes {
    ($($constant:ident = $status:ident, $name:literal;)*) => {
        impl ErrorCode {
            $(pub(crate) const $constant: Self = Self { status: StatusCode::$status, name: $name };)*

            pub(crate) const ALL: &[Self] = &[$(Self::$constant,)*];
        }
    };
}

error_codes! {
    BODY_IN_TINY_PIECES = BAD_REQUEST, "body_in_tiny_pieces";
    BODY_INCOMPLETE = BAD_REQUEST, "body_incomplete";
    INVALID_INPUT = BAD_REQUEST, "invalid_input";
    INVALID_JSON = BAD_REQUEST, "invalid_json";
    INVALID_PARAMETER = BAD_REQUEST, "invalid_parameter";
    INVALID_URL = BAD_REQUEST, "invalid_url";
    NO_WEBSOCKET = BAD_REQUEST, "no_websocket";
    ROLE_NOT_ACCEPTED = BAD_REQUEST, "role_not_accepted";
    TOO_DEEP = BAD_REQUEST, "too_deep";
    UNSUPPORTED_PROTOCOL_VERSION = BAD_REQUEST, "unsupported_protocol_version";
    INVALID_KEY = UNAUTHORIZED, "invalid_key";
    INVALID_TOKEN = UNAUTHORIZED, "invalid_token";
    UNAUTHENTICATED = UNAUTHORIZED, "unauthenticated";
    AGENT_NOT_ALLOWED = FORBIDDEN, "agent_not_allowed";
    HOST_NOT_ALLOWED = FORBIDDEN, "host_not_allowed";
    LOOPBACK_ONLY = FORBIDDEN, "loopback_only";
    ORIGIN_NOT_ALLOWED = FORBIDDEN, "origin_not_allowed";
    NOT_FOUND = NOT_FOUND, "not_found";
    RUN_HAS_NO_LOG = NOT_FOUND, "run_has_no_log";
    UNKNOWN_AGENT = NOT_FOUND, "unknown_agent";
    UNKNOWN_MESSAGE = NOT_FOUND, "unknown_message";
    UNKNOWN_RUN = NOT_FOUND, "unknown_run";
    UNKNOWN_THREAD = NOT_FOUND, "unknown_thread";
    METHOD_NOT_ALLOWED = METHOD_NOT_ALLOWED, "method_not_allowed";
    BODY_TIMEOUT = REQUEST_TIMEOUT, "body_timeout";
    LEASE_LOST = CONFLICT, "lease_lost";
    RUN_IS_RUNNING = CONFLICT, "run_is_running";
    THREAD_CHANGED = CONFLICT, "thread_changed";
    THREAD_EXISTS = CONFLICT, "thread_exists";
    THREAD_IS_BUSY = CONFLICT, "thread_is_busy";
    TOO_MANY_WAITING = CONFLICT, "too_many_waiting";
    LOG_REMOVED = GONE, "log_removed";
    BODY_TOO_LARGE = PAYLOAD_TOO_LARGE, "body_too_large";
    METADATA_TOO_LARGE = PAYLOAD_TOO_LARGE, "metadata_too_large";
    THREAD_TOO_LARGE = PAYLOAD_TOO_LARGE, "thread_too_large";
    TOO_MANY_STORED_BYTES = PAYLOAD_TOO_LARGE, "too_many_stored_bytes";
    TOO_MANY_VALUES = PAYLOAD_TOO_LARGE, "too_many_values";
    UNSUPPORTED_CONTENT_ENCODING = UNSUPPORTED_MEDIA_TYPE, "unsupported_content_encoding";
    UNSUPPORTED_MEDIA_TYPE = UNSUPPORTED_MEDIA_TYPE, "unsupported_media_type";
    TOO_MANY_CONCURRENT_RUNS = TOO_MANY_REQUESTS, "too_many_concurrent_runs";
    TOO_MANY_DETACHED_RUNS_OF_PRINCIPAL = TOO_MANY_REQUESTS, "too_many_detached_runs";
    TOO_MANY_RUNS_PER_MINUTE = TOO_MANY_REQUESTS, "too_many_runs_per_minute";
    INTERNAL_ERROR = INTERNAL_SERVER_ERROR, "internal_error";
    NO_STORED_THREADS = NOT_IMPLEMENTED, "no_stored_threads";
    AUTHENTICATION_UNAVAILABLE = SERVICE_UNAVAILABLE, "authentication_unavailable";
    KEYS_UNAVAILABLE = SERVICE_UNAVAILABLE, "keys_unavailable";
    SHUTTING_DOWN = SERVICE_UNAVAILABLE, "shutting_down";
    STORE_UNAVAILABLE = SERVICE_UNAVAILABLE, "store_unavailable";
    TOO_MANY_RESPONSE_BYTES = SERVICE_UNAVAILABLE, "too_many_response_bytes";
    TOO_MANY_BODY_BYTES = SERVICE_UNAVAILABLE, "too_many_body_bytes";
    TOO_MANY_CONNECTIONS = SERVICE_UNAVAILABLE, "too_many_connections";
    TOO_MANY_DETACHED_RUNS = SERVICE_UNAVAILABLE, "too_many_detached_runs";
    TOO_MANY_FOLLOWERS = SERVICE_UNAVAILABLE, "too_many_followers";
    TOO_MANY_RUN_BYTES = SERVICE_UNAVAILABLE, "too_many_run_bytes";
    TOO_MANY_RUNS = SERVICE_UNAVAILABLE, "too_many_runs";
    TOO_MANY_STREAMS = SERVICE_UNAVAILABLE, "too_many_streams";
    STORAGE_FULL = INSUFFICIENT_STORAGE, "storage_full";
}
