//! Answers to paths and methods that no route has. They name the routes that exist.

use axum::{
    extract::{OriginalUri, State},
    http::{Method, Uri, header::ALLOW, request::Parts},
    response::{IntoResponse as _, Response},
};

use super::{error::ApiError, index::mount_prefix, state::App};

pub(crate) async fn no_such_route(State(app): State<App>, OriginalUri(original): OriginalUri, uri: Uri) -> ApiError {
    // The page is the only route that a configuration switches on by itself, so its address is known without it.
    if uri.path() == "/playground" {
        return ApiError::playground_is_off();
    }
    ApiError::no_such_route(original.path(), app.routes().nearest(uri.path()), mount_prefix(&original, &uri))
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
        app.routes().find(uri.path()).map(|route| route.methods.as_str()),
    )
}

/// Returns the refusal of a `HEAD`, for which axum calls the handler of `GET`: it would read a whole thread, and send nothing
/// of it.
pub(crate) fn refusal_of_head(app: &App, head: &Parts) -> Option<Response> {
    if head.method != Method::HEAD {
        return None;
    }
    let original = head.extensions.get().map_or(&head.uri, |OriginalUri(original)| original);
    let methods = app.routes().find(head.uri.path()).map_or("GET", |route| route.methods.as_str());
    let refusal = ApiError::method_not_allowed(&Method::HEAD, original.path(), Some(methods));
    Some(([(ALLOW, methods.to_owned())], refusal).into_response())
}
