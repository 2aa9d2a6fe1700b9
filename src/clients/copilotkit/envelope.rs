//! `POST` at the prefix itself: a request in an envelope, `{method, params, body}`, for clients with a single endpoint.
//! The inner request goes to its route with the headers of the envelope.

use std::sync::{Arc, OnceLock};

use axum::{
    Extension, Router,
    body::Body,
    extract::{Request, State},
    http::{Method, Uri, header},
};
use bytes::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;
use tower::ServiceExt as _;
use utoipa::ToSchema;

use crate::http::{
    ApiError, ApiResult, App, accept::media_type::require_json, fallback, read_body, refuse,
    response,
};
use agui_base::text::path_segment;
use agui_protocol::decode::decode_members;

#[derive(Deserialize, ToSchema)]
#[schema(as = CopilotEnvelope)]
pub(super) struct Envelope<'a> {
    #[schema(pattern = "^(info|transcribe|agent/(run|connect|stop)|resource/request)$")]
    method: String,
    #[serde(default)]
    #[schema(inline)]
    params: EnvelopeParams,
    /// The body of the request in the envelope.
    #[serde(borrow)]
    #[schema(value_type = Option<Value>)]
    body: Option<&'a RawValue>,
}

#[derive(Default, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct EnvelopeParams {
    agent_id: Option<String>,
    thread_id: Option<String>,
    /// Path and query of a request below `/threads`.
    path: Option<String>,
    http_method: Option<String>,
}

/// The routes that take inner requests.
pub(super) struct EnvelopeRoutes {
    routes: Router<App>,
    /// Set by the first request.
    with_state: OnceLock<Router>,
}

impl EnvelopeRoutes {
    pub(super) fn new(routes: Router<App>) -> Self {
        let routes = routes
            .fallback(fallback::no_such_route)
            .method_not_allowed_fallback(fallback::method_not_allowed);
        Self { routes, with_state: OnceLock::new() }
    }
}

/// Is the runtime for pages with CopilotKit: takes a request in an envelope to one of the other routes.
#[utoipa::path(
    post,
    path = "/",
    request_body = Envelope<'_>,
    responses(
        response::InnerResponse, refuse::Agent, refuse::Body, refuse::Edit, refuse::Envelope, refuse::Follow, refuse::Limits,
        refuse::Message, refuse::Parameter, refuse::Start, refuse::Store, refuse::Url,
    ),
)]
pub(super) async fn send_envelope(
    State(app): State<App>,
    Extension(inner): Extension<Arc<EnvelopeRoutes>>,
    request: Request,
) -> ApiResult {
    let (mut head, body) = request.into_parts();
    // Browsers send other content types across origins without a CORS preflight.
    require_json(&head.headers)?;
    let bytes = read_body::read(&app, &head, body).await?;
    let envelope: Envelope<'_> = decode_members(&bytes)?;
    let (method, uri) = envelope.target()?;
    let body = envelope.body.map_or_else(Bytes::new, |body| bytes.slice_ref(body.get().as_bytes()));
    // The inner route drops the last clone when it has decoded the body, which may be long before it responds.
    drop(bytes);
    (head.method, head.uri) = (method, uri);
    // These headers describe the envelope's body.
    head.headers.remove(header::CONTENT_LENGTH);
    head.headers.remove(header::TRANSFER_ENCODING);
    head.headers.remove(header::EXPECT);
    let routes = inner.with_state.get_or_init(|| inner.routes.clone().with_state(app)).clone();
    let Ok(response) = routes.oneshot(Request::from_parts(head, Body::from(body))).await;
    Ok(response)
}

impl Envelope<'_> {
    fn target(&self) -> ApiResult<(Method, Uri)> {
        let params = &self.params;
        let agent = || segment_of("params.agentId", params.agent_id.as_deref());
        let (method, path) = match self.method.as_str() {
            "info" => (Method::GET, "/info".to_owned()),
            "transcribe" => (Method::POST, "/transcribe".to_owned()),
            "agent/run" => (Method::POST, format!("/agent/{}/run", agent()?)),
            "agent/connect" => (Method::POST, format!("/agent/{}/connect", agent()?)),
            "agent/stop" => {
                let thread = segment_of("params.threadId", params.thread_id.as_deref())?;
                (Method::POST, format!("/agent/{}/stop/{thread}", agent()?))
            }
            "resource/request" => {
                let path = params.path.as_deref().filter(|path| path.starts_with("/threads"));
                let path = path.ok_or_else(|| {
                    ApiError::invalid_input("params.path", "a path below /threads")
                })?;
                let method = params.http_method.as_deref().and_then(|method| method.parse().ok());
                let method = method.ok_or_else(|| {
                    ApiError::invalid_input("params.httpMethod", "an HTTP method")
                })?;
                (method, path.to_owned())
            }
            _ => return Err(ApiError::invalid_input("method", "a method such as \"agent/run\"")),
        };
        let uri = path
            .parse()
            .map_err(|_| ApiError::invalid_input("params.path", "a percent-encoded path"))?;
        Ok((method, uri))
    }
}

fn segment_of(name: &str, value: Option<&str>) -> ApiResult<String> {
    let value = value.filter(|value| !value.is_empty());
    let value = value.ok_or_else(|| ApiError::invalid_input(name, "a non-empty string"))?;
    Ok(path_segment(value))
}
