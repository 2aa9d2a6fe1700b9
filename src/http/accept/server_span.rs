//! The span of a request in a trace, from its head to the end of its response.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use axum::{
    body::{Body, Bytes},
    extract::{MatchedPath, Request},
    response::Response,
};
use http_body::{Body as HttpBody, Frame, SizeHint};

use crate::{
    base::trace::TraceContext,
    observe::telemetry::{ServerRequest, begin_server, end_server},
};

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
        let requested = accept_traceparent.then(|| TraceContext::of_headers(request.headers())).flatten();
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
        response.map(|body| Body::new(TracedBody { body, _span: self }))
    }
}

impl Drop for ServerSpan {
    fn drop(&mut self) {
        end_server(&self.span, self.status);
    }
}

struct TracedBody {
    body: Body,
    _span: ServerSpan,
}

impl HttpBody for TracedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
