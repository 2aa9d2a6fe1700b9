//! The span of a request in a trace, from its head to the end of its response.

use std::sync::Arc;

use axum::{
    body::Body,
    extract::{MatchedPath, Request},
    response::Response,
};
use http_body_util::BodyExt as _;

use agui_base::trace::TraceContext;
use agui_observe::telemetry::{ServerRequest, begin_server, end_server};

/// The place of a request in a trace. In a build or a process that makes no traces, that is the one that the client has sent.
#[derive(Clone)]
pub(crate) struct RequestTrace(pub(crate) Arc<TraceContext>);

/// Ends the span when it is dropped.
pub(crate) struct ServerSpan {
    span: tracing::Span,
    status: Option<u16>,
}

impl ServerSpan {
    /// Begins the span. The request gets its place as an extension.
    pub(crate) fn begin(request: &mut Request, request_id: &str, accept_traceparent: bool) -> Self {
        let requested =
            accept_traceparent.then(|| TraceContext::from_headers(request.headers())).flatten();
        let (span, context) = begin_server(&ServerRequest {
            method: request.method().as_str(),
            path: request.uri().path(),
            route: request.extensions().get::<MatchedPath>().map(MatchedPath::as_str),
            request_id,
            requested: requested.as_ref(),
        });
        if let Some(context) = context {
            request.extensions_mut().insert(RequestTrace(Arc::new(context)));
        }
        Self { span, status: None }
    }

    /// Keeps the span until the response has ended.
    pub(crate) fn until_end_of(mut self, response: Response) -> Response {
        if self.span.is_disabled() {
            return response;
        }
        self.status = Some(response.status().as_u16());
        // The body owns this function, and so the span. Each error stays as it is.
        let keep_span = move |error: axum::Error| {
            let _span = &self;
            error
        };
        response.map(|body| Body::new(body.map_err(keep_span)))
    }
}

impl Drop for ServerSpan {
    fn drop(&mut self) {
        end_server(&self.span, self.status);
    }
}
