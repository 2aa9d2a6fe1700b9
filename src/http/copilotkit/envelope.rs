//! `POST` at the prefix itself: a request in an envelope, `{method, params, body}`, for clients that are told to use a
//! single address.
//!
//! What is inside goes to the route that it stands for, with the headers that the envelope came with.

use axum::{
    Router,
    body::Body,
    extract::Request,
    http::{Method, Uri, header},
    response::Response,
};
use bytes::Bytes;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;
use serde_json::value::RawValue;
use tower::ServiceExt as _;

use crate::http::{
    App,
    error::ApiError,
    read_body::{self, Limits},
    send_message::require_json,
};

#[derive(Deserialize)]
struct Envelope<'a> {
    method: String,
    #[serde(default)]
    params: Params,
    #[serde(borrow)]
    body: Option<&'a RawValue>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Params {
    agent_id: Option<String>,
    thread_id: Option<String>,
    /// Of a request about a thread, as it would be sent without an envelope.
    path: Option<String>,
    http_method: Option<String>,
}

/// What a path's segment holds as it is.
const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// Opens an envelope for these routes.
pub(super) async fn open(app: App, routes: Router, request: Request) -> Result<Response, ApiError> {
    let (mut head, body) = request.into_parts();
    // A page that may not use this server could send other types of body all the same.
    require_json(&head.headers)?;
    let whole = read_body::read(body, Limits::of(app.options(), &head.headers)).await?;
    let envelope: Envelope<'_> = serde_json::from_slice(&whole).map_err(|error| ApiError::invalid_json(&error))?;
    let (method, uri) = envelope.address()?;
    let body = envelope.body.map_or_else(Bytes::new, |body| whole.slice_ref(body.get().as_bytes()));
    (head.method, head.uri) = (method, uri);
    // The length and the patience were the envelope's.
    head.headers.remove(header::CONTENT_LENGTH);
    head.headers.remove(header::TRANSFER_ENCODING);
    head.headers.remove(header::EXPECT);
    let Ok(response) = routes.oneshot(Request::from_parts(head, Body::from(body))).await;
    Ok(response)
}

impl Envelope<'_> {
    /// Where the request inside would have been sent to.
    fn address(&self) -> Result<(Method, Uri), ApiError> {
        let params = &self.params;
        let agent = || segment("params.agentId", params.agent_id.as_deref());
        let (method, path) = match self.method.as_str() {
            "info" => (Method::GET, "/info".to_owned()),
            "agent/run" => (Method::POST, format!("/agent/{}/run", agent()?)),
            "agent/connect" => (Method::POST, format!("/agent/{}/connect", agent()?)),
            "agent/stop" => {
                let thread = segment("params.threadId", params.thread_id.as_deref())?;
                (Method::POST, format!("/agent/{}/stop/{thread}", agent()?))
            }
            "resource/request" => {
                let path = params.path.as_deref().filter(|path| path.starts_with("/threads"));
                let path = path.ok_or_else(|| ApiError::invalid_input("params.path", "a path below /threads"))?;
                (self.http_method()?, path.to_owned())
            }
            _ => return Err(ApiError::invalid_input("method", "a method such as \"agent/run\"")),
        };
        let uri = path.parse().map_err(|_| ApiError::invalid_input("params.path", "a path as it is in a URL"))?;
        Ok((method, uri))
    }

    fn http_method(&self) -> Result<Method, ApiError> {
        let method = self.params.http_method.as_deref().and_then(|method| method.parse().ok());
        method.ok_or_else(|| ApiError::invalid_input("params.httpMethod", "a method of HTTP"))
    }
}

fn segment(name: &str, value: Option<&str>) -> Result<String, ApiError> {
    let value = value.filter(|value| !value.is_empty()).ok_or_else(|| ApiError::invalid_input(name, "a text"))?;
    Ok(utf8_percent_encode(value, SEGMENT).to_string())
}
