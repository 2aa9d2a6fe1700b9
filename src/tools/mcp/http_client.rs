//! The HTTP client under an MCP connection: it adds the caller's headers of a single request, and access tokens, and
//! bounds what the server answers.
//!
//! A connection is shared by all runs, so headers of a run travel with its messages: in the message's extensions, which
//! stay in this process and are not a part of the JSON that a model or a server can write.

use std::{borrow::Cow, collections::HashMap, io, sync::Arc, time::Duration};

use futures::{StreamExt as _, stream::BoxStream};
use reqwest::{
    Client, Method, RequestBuilder, Response, StatusCode,
    header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, WWW_AUTHENTICATE},
};
use rmcp::{
    model::{
        ClientJsonRpcMessage, ClientRequest, ErrorData, GetExtensions as _, JsonRpcMessage, JsonRpcRequest,
        ServerJsonRpcMessage,
    },
    transport::streamable_http_client::{
        AuthRequiredError, HttpStatusError, SseError, StreamableHttpClient, StreamableHttpError,
        StreamableHttpPostResponse,
    },
};
use rmcp_sse_stream::Sse;

use super::{
    dense_messages::{MAX_MESSAGE_BYTES, bounded},
    oauth::{AccessTokens, TokenRefused},
};
use crate::upstream::{
    body::{BodyReadError, read_excerpt, read_whole},
    events::{StreamLimits, raw_events},
};

const EVENT_STREAM: &str = "text/event-stream";
const JSON: &str = "application/json";
const SESSION_ID: &str = "mcp-session-id";
const LAST_EVENT_ID: &str = "last-event-id";
/// The part of a refusal that is read, and the time for it.
const REFUSAL_BYTES: usize = 64 << 10;
const REFUSAL_TIME: Duration = Duration::from_secs(5);

/// The headers of a run's caller, in a message's extensions.
#[derive(Clone)]
pub(super) struct MessageHeaders(pub(super) HeaderMap);

#[derive(Clone)]
pub(super) struct McpHttpClient {
    http: Client,
    tokens: Option<Arc<AccessTokens>>,
}

type CustomHeaders = HashMap<HeaderName, HeaderValue>;
type HttpError = StreamableHttpError<reqwest::Error>;

impl McpHttpClient {
    pub(super) fn new(http: Client, tokens: Option<Arc<AccessTokens>>) -> Self {
        Self { http, tokens }
    }

    fn request<const N: usize>(
        &self,
        method: Method,
        uri: &str,
        place: [(&'static str, Option<&str>); N],
        token: Option<String>,
        headers: &CustomHeaders,
    ) -> RequestBuilder {
        let accepted = if method == Method::GET { EVENT_STREAM } else { "application/json, text/event-stream" };
        let mut request = self.http.request(method, uri).header(ACCEPT, accepted);
        for (name, value) in headers {
            request = request.header(name, value);
        }
        for (name, value) in place {
            request = value.into_iter().fold(request, |request, value| request.header(name, value));
        }
        token.into_iter().fold(request, |request, token| request.bearer_auth(token))
    }

    /// Sends a request with a token, and once more with another token if the server refuses it with 401.
    async fn with_token<T, F: Future<Output = Result<T, HttpError>>>(
        &self,
        send: impl Fn(Option<String>) -> F,
    ) -> Result<T, HttpError> {
        let Some(tokens) = &self.tokens else { return send(None).await };
        let token = tokens.current().await.map_err(token_error)?;
        match send(Some(token.to_string())).await {
            Err(error) if is_unauthorized(&error) => {
                let other = tokens.replace(&token).await.map_err(token_error)?;
                send(Some(other.to_string())).await
            }
            result => result,
        }
    }
}

impl StreamableHttpClient for McpHttpClient {
    type Error = reqwest::Error;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        _: Option<String>,
        mut headers: CustomHeaders,
    ) -> Result<StreamableHttpPostResponse, HttpError> {
        headers.extend(of_message(&message));
        let send = |token| {
            let request = self.request(Method::POST, &uri, [(SESSION_ID, session_id.as_deref())], token, &headers);
            answer_to_message(request, &message, session_id.is_some())
        };
        self.with_token(send).await
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session_id: Arc<str>,
        _: Option<String>,
        headers: CustomHeaders,
    ) -> Result<(), HttpError> {
        let send = async |token| {
            let session = [(SESSION_ID, Some(&*session_id))];
            let response = self
                .request(Method::DELETE, &uri, session, token, &headers)
                .send()
                .await
                .map_err(StreamableHttpError::Client)?;
            match response.status() {
                StatusCode::METHOD_NOT_ALLOWED => Ok(()),
                _ => accepted(response).map(drop),
            }
        };
        self.with_token(send).await
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        _: Option<String>,
        headers: CustomHeaders,
    ) -> Result<BoxStream<'static, Result<Sse, SseError>>, HttpError> {
        let send = async |token| {
            let place = [(SESSION_ID, session_id.as_deref()), (LAST_EVENT_ID, last_event_id.as_deref())];
            let response = self
                .request(Method::GET, &uri, place, token, &headers)
                .send()
                .await
                .map_err(StreamableHttpError::Client)?;
            if response.status() == StatusCode::METHOD_NOT_ALLOWED {
                return Err(StreamableHttpError::ServerDoesNotSupportSse);
            }
            let response = accepted(response)?;
            if content_type(&response).starts_with(EVENT_STREAM) {
                Ok(events(response))
            } else {
                Err(unexpected(&response))
            }
        };
        self.with_token(send).await
    }
}

/// Sends a message, and returns what the server says at once. Its limits hold before anything is parsed.
async fn answer_to_message(
    request: RequestBuilder,
    message: &ClientJsonRpcMessage,
    has_session: bool,
) -> Result<StreamableHttpPostResponse, HttpError> {
    let response = request.json(message).send().await.map_err(StreamableHttpError::Client)?;
    let status = response.status();
    match status {
        StatusCode::ACCEPTED | StatusCode::NO_CONTENT => return Ok(StreamableHttpPostResponse::Accepted),
        StatusCode::NOT_FOUND if has_session => return Err(StreamableHttpError::SessionExpired),
        _ => {}
    }
    let session_id = response.headers().get(SESSION_ID).and_then(|id| id.to_str().ok()).map(str::to_owned);
    if !status.is_success() {
        let refusal = refusal(response, message, has_session).await?;
        return Ok(StreamableHttpPostResponse::Json(refusal, session_id));
    }
    if content_type(&response).starts_with(EVENT_STREAM) {
        return Ok(StreamableHttpPostResponse::Sse(events(response), session_id));
    }
    let expects_answer = matches!(message, JsonRpcMessage::Request(_));
    if expects_answer && !content_type(&response).starts_with(JSON) {
        return Err(unexpected(&response));
    }
    let body = read_whole(response, MAX_MESSAGE_BYTES).await.map_err(body_error)?;
    match bounded(&body).map(|message| serde_json::from_slice::<ServerJsonRpcMessage>(&message)) {
        Some(Ok(message)) => Ok(StreamableHttpPostResponse::Json(message, session_id)),
        // Some servers answer notifications with text.
        _ if !expects_answer => Ok(StreamableHttpPostResponse::Accepted),
        Some(Err(error)) => Err(error.into()),
        None => Err(StreamableHttpError::UnexpectedServerResponse("the answer has too many values".into())),
    }
}

/// Returns the protocol's error in a refusal with a status of HTTP.
///
/// # Errors
/// If the refusal has none, or is about the caller's credentials.
async fn refusal(
    response: Response,
    message: &ClientJsonRpcMessage,
    has_session: bool,
) -> Result<ServerJsonRpcMessage, HttpError> {
    let (status, is_json) = (response.status(), content_type(&response).starts_with(JSON));
    if let Some(challenge) = challenge(&response) {
        return Err(challenge);
    }
    let body = read_excerpt(response, REFUSAL_BYTES, REFUSAL_TIME).await;
    let error = || serde_json::from_slice(&body).ok().filter(|message| matches!(message, JsonRpcMessage::Error(_)));
    let text = || format!("HTTP {status}: {}", String::from_utf8_lossy(&body));
    match (status, message) {
        (StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN, _) => {}
        // A server without this request is an older one, whatever it answers.
        (_, JsonRpcMessage::Request(JsonRpcRequest { id, request: ClientRequest::DiscoverRequest(_), .. }))
            if status.is_client_error() && !has_session =>
        {
            let error = match error() {
                Some(JsonRpcMessage::Error(error)) => error.error,
                _ => ErrorData::invalid_request(text(), None),
            };
            return Ok(JsonRpcMessage::error(error, Some(id.clone())));
        }
        _ if is_json && let Some(error) = error() => return Ok(error),
        _ => {}
    }
    Err(status_error(status).unwrap_or_else(|| StreamableHttpError::UnexpectedServerResponse(text().into())))
}

/// Returns a response with a status of success.
fn accepted(response: Response) -> Result<Response, HttpError> {
    let error = challenge(&response).or_else(|| status_error(response.status()));
    match error {
        Some(error) => Err(error),
        None => response.error_for_status().map_err(StreamableHttpError::Client),
    }
}

fn challenge(response: &Response) -> Option<HttpError> {
    let challenge =
        response.headers().get(WWW_AUTHENTICATE).filter(|_| response.status() == StatusCode::UNAUTHORIZED)?;
    let challenge = String::from_utf8_lossy(challenge.as_bytes()).into_owned();
    Some(StreamableHttpError::AuthRequired(AuthRequiredError::new(challenge)))
}

fn status_error(status: StatusCode) -> Option<HttpError> {
    let is_passing = status == StatusCode::TOO_MANY_REQUESTS || status.is_server_error();
    is_passing.then(|| HttpStatusError::new(status.as_u16(), None).into())
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

/// The messages of a stream, without those that are too large.
fn events(response: Response) -> BoxStream<'static, Result<Sse, SseError>> {
    // A server may be silent as long as it has nothing to say; pings tell whether it is there.
    let limits = StreamLimits { max_event_bytes: MAX_MESSAGE_BYTES, idle_timeout: Duration::MAX };
    let events = raw_events(response, limits).map(|event| {
        let event = event.map_err(|error| SseError::Body(error.into()))?;
        let data = event.data.and_then(|data| match bounded(data.as_bytes())? {
            Cow::Borrowed(_) => Some(data),
            Cow::Owned(message) => String::from_utf8(message).ok(),
        });
        Ok(Sse { event: event.event, data, id: event.id, retry: event.retry })
    });
    events.boxed()
}

fn of_message(message: &ClientJsonRpcMessage) -> Vec<(HeaderName, HeaderValue)> {
    let extensions = match message {
        JsonRpcMessage::Request(request) => request.request.extensions(),
        JsonRpcMessage::Notification(notification) => notification.notification.extensions(),
        _ => return Vec::new(),
    };
    let headers = extensions.get::<MessageHeaders>();
    headers.iter().flat_map(|headers| headers.0.iter()).map(|(name, value)| (name.clone(), value.clone())).collect()
}

fn is_unauthorized(error: &HttpError) -> bool {
    match error {
        StreamableHttpError::AuthRequired(_) => true,
        StreamableHttpError::Client(error) => error.status() == Some(StatusCode::UNAUTHORIZED),
        // The error of `refusal` for a 401 without a challenge.
        StreamableHttpError::UnexpectedServerResponse(text) => text.starts_with("HTTP 401"),
        _ => false,
    }
}

fn token_error(error: TokenRefused) -> HttpError {
    StreamableHttpError::Io(io::Error::other(error))
}
