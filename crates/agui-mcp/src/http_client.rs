//! The HTTP client of an MCP session: it adds the caller's headers of a single request and access
//! tokens, and limits the server's responses. It also reads those that deviate from the protocol: a
//! redirect to the same server, an expired session, an error that names no request.
//!
//! A session is shared by all runs, so headers of a run travel with its messages: in the message's
//! extensions, which stay in this process and are not a part of the JSON that a model or a server
//! can write.

use std::{collections::HashMap, io, sync::Arc, time::Duration};

use futures::{StreamExt as _, stream::BoxStream};
use reqwest::{
    Client, Method, RequestBuilder, Response, StatusCode,
    header::{
        ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, LOCATION, WWW_AUTHENTICATE,
    },
};
use rmcp::{
    model::{
        ClientJsonRpcMessage, ErrorData, GetExtensions as _, JsonRpcMessage, ServerJsonRpcMessage,
    },
    transport::streamable_http_client::{
        AuthRequiredError, HttpStatusError, SseError, StreamableHttpClient, StreamableHttpError,
        StreamableHttpPostResponse,
    },
};
use rmcp_sse_stream::Sse;

use super::{
    dense_messages::{MAX_MESSAGE_BYTES, bounded},
    tokens::Tokens,
};
use agui_base::upstream::{
    body::{BodyReadError, read_excerpt, read_whole},
    events::{StreamLimits, raw_events},
};

const EVENT_STREAM: &str = "text/event-stream";
const JSON: &str = "application/json";
const SESSION_ID: &str = "mcp-session-id";
const LAST_EVENT_ID: &str = "last-event-id";
/// The part of a refusal that is read.
const REFUSAL_BYTES: usize = 64 << 10;
const REFUSAL_TIME: Duration = Duration::from_secs(5);

/// The headers of a run's caller, in a message's extensions.
#[derive(Clone)]
pub(super) struct MessageHeaders(pub(super) HeaderMap);

#[derive(Clone)]
pub(super) struct McpHttpClient {
    pub(super) http: Client,
    pub(super) tokens: Option<Tokens>,
}

type CustomHeaders = HashMap<HeaderName, HeaderValue>;
type HttpError = StreamableHttpError<reqwest::Error>;

impl McpHttpClient {
    fn request<const N: usize>(
        &self,
        method: Method,
        uri: &str,
        place: [(&'static str, Option<&str>); N],
        token: Option<String>,
        headers: &CustomHeaders,
    ) -> RequestBuilder {
        let accepted = if method == Method::GET {
            EVENT_STREAM
        } else {
            "application/json, text/event-stream"
        };
        let request = self.http.request(method, uri).header(ACCEPT, accepted);
        let request =
            headers.iter().fold(request, |request, (name, value)| request.header(name, value));
        let place = place.into_iter().filter_map(|(name, value)| Some((name, value?)));
        let request = place.fold(request, |request, (name, value)| request.header(name, value));
        token.into_iter().fold(request, |request, token| request.bearer_auth(token))
    }

    /// Sends a request with a token, and once more with another token if the server refuses it with 401.
    async fn with_token<T, F: Future<Output = Result<T, HttpError>>>(
        &self,
        send: impl Fn(Option<String>) -> F,
    ) -> Result<T, HttpError> {
        let Some(tokens) = &self.tokens else { return send(None).await };
        let token = tokens.current().await.map_err(token_error)?;
        let mut sent = send(token.as_deref().map(str::to_owned)).await;
        let is_refused = matches!(sent, Err(StreamableHttpError::AuthRequired(_)));
        if let Some(token) = token.filter(|_| is_refused) {
            // Dropped before the next request, because it cannot be shared between threads.
            drop(sent);
            let other = tokens.replace(&token).await.map_err(token_error)?;
            sent = send(Some(other.unwrap_or(token).to_string())).await;
        }
        tokens.set_refused(matches!(sent, Err(StreamableHttpError::AuthRequired(_))));
        sent
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
        let of_caller = message_headers(&message);
        // With headers of the caller, 401 may be about the caller, and a new session would end the calls of all others.
        let is_of_trace =
            |name: &HeaderName| ["traceparent", "tracestate"].contains(&name.as_str());
        // With a person's token, 401 asks for a login.
        let is_of_person = self.tokens.as_ref().is_some_and(Tokens::is_of_person);
        let is_of_session = session_id.is_some()
            && !is_of_person
            && of_caller.iter().all(|(name, _)| is_of_trace(name));
        headers.extend(of_caller);
        let send = |token| {
            let request = self.request(
                Method::POST,
                &uri,
                [(SESSION_ID, session_id.as_deref())],
                token,
                &headers,
            );
            response_to_message(request, &message, session_id.is_some())
        };
        match self.with_token(send).await {
            // Some servers refuse a request of an expired session with 401.
            Err(StreamableHttpError::AuthRequired(_)) if is_of_session => {
                Err(StreamableHttpError::SessionExpired)
            }
            result => result,
        }
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
            let response =
                sent(self.request(Method::DELETE, &uri, session, token, &headers)).await?;
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
            let place =
                [(SESSION_ID, session_id.as_deref()), (LAST_EVENT_ID, last_event_id.as_deref())];
            let response = sent(self.request(Method::GET, &uri, place, token, &headers)).await?;
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

/// Returns whether the error proves that the server has not carried out the message.
pub(super) fn is_refusal(error: &(dyn std::error::Error + 'static)) -> bool {
    let is_refused = match error.downcast_ref::<HttpError>() {
        Some(StreamableHttpError::HttpStatus(error)) => {
            error.status == StatusCode::TOO_MANY_REQUESTS
        }
        Some(
            StreamableHttpError::SessionExpired | StreamableHttpError::ReinitializationFailed(_),
        ) => true,
        _ => false,
    };
    is_refused || is_unreachable(error) || is_unauthorized(error)
}

/// Returns whether nothing listens at the URL.
pub(super) fn is_unreachable(error: &(dyn std::error::Error + 'static)) -> bool {
    matches!(error.downcast_ref::<HttpError>(), Some(StreamableHttpError::Client(error)) if error.is_connect())
}

/// Returns whether the server wants other credentials.
pub(super) fn is_unauthorized(error: &(dyn std::error::Error + 'static)) -> bool {
    matches!(error.downcast_ref::<HttpError>(), Some(StreamableHttpError::AuthRequired(_)))
}

/// Sends a request. A redirect that keeps the method is followed once, on the same server: many
/// servers redirect to add a `/` to the path.
async fn sent(request: RequestBuilder) -> Result<Response, HttpError> {
    let again = request.try_clone();
    let response = request.send().await.map_err(StreamableHttpError::Client)?;
    let status = response.status();
    if !status.is_redirection() || status == StatusCode::NOT_MODIFIED {
        return Ok(response);
    }
    let keeps_method =
        [StatusCode::TEMPORARY_REDIRECT, StatusCode::PERMANENT_REDIRECT].contains(&status);
    let location = response.headers().get(LOCATION).and_then(|location| location.to_str().ok());
    let target = location.and_then(|location| response.url().join(location).ok());
    if let (Some(target), Some(again)) = (&target, again)
        && keeps_method
        && target.origin() == response.url().origin()
        && let (http, Ok(mut again)) = again.build_split()
    {
        tracing::debug!(
            status = status.as_u16(),
            path = target.path(),
            "an MCP server redirects: its `url` has another path"
        );
        *again.url_mut() = target.clone();
        let response = http.execute(again).await.map_err(StreamableHttpError::Client)?;
        if !response.status().is_redirection() {
            return Ok(response);
        }
    }
    let to = target.map(|mut target| {
        // These can have secrets.
        target.set_query(None);
        let _ = target.set_username("").and_then(|()| target.set_password(None));
        format!(" to {target}: is that the `url` of the server?")
    });
    let text = format!("HTTP {status}: it redirects{}", to.unwrap_or_default());
    Err(StreamableHttpError::UnexpectedServerResponse(text.into()))
}

/// Sends a message, and returns the response. Limits are checked before anything is parsed.
async fn response_to_message(
    request: RequestBuilder,
    message: &ClientJsonRpcMessage,
    has_session: bool,
) -> Result<StreamableHttpPostResponse, HttpError> {
    let response = sent(request.json(message)).await?;
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
    if !status.is_success() {
        let refused = refusal(response).await?;
        if has_session && status == StatusCode::BAD_REQUEST && is_about_session(&refused) {
            return Err(StreamableHttpError::SessionExpired);
        }
        return Ok(StreamableHttpPostResponse::Json(addressed(refused, message), session_id));
    }
    if content_type(&response).starts_with(EVENT_STREAM) {
        return Ok(StreamableHttpPostResponse::Sse(events(response), session_id));
    }
    let expects_response = matches!(message, JsonRpcMessage::Request(_));
    if expects_response && !content_type(&response).starts_with(JSON) {
        return Err(unexpected(&response));
    }
    let body = read_whole(response, MAX_MESSAGE_BYTES).await.map_err(body_error)?;
    match bounded(body).map(|message| serde_json::from_slice::<ServerJsonRpcMessage>(&message)) {
        Some(Ok(answer)) => {
            Ok(StreamableHttpPostResponse::Json(addressed(answer, message), session_id))
        }
        // Some servers answer notifications with text.
        _ if !expects_response => Ok(StreamableHttpPostResponse::Accepted),
        Some(Err(error)) => Err(error.into()),
        None => Err(StreamableHttpError::UnexpectedServerResponse(
            "the answer has too many values".into(),
        )),
    }
}

/// Returns whether an error is the SDKs' response to a message of a session that they do not know, such as *No valid session ID
/// provided* or *Server not initialized*. Any other 400 refuses one call, and must not end those of other callers.
fn is_about_session(message: &ServerJsonRpcMessage) -> bool {
    let JsonRpcMessage::Error(error) = message else { return false };
    let text = error.error.message.to_lowercase();
    error.id.is_none() && ["session", "initializ"].iter().any(|word| text.contains(word))
}

/// Returns an error that names no request with the id of the request that it responds to, which
/// would otherwise wait for a response.
fn addressed(
    mut answer: ServerJsonRpcMessage,
    message: &ClientJsonRpcMessage,
) -> ServerJsonRpcMessage {
    if let (JsonRpcMessage::Error(error), JsonRpcMessage::Request(request)) = (&mut answer, message)
    {
        error.id.get_or_insert_with(|| request.id.clone());
    }
    answer
}

/// Returns the protocol's error in a response with an HTTP status of failure. A status between 400
/// and 499 without such an error is a refusal as well.
///
/// # Errors
/// If the server may have carried the message out, or may do so later, or if it refuses the
/// caller's credentials.
async fn refusal(response: Response) -> Result<ServerJsonRpcMessage, HttpError> {
    let status = response.status();
    let (failure, is_json) = (failure(&response), content_type(&response).starts_with(JSON));
    if let Some(refused @ StreamableHttpError::AuthRequired(_)) = failure {
        return Err(refused);
    }
    let body = read_excerpt(response, REFUSAL_BYTES, REFUSAL_TIME).await;
    if let Ok(error @ JsonRpcMessage::Error(_)) = serde_json::from_slice(&body)
        && is_json
        && status != StatusCode::FORBIDDEN
    {
        return Ok(error);
    }
    let text = format!("HTTP {status}: {}", String::from_utf8_lossy(&body));
    match failure {
        Some(failure) => Err(failure),
        None if status.is_client_error() => {
            Ok(ServerJsonRpcMessage::error(ErrorData::invalid_request(text, None), None))
        }
        None => Err(StreamableHttpError::UnexpectedServerResponse(text.into())),
    }
}

/// Returns a response with a status of success.
fn accepted(response: Response) -> Result<Response, HttpError> {
    match failure(&response) {
        Some(error) => Err(error),
        None => response.error_for_status().map_err(StreamableHttpError::Client),
    }
}

/// Returns the error of a refused credential, or of a server that may accept the request later.
fn failure(response: &Response) -> Option<HttpError> {
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

/// The messages of a stream, without those that are too large.
fn events(response: Response) -> BoxStream<'static, Result<Sse, SseError>> {
    // A server may be silent for any time; pings find out whether it still responds.
    let limits = StreamLimits { max_event_bytes: MAX_MESSAGE_BYTES, idle_timeout: Duration::MAX };
    // A session belongs to no single caller.
    let owner = format!("mcp {}", response.url().host_str().unwrap_or_default()).into();
    let events = raw_events(response, limits, &owner).map(|event| {
        let event = event.map_err(|error| SseError::Body(error.into()))?;
        let data = event.data.and_then(|data| String::from_utf8(bounded(data.into_bytes())?).ok());
        Ok(Sse { event: event.event, data, id: event.id, retry: event.retry })
    });
    events.boxed()
}

fn message_headers(message: &ClientJsonRpcMessage) -> Vec<(HeaderName, HeaderValue)> {
    let extensions = match message {
        JsonRpcMessage::Request(request) => request.request.extensions(),
        JsonRpcMessage::Notification(notification) => notification.notification.extensions(),
        _ => return Vec::new(),
    };
    let headers = extensions.get::<MessageHeaders>();
    headers
        .iter()
        .flat_map(|headers| headers.0.iter())
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}

fn token_error(error: String) -> HttpError {
    StreamableHttpError::Io(io::Error::other(error))
}

#[cfg(test)]
mod tests {
    use axum::{Router, response::Redirect, routing::any};

    use super::*;
    use agui_base::upstream::{ClientOptions, direct_client};

    #[tokio::test]
    async fn the_target_of_a_redirect_that_is_not_followed_is_named_without_secrets() {
        let app = Router::new()
            .route("/here", any(async || Redirect::temporary("/there")))
            .route("/there", any(async |method: Method, body: String| format!("{method} {body}")))
            .route("/moved", any(async || Redirect::to("/there?key=secret")))
            .route(
                "/elsewhere",
                any(async || Redirect::temporary("http://user:secret@localhost:9/there/")),
            )
            .route("/circle", any(async || Redirect::permanent("/circle")));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, app).await });
        let http = direct_client(&ClientOptions::default()).unwrap();
        let send = async |path| sent(http.post(format!("{url}{path}")).body("a message")).await;
        assert_eq!(send("/here").await.unwrap().text().await.unwrap(), "POST a message");
        for (path, target) in [
            ("/moved", format!("HTTP 303 See Other: it redirects to {url}/there: is that")),
            (
                "/elsewhere",
                "HTTP 307 Temporary Redirect: it redirects to http://localhost:9/there/: is"
                    .to_owned(),
            ),
            ("/circle", format!("HTTP 308 Permanent Redirect: it redirects to {url}/circle: is")),
        ] {
            let error = send(path).await.unwrap_err().to_string();
            assert!(error.contains(&target) && !error.contains("secret"), "{error}");
        }
    }
}
