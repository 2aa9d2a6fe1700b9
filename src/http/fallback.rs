//! Responses to paths and methods that no route has. They name the routes that exist.

use axum::{
    extract::{OriginalUri, State},
    http::{Method, Uri},
};

use super::{accept::own_address::mount_prefix, error::ApiError, state::App};

const PLAYGROUND_IS_OFF: &str = "the playground is off: set [playground] enabled = true (AGUI_PLAYGROUND__ENABLED=true). Without that \
                                 option, only a server on a loopback address without authentication has it";

pub(crate) async fn no_such_route(
    State(app): State<App>,
    OriginalUri(original): OriginalUri,
    uri: Uri,
) -> ApiError {
    // The page is the only route that a configuration switches on by itself, so its address is known without it.
    if uri.path() == "/playground" {
        return ApiError::NoSuchRoute(PLAYGROUND_IS_OFF.to_owned());
    }
    ApiError::no_such_route(
        original.path(),
        app.routes.nearest(uri.path()),
        mount_prefix(&original, &uri),
    )
}

/// axum adds the `Allow` header.
pub(crate) async fn method_not_allowed(
    State(app): State<App>,
    OriginalUri(original): OriginalUri,
    method: Method,
    uri: Uri,
) -> ApiError {
    ApiError::method_not_allowed(
        &method,
        original.path(),
        app.routes.find(uri.path()).map(|route| route.methods.as_str()),
    )
}
