//! The HTTP client under an MCP connection: it adds the caller's headers of a single request, and access tokens.
//!
//! A connection is shared by all runs, so headers of a run travel with its messages: in the message's extensions, which
//! stay in this process and are not a part of the JSON that a model or a server can write.

use std::{collections::HashMap, io, sync::Arc};

use futures::stream::BoxStream;
use reqwest::{
    Client, StatusCode,
    header::{HeaderMap, HeaderName, HeaderValue},
};
use rmcp::{
    model::{ClientJsonRpcMessage, GetExtensions as _, JsonRpcMessage},
    transport::streamable_http_client::{
        SseError, StreamableHttpClient, StreamableHttpError, StreamableHttpPostResponse,
    },
};
use rmcp_sse_stream::Sse;

use super::oauth::{AccessTokens, TokenRefused};

/// The largest event for the methods without a limit, which the trait requires and the library does not call.
const MAX_EVENT_BYTES: usize = 16 << 20;

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
        auth: Option<String>,
        headers: CustomHeaders,
    ) -> Result<StreamableHttpPostResponse, HttpError> {
        self.post_message_with_max_sse_event_size(uri, message, session_id, auth, headers, MAX_EVENT_BYTES).await
    }

    async fn post_message_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        _: Option<String>,
        mut headers: CustomHeaders,
        max_event_bytes: usize,
    ) -> Result<StreamableHttpPostResponse, HttpError> {
        headers.extend(of_message(&message));
        let send = |token| {
            let (message, session_id) = (message.clone(), session_id.clone());
            self.http.post_message_with_max_sse_event_size(
                uri.clone(),
                message,
                session_id,
                token,
                headers.clone(),
                max_event_bytes,
            )
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
        let send = |token| self.http.delete_session(uri.clone(), session_id.clone(), token, headers.clone());
        self.with_token(send).await
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        auth: Option<String>,
        headers: CustomHeaders,
    ) -> Result<BoxStream<'static, Result<Sse, SseError>>, HttpError> {
        self.get_stream_with_max_sse_event_size(uri, session_id, last_event_id, auth, headers, MAX_EVENT_BYTES).await
    }

    async fn get_stream_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        _: Option<String>,
        headers: CustomHeaders,
        max_event_bytes: usize,
    ) -> Result<BoxStream<'static, Result<Sse, SseError>>, HttpError> {
        let send = |token| {
            let (session_id, last_event_id) = (session_id.clone(), last_event_id.clone());
            self.http.get_stream_with_max_sse_event_size(
                uri.clone(),
                session_id,
                last_event_id,
                token,
                headers.clone(),
                max_event_bytes,
            )
        };
        self.with_token(send).await
    }
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
        // The form of the library's error for a 401 without a challenge.
        StreamableHttpError::UnexpectedServerResponse(text) => text.starts_with("HTTP 401"),
        _ => false,
    }
}

fn token_error(error: TokenRefused) -> HttpError {
    StreamableHttpError::Io(io::Error::other(error))
}
