//! The response to a request that is refused.

use std::time::Duration;

use axum::{
    Json,
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use serde::Serialize;
use utoipa::ToSchema;

use super::error::ApiError;
use agui_base::refusal::{ErrorCode, RefusalCodes as _};

/// The code of a refusal, in the extensions of its response, for the metrics.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RefusalCode(pub(crate) &'static str);

/// The message of a refusal, in the extensions of its response.
#[derive(Debug, Clone)]
pub(crate) struct RefusalMessage(pub(crate) String);

/// The request was refused.
#[derive(Serialize, ToSchema)]
#[schema(as = Error)]
pub(crate) struct Refusal<'a> {
    #[schema(inline)]
    error: RefusalDetail<'a>,
}

#[derive(Serialize, ToSchema)]
struct RefusalDetail<'a> {
    #[schema(value_type = super::openapi::ErrorCodeSchema)]
    code: &'a str,
    message: &'a str,
    /// The member or the parameter that is wrong, such as `messages[0].id`.
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<&'a str>,
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let ErrorCode { status, name: code, .. } = self.refusal_code();
        let message = self.to_string();
        tracing::debug!(status = status.as_u16(), code, reason = message, "refused");
        let error = RefusalDetail { code, message: &message, path: self.path() };
        let mut response = (status, Json(Refusal { error })).into_response();
        response.extensions_mut().insert(RefusalCode(code));
        let headers = response.headers_mut();
        match status {
            StatusCode::UNAUTHORIZED => {
                headers.insert(header::WWW_AUTHENTICATE, challenge(code, &message));
            }
            // Only a run that is running ends by itself.
            StatusCode::CONFLICT if code != "run_is_running" => {}
            StatusCode::CONFLICT
            | StatusCode::SERVICE_UNAVAILABLE
            | StatusCode::TOO_MANY_REQUESTS => {
                headers.insert(header::RETRY_AFTER, whole_seconds(self.retry_after()).into());
            }
            _ => {}
        }
        response.extensions_mut().insert(RefusalMessage(message));
        response
    }
}

/// RFC 6750, section 3. The text about a token is one of this server's own, so it can stand between quotation marks.
fn challenge(code: &str, message: &str) -> HeaderValue {
    const REALM: &str = "Bearer realm=\"agui-server\"";
    const INVALID: HeaderValue =
        HeaderValue::from_static("Bearer realm=\"agui-server\", error=\"invalid_token\"");
    match code {
        "invalid_token" => {
            let described =
                format!("{REALM}, error=\"invalid_token\", error_description=\"{message}\"");
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
