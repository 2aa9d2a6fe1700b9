//! The HTTP client of an MCP session: it adds the caller's headers of a single request and access
//! tokens, follows a redirect to the same server, and says which errors prove that a message was not carried out.
//!
//! A session is shared by all runs, so headers of a run travel with its messages: in the message's
//! extensions, which stay in this process and are not a part of the JSON that a model or a server
//! can write.

use std::{collections::HashMap, io, sync::Arc, time::Duration};

use futures::{StreamExt as _, stream::BoxStream};
use reqwest::{
    Client, Method, RequestBuilder, Response, StatusCode,
    header::{ACCEPT, HeaderMap, HeaderName, HeaderValue, LOCATION},
};
use rmcp::{
    model::{ClientJsonRpcMessage, GetExtensions as _, JsonRpcMessage},
    transport::streamable_http_client::{
        SseError, StreamableHttpClient, StreamableHttpError, StreamableHttpPostResponse,
    },
};
use rmcp_sse_stream::Sse;
use tokio::time::timeout;

use super::{
    http_response::{
        EVENT_STREAM, HttpError, SESSION_ID, events, failure, is_event_stream, response_to,
    },
    tokens::Tokens,
};

const LAST_EVENT_ID: &str = "last-event-id";
/// The time for the first event of the transport HTTP+SSE.
const HTTP_SSE_TIMEOUT: Duration = Duration::from_secs(5);

/// The headers of a run's caller, in a message's extensions.
#[derive(Clone)]
pub(super) struct MessageHeaders(pub(super) HeaderMap);

#[derive(Clone)]
pub(super) struct McpHttpClient {
    pub(super) http: Client,
    pub(super) tokens: Option<Tokens>,
}

pub(super) type CustomHeaders = HashMap<HeaderName, HeaderValue>;

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

impl McpHttpClient {
    /// Returns whether a URL has the transport HTTP+SSE of 2024-11-05: a stream that begins with the address for messages.
    pub(super) async fn has_http_sse_transport(&self, url: &str, headers: &CustomHeaders) -> bool {
        let first_event = async {
            let token = match &self.tokens {
                Some(tokens) => tokens.current().await.ok()?.as_deref().map(str::to_owned),
                None => None,
            };
            let response = sent(self.request(Method::GET, url, [], token, headers)).await.ok()?;
            let mut events = is_event_stream(&response).then(|| events(response, None))?;
            events.next().await?.ok()?.event
        };
        let event = timeout(HTTP_SSE_TIMEOUT, first_event).await.ok().flatten();
        event.as_deref() == Some("endpoint")
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
            let (message, has_session) = (&message, session_id.is_some());
            async move { response_to(message, sent(request.json(message)).await?, has_session).await }
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
        let token = match &self.tokens {
            Some(tokens) => tokens.current().await.map_err(token_error)?,
            None => None,
        };
        let (token, session) =
            (token.as_deref().map(str::to_owned), [(SESSION_ID, Some(&*session_id))]);
        // The session has ended here, whatever the server says.
        sent(self.request(Method::DELETE, &uri, session, token, &headers)).await.map(drop)
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
            if let Some(error) = failure(&response) {
                return Err(error);
            }
            if is_event_stream(&response) {
                Ok(events(response, None))
            } else {
                Err(StreamableHttpError::ServerDoesNotSupportSse)
            }
        };
        match self.with_token(send).await {
            // Calls ask for a login. The library would log an error.
            Err(StreamableHttpError::AuthRequired(_)) => {
                Err(StreamableHttpError::ServerDoesNotSupportSse)
            }
            result => result,
        }
    }
}

/// Returns whether the error proves that the server has not carried out the message.
pub(super) fn is_refusal(error: &(dyn std::error::Error + 'static)) -> bool {
    is_rate_limit(error) || is_unauthorized(error)
}

/// Returns whether the error proves that the server has not carried out the message, and that messages need another
/// session.
pub(super) fn is_away(error: &(dyn std::error::Error + 'static)) -> bool {
    is_expired(error) || is_unreachable(error)
}

/// Returns whether the server has forgotten the session.
pub(super) fn is_expired(error: &(dyn std::error::Error + 'static)) -> bool {
    matches!(error.downcast_ref::<HttpError>(), Some(StreamableHttpError::SessionExpired))
}

/// Returns whether the server has too many requests to take this one.
pub(super) fn is_rate_limit(error: &(dyn std::error::Error + 'static)) -> bool {
    matches!(
        error.downcast_ref::<HttpError>(),
        Some(StreamableHttpError::HttpStatus(error)) if error.status == StatusCode::TOO_MANY_REQUESTS
    )
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
