//! The id of a request, in the header `X-Request-Id` and in all its log lines, and its span in a trace.

use axum::{
    extract::{MatchedPath, Request, State},
    http::HeaderValue,
    middleware::Next,
    response::Response,
};
use tracing::Instrument as _;

use super::{
    REQUEST_ID,
    server_span::{RequestTrace, ServerSpan},
};
use crate::http::{refusal_response::RefusalCode, state::App};

const MAX_ID_BYTES: usize = 64;

/// Takes the client's id only if it is short and plain. Counts the request if it is refused.
pub(crate) async fn identify_request(
    State(app): State<App>,
    mut request: Request,
    next: Next,
) -> Response {
    let id = match request.headers().get(REQUEST_ID) {
        Some(id) if is_short_and_plain(id) => id.clone(),
        _ => {
            let mut text = [0; uuid::fmt::Simple::LENGTH];
            let id = uuid::Uuid::new_v4().simple().encode_lower(&mut text);
            HeaderValue::from_str(id).unwrap_or(HeaderValue::from_static("unknown"))
        }
    };
    request.headers_mut().insert(REQUEST_ID, id.clone());
    let server_span = ServerSpan::begin(
        &mut request,
        id.to_str().unwrap_or_default(),
        app.options.accept_traceparent,
    );
    let trace_id = request.extensions().get().map(|RequestTrace(trace)| trace.trace_id());
    let span = tracing::info_span!("request", id = id.to_str().unwrap_or_default(), trace_id);
    let (method, route) =
        (request.method().clone(), request.extensions().get::<MatchedPath>().cloned());
    let mut response = next.run(request).instrument(span.clone()).await;
    if let Some(RefusalCode(code)) = response.extensions().get() {
        let (status, route) = (response.status().as_u16(), route.as_ref().map(MatchedPath::as_str));
        app.runs.metrics.http.refused(status, code);
        // The tests compare each one with the OpenAPI document.
        span.in_scope(|| tracing::debug!(%method, route, status, code, "refused a request"));
    }
    response.headers_mut().insert(REQUEST_ID, id);
    server_span.until_end_of(response)
}

fn is_short_and_plain(id: &HeaderValue) -> bool {
    let bytes = id.as_bytes();
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.:/+=".contains(byte);
    (1..=MAX_ID_BYTES).contains(&bytes.len()) && bytes.iter().all(is_plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_short_plain_ids_are_taken_over() {
        for id in ["a", "0f8-a_b.c:d", &"x".repeat(64)] {
            assert!(is_short_and_plain(&HeaderValue::from_str(id).unwrap()), "{id}");
        }
        for id in ["", "a b", "é", "a\"b", &"x".repeat(65)] {
            assert!(!is_short_and_plain(&HeaderValue::from_bytes(id.as_bytes()).unwrap()), "{id}");
        }
    }
}
