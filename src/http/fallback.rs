//! Answers to paths and methods that no route has. They name the routes that exist.

use axum::{
    extract::{OriginalUri, Request, State},
    http::{Method, Uri, header::ALLOW},
    middleware::Next,
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

/// Refuses `HEAD`, for which axum calls the handler of `GET`: it would read a whole thread, and send nothing of it.
pub(crate) async fn refuse_head(
    State(app): State<App>,
    OriginalUri(original): OriginalUri,
    request: Request,
    next: Next,
) -> Response {
    if request.method() != Method::HEAD {
        return next.run(request).await;
    }
    let methods =
        app.routes().find(request.uri().path()).map_or_else(|| "GET".to_owned(), |route| route.methods.clone());
    let refusal = ApiError::method_not_allowed(&Method::HEAD, original.path(), Some(&methods));
    ([(ALLOW, methods)], refusal).into_response()
}
