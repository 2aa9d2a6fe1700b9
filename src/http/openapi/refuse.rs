//! The refusals of endpoints, in groups of what a handler does: `responses(…, refuse::Body, refuse::Store)`.

use std::collections::BTreeMap;

use utoipa::{
    IntoResponses,
    openapi::{RefOr, Response},
};

use crate::http::error_code::ErrorCode;

/// Separates the status of a refusal from its code. `document.rs` joins the codes of a status.
const SEPARATOR: char = ' ';

macro_rules! refusals {
    ($($(#[$doc:meta])* $group:ident = [$($code:ident),*];)*) => {$(
        $(#[$doc])*
        pub(crate) enum $group {}

        impl IntoResponses for $group {
            fn responses() -> BTreeMap<String, RefOr<Response>> {
                [$(ErrorCode::$code),*].into_iter().map(|code| (key(code), Response::default().into())).collect()
            }
        }
    )*};
}

fn key(code: ErrorCode) -> String {
    format!("{}{SEPARATOR}{}", code.status().as_u16(), code.name())
}

/// Returns the status and the code of a refusal. `None` for another response.
pub(super) fn parse_key(key: &str) -> Option<(&str, &str)> {
    key.split_once(SEPARATOR)
}

refusals! {
    /// The middleware of all routes.
    Every = [INTERNAL_ERROR, ORIGIN_NOT_ALLOWED, TOO_MANY_CONNECTIONS];
    /// The middleware of servers without authentication.
    WithoutAuthentication = [HOST_NOT_ALLOWED];
    Authentication = [AUTHENTICATION_UNAVAILABLE, INVALID_KEY, INVALID_TOKEN, KEYS_UNAVAILABLE, UNAUTHENTICATED];
    /// A request with a body to a route that needs a credential.
    MediaType = [UNSUPPORTED_CONTENT_ENCODING, UNSUPPORTED_MEDIA_TYPE];
    Url = [INVALID_URL];
    Parameter = [INVALID_PARAMETER];
    /// Reading a body and its JSON.
    Body = [BODY_IN_TINY_PIECES, BODY_INCOMPLETE, BODY_TIMEOUT, BODY_TOO_LARGE, INVALID_INPUT, INVALID_JSON, TOO_DEEP, TOO_MANY_BODY_BYTES, TOO_MANY_VALUES];
    /// Messages of a thread as a response.
    ResponseMemory = [TOO_MANY_RESPONSE_BYTES];
    Agent = [AGENT_NOT_ALLOWED, UNKNOWN_AGENT];
    Stateless = [NO_STORED_THREADS];
    Store = [LEASE_LOST, STORE_UNAVAILABLE];
    /// The limits of runs, which copies of threads have as well.
    Limits = [SHUTTING_DOWN, TOO_MANY_CONCURRENT_RUNS, TOO_MANY_RUN_BYTES, TOO_MANY_RUNS, TOO_MANY_RUNS_PER_MINUTE];
    /// The start of a run.
    Start = [INVALID_INPUT, ROLE_NOT_ACCEPTED, RUN_IS_RUNNING, STORAGE_FULL, THREAD_IS_BUSY, THREAD_TOO_LARGE, TOO_MANY_DETACHED_RUNS, TOO_MANY_DETACHED_RUNS_OF_PRINCIPAL, TOO_MANY_FOLLOWERS, TOO_MANY_STORED_BYTES, TOO_MANY_WAITING, UNSUPPORTED_PROTOCOL_VERSION];
    Thread = [UNKNOWN_THREAD];
    Run = [UNKNOWN_RUN];
    Message = [UNKNOWN_MESSAGE];
    /// Following a detached run.
    Follow = [LOG_REMOVED, RUN_HAS_NO_LOG, TOO_MANY_FOLLOWERS, UNKNOWN_RUN, UNKNOWN_THREAD];
    Running = [RUN_IS_RUNNING];
    Edit = [METADATA_TOO_LARGE, RUN_IS_RUNNING, THREAD_CHANGED];
    /// A thread that begins as a copy.
    Copy = [INVALID_INPUT, STORAGE_FULL, THREAD_EXISTS, THREAD_TOO_LARGE, TOO_MANY_STORED_BYTES];
    Loopback = [LOOPBACK_ONLY];
    Shutdown = [SHUTTING_DOWN];
    /// One more stream without an end.
    Streams = [TOO_MANY_STREAMS];
    Socket = [NO_WEBSOCKET, TOO_MANY_STREAMS, UNAUTHENTICATED];
    /// One more follower of a run.
    Followers = [TOO_MANY_FOLLOWERS];
    /// A request in an envelope to no route.
    Envelope = [METHOD_NOT_ALLOWED, NOT_FOUND];
}
