//! Sends a request and checks the head of the response.

use std::{sync::OnceLock, time::Duration};

use http::{StatusCode, header::CONTENT_TYPE};
use reqwest::{RequestBuilder, Response};

use super::{
    failure::{AttemptError, ProviderErrors},
    retry,
};
use crate::upstream::body::read_excerpt;

const MAX_ERROR_BYTES: usize = 16 << 10;
/// The status is known by then; only the reason is missing.
const ERROR_TIMEOUT: Duration = Duration::from_secs(5);

/// Fails unless the head announces a stream of events. `idle_timeout` limits the wait for the head. `request_id` gets the
/// provider's id of the request.
pub(super) async fn send(
    request: RequestBuilder,
    idle_timeout: Duration,
    errors: &ProviderErrors,
    request_id: &OnceLock<String>,
) -> Result<Response, AttemptError> {
    let response = match tokio::time::timeout(idle_timeout, request.send()).await {
        Ok(Ok(response)) => response,
        Ok(Err(error)) => return Err(errors.unreachable(error)),
        Err(_) => return Err(errors.silent(idle_timeout)),
    };
    if let Some(id) = errors.request_id(response.headers()) {
        let _ = request_id.set(id);
    }
    let status = response.status();
    if status != StatusCode::OK {
        let wait = retry::requested_wait(response.headers());
        let body = read_excerpt(response, MAX_ERROR_BYTES, ERROR_TIMEOUT).await;
        return Err(errors.refused(status, retry::or_wait_in_body(wait, &body), &body));
    }
    let content_type = response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let essence = content_type.split(';').next().unwrap_or_default().trim();
    if !essence.eq_ignore_ascii_case("text/event-stream") {
        let content_type = content_type.to_owned();
        return Err(errors.no_events(&content_type, &read_excerpt(response, MAX_ERROR_BYTES, ERROR_TIMEOUT).await));
    }
    Ok(response)
}
