//! Reads the responses of an MCP server over HTTP, within limits, and also those that deviate from the protocol: an
//! expired session, an error that names no request, an answer to another request. What is wrong with the response to one
//! message fails the request of that message alone.

use std::{io, time::Duration};

use async_stream::stream;
use futures::{StreamExt as _, stream::BoxStream};
use reqwest::{
    Response, StatusCode,
    header::{CONTENT_TYPE, HeaderValue, WWW_AUTHENTICATE},
};
use rmcp::{
    model::{
        ClientJsonRpcMessage, ErrorData, JsonRpcError, JsonRpcMessage, RequestId,
        ServerJsonRpcMessage,
    },
    transport::streamable_http_client::{
        AuthRequiredError, HttpStatusError, SseError, StreamableHttpError,
        StreamableHttpPostResponse,
    },
};
use rmcp_sse_stream::Sse;
use tokio::time::{Instant, sleep_until};

use super::{
    dense_messages::{MAX_MESSAGE_BYTES, bounded},
    message_form::addressed_to,
};
use agui_base::upstream::{
    body::{BodyReadError, read_excerpt, read_whole},
    events::{StreamLimits, raw_events},
};

pub(super) const EVENT_STREAM: &str = "text/event-stream";
pub(super) const SESSION_ID: &str = "mcp-session-id";
const JSON: &str = "application/json";
/// The part of a refusal that is read.
const REFUSAL_BYTES: usize = 64 << 10;
const REFUSAL_TIME: Duration = Duration::from_secs(5);
/// The shortest time between two requests for the rest of a stream, whatever its server asks for (`retry`).
const MIN_RESUME_PAUSE: Duration = Duration::from_millis(MIN_RESUME_PAUSE_MILLIS);
const MIN_RESUME_PAUSE_MILLIS: u64 = 1000;

pub(super) type HttpError = StreamableHttpError<reqwest::Error>;

/// Reads the response to a message. Limits are checked before anything is parsed.
pub(super) async fn response_to(
    message: &ClientJsonRpcMessage,
    response: Response,
    has_session: bool,
) -> Result<StreamableHttpPostResponse, HttpError> {
    let status = response.status();
    match status {
        StatusCode::ACCEPTED | StatusCode::NO_CONTENT => {
            return Ok(StreamableHttpPostResponse::Accepted);
        }
        StatusCode::NOT_FOUND | StatusCode::GONE if has_session => {
            return Err(StreamableHttpError::SessionExpired);
        }
        _ => {}
    }
    let session_id =
        response.headers().get(SESSION_ID).and_then(|id| id.to_str().ok()).map(str::to_owned);
    let request = match message {
        JsonRpcMessage::Request(request) => Some(&request.id),
        _ => None,
    };
    if !status.is_success() {
        let refused = refusal(response).await?;
        if has_session && status == StatusCode::BAD_REQUEST && is_about_session(&refused) {
            return Err(StreamableHttpError::SessionExpired);
        }
        let refused = ServerJsonRpcMessage::error(refused.error, request.cloned());
        return Ok(StreamableHttpPostResponse::Json(refused, session_id));
    }
    if is_event_stream(&response) {
        return Ok(StreamableHttpPostResponse::Sse(events(response, request), session_id));
    }
    // Some servers answer notifications with text.
    let Some(request) = request else { return Ok(StreamableHttpPostResponse::Accepted) };
    if !content_type(&response).starts_with(JSON) {
        return Err(unexpected(&response));
    }
    let body = read_whole(response, MAX_MESSAGE_BYTES).await.map_err(body_error)?;
    let Some(body) = bounded(body) else {
        let problem = "the answer has too many values";
        return Err(StreamableHttpError::UnexpectedServerResponse(problem.into()));
    };
    let answer = serde_json::from_slice(&addressed_to(request, body))?;
    Ok(StreamableHttpPostResponse::Json(answer, session_id))
}

/// Returns whether an error is the SDKs' response to a message of a session that they do not know, such as *No valid session ID
/// provided* or *Server not initialized*. Any other 400 refuses one call, and must not end those of other callers.
fn is_about_session(error: &JsonRpcError) -> bool {
    let text = error.error.message.to_lowercase();
    error.id.is_none() && ["session", "initializ"].iter().any(|word| text.contains(word))
}

/// Returns the protocol's error in a response with an HTTP status of failure. A status between 400
/// and 499 without such an error is a refusal as well.
///
/// # Errors
/// If the server may have carried the message out, or may do so later, or if it refuses the
/// caller's credentials.
async fn refusal(response: Response) -> Result<JsonRpcError, HttpError> {
    let status = response.status();
    let (failure, is_json) = (failure(&response), content_type(&response).starts_with(JSON));
    if let Some(refused @ StreamableHttpError::AuthRequired(_)) = failure {
        return Err(refused);
    }
    let body = read_excerpt(response, REFUSAL_BYTES, REFUSAL_TIME).await;
    if let Ok(ServerJsonRpcMessage::Error(error)) = serde_json::from_slice(&body)
        && is_json
        && status != StatusCode::FORBIDDEN
    {
        return Ok(error);
    }
    let text = format!("HTTP {status}: {}", String::from_utf8_lossy(&body));
    match failure {
        Some(failure) => Err(failure),
        None if status.is_client_error() => {
            Ok(JsonRpcError::new(None, ErrorData::invalid_request(text, None)))
        }
        None => Err(StreamableHttpError::UnexpectedServerResponse(text.into())),
    }
}

/// Returns whether a response is a stream of events.
pub(super) fn is_event_stream(response: &Response) -> bool {
    response.status().is_success() && content_type(response).starts_with(EVENT_STREAM)
}

/// Returns the error of a refused credential, or of a server that may accept the request later.
pub(super) fn failure(response: &Response) -> Option<HttpError> {
    match response.status() {
        StatusCode::UNAUTHORIZED => {
            let challenge = response
                .headers()
                .get(WWW_AUTHENTICATE)
                .map(HeaderValue::as_bytes)
                .unwrap_or_default();
            let challenge = String::from_utf8_lossy(challenge).into_owned();
            Some(StreamableHttpError::AuthRequired(AuthRequiredError::new(challenge)))
        }
        status if status == StatusCode::TOO_MANY_REQUESTS || status.is_server_error() => {
            Some(HttpStatusError::new(status.as_u16(), None).into())
        }
        _ => None,
    }
}

fn unexpected(response: &Response) -> HttpError {
    StreamableHttpError::UnexpectedContentType(Some(content_type(response).to_owned()))
}

fn content_type(response: &Response) -> &str {
    response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default()
}

fn body_error(error: BodyReadError) -> HttpError {
    match error {
        BodyReadError::TooLong(max_size) => StreamableHttpError::ResponseBodyTooLarge { max_size },
        BodyReadError::Broken(cause) => StreamableHttpError::Io(io::Error::other(cause)),
    }
}

/// The messages of a stream, without those that are too large. `request`: the request that the stream responds to;
/// `None` for a stream of the server's own messages, and for the rest of a stream.
pub(super) fn events(
    response: Response,
    request: Option<&RequestId>,
) -> BoxStream<'static, Result<Sse, SseError>> {
    let (begin, request) = (Instant::now(), request.cloned());
    // A server may be silent for any time; pings find out whether it still responds.
    let limits = StreamLimits { max_event_bytes: MAX_MESSAGE_BYTES, idle_timeout: Duration::MAX };
    // A session belongs to no single caller.
    let owner = format!("mcp {}", response.url().host_str().unwrap_or_default()).into();
    let mut events = raw_events(response, limits, &owner).boxed();
    let events = stream! {
        let mut can_resume = request.is_none();
        while let Some(event) = events.next().await {
            let event = match event {
                Ok(event) => event,
                Err(error) => {
                    // The library asks for the rest of a stream that breaks without a pause.
                    if can_resume {
                        sleep_until(begin + MIN_RESUME_PAUSE).await;
                    }
                    yield Err(SseError::Body(error.into()));
                    break;
                }
            };
            can_resume |= event.id.is_some();
            let data = event.data.and_then(|data| {
                let message = bounded(data.into_bytes())?;
                let message = match &request {
                    Some(request) => addressed_to(request, message),
                    None => message,
                };
                String::from_utf8(message).ok()
            });
            let retry = event.retry.map(|pause| pause.max(MIN_RESUME_PAUSE_MILLIS));
            yield Ok(Sse { event: event.event, data, id: event.id, retry });
        }
    };
    events.boxed()
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use futures::stream;

    use super::*;

    fn response(pieces: Vec<io::Result<Bytes>>) -> Response {
        let body = reqwest::Body::wrap_stream(stream::iter(pieces));
        let response = http::Response::builder().header(CONTENT_TYPE, EVENT_STREAM).body(body);
        response.unwrap().into()
    }

    #[tokio::test(start_paused = true)]
    async fn the_rest_of_a_stream_is_not_asked_for_twice_within_a_second() {
        let event = || Ok(Bytes::from("id: 1\nretry: 0\ndata: {}\n\n"));
        let broken = || Err(io::Error::other("cut"));
        let own = RequestId::Number(7);
        let request = Some(&own);
        for (pieces, request, pause) in [
            (vec![event(), broken()], request, 1),
            (vec![broken()], None, 1),
            // This stream is not resumed.
            (vec![broken()], request, 0),
        ] {
            let begin = Instant::now();
            let received: Vec<_> = events(response(pieces), request).collect().await;
            assert_eq!(begin.elapsed().as_secs(), pause);
            assert!(received.last().unwrap().is_err());
            let asked = received.iter().flatten().map(|event| event.retry);
            assert!(asked.into_iter().all(|retry| retry == Some(1000)));
        }
    }
}
