//! Errors in OpenAI's form: refusals of all layers, and runs that failed.

use std::{borrow::Cow, collections::BTreeMap};

use axum::{
    Json,
    body::{Body, to_bytes},
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use futures::{FutureExt as _, future::BoxFuture};
use serde::{Deserialize, Serialize};
use utoipa::{
    IntoResponses, ToSchema,
    openapi::{RefOr, Response as Described},
};

use crate::http::{RefusalForm, accept::SHOULD_RETRY, refusal_response::RefusalCode, refuse};
use agui_base::RunErrorCode;
use agui_protocol::{
    Interrupt,
    event::{RunError, RunOutcome},
};

/// The form of refusals on these routes.
pub(super) const REFUSALS: RefusalForm = RefusalForm { schema: Some(SCHEMA), rewrite };
const SCHEMA: &str = "ChatCompletionError";
/// Clients know this code of OpenAI's, and shorten the conversation.
const CONTEXT_TOO_LONG: &str = "context_length_exceeded";
const PERSON_NEEDED: &str = "person_needed";
/// Refusals have one line of text, which quotes at most a name.
const MAX_REFUSAL_BYTES: usize = 64 * 1024;

/// An error.
#[derive(Serialize, ToSchema)]
#[schema(as = ChatCompletionError)]
pub(super) struct ErrorBody<'a> {
    #[schema(inline)]
    error: ErrorDetail<'a>,
}

#[derive(Serialize, ToSchema)]
struct ErrorDetail<'a> {
    message: &'a str,
    #[serde(rename = "type")]
    kind: &'static str,
    /// The member of the request that is wrong, such as `messages[0].role`.
    #[schema(required)]
    param: Option<&'a str>,
    code: &'a str,
}

/// A run that did not become an answer.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct FailedRun {
    status: StatusCode,
    code: Cow<'static, str>,
    message: String,
}

/// The responses for runs that fail with known codes. Others have the status 502.
pub(super) enum FailedRunResponses {}

impl FailedRun {
    fn new(status: StatusCode, code: &'static str, message: impl Into<String>) -> Self {
        Self { status, code: code.into(), message: message.into() }
    }

    pub(super) fn from_error(error: &RunError) -> Self {
        let code = error.code.clone().unwrap_or("agent_error".into());
        let (status, code) = match RunErrorCode::from_name(&code) {
            Some(RunErrorCode::ContextTooLong) => {
                (StatusCode::BAD_REQUEST, CONTEXT_TOO_LONG.into())
            }
            Some(RunErrorCode::InvalidResponseSchema) => (StatusCode::BAD_REQUEST, code),
            Some(RunErrorCode::ModelRateLimited) => (StatusCode::TOO_MANY_REQUESTS, code),
            Some(
                RunErrorCode::AgentTimeout
                | RunErrorCode::ModelTimeout
                | RunErrorCode::RemoteTimeout,
            ) => (StatusCode::GATEWAY_TIMEOUT, code),
            _ => (StatusCode::BAD_GATEWAY, code),
        };
        Self { status, code, message: error.message.clone() }
    }

    /// The run ended with questions, which a completion has no place for.
    pub(super) fn from_questions(questions: &[Interrupt]) -> Self {
        let asked = questions.iter().find_map(|question| question.message.as_deref());
        let asked = asked.map(|text| format!(" (it asks: {text})")).unwrap_or_default();
        let message = format!(
            "the agent has to ask a person before it continues{asked}, and this API has no place for questions: use a client \
             that can ask, such as one of AG-UI. Nothing was done that needs the answer"
        );
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, PERSON_NEEDED, message)
    }

    pub(super) fn cancelled() -> Self {
        let message = "the run was stopped before its end";
        Self::new(StatusCode::BAD_GATEWAY, "run_cancelled", message)
    }

    pub(super) fn without_end() -> Self {
        let message = "the run broke off";
        Self::new(StatusCode::BAD_GATEWAY, "run_incomplete", message)
    }

    pub(super) fn too_large(limit: usize) -> Self {
        let message = format!("the answer has more than {limit} bytes");
        Self::new(StatusCode::BAD_GATEWAY, "answer_too_large", message)
    }

    pub(super) fn body(&self) -> ErrorBody<'_> {
        let kind = kind_of(self.status);
        ErrorBody {
            error: ErrorDetail { message: &self.message, kind, param: None, code: &self.code },
        }
    }
}

/// The agent has begun, and may have had effects. The official SDKs repeat a request after 408, 409,
/// 429 and 5xx, unless a header forbids it.
impl IntoResponse for &FailedRun {
    fn into_response(self) -> Response {
        let headers = [(SHOULD_RETRY, HeaderValue::from_static("false"))];
        (self.status, headers, Json(self.body())).into_response()
    }
}

impl IntoResponses for FailedRunResponses {
    fn responses() -> BTreeMap<String, RefOr<Described>> {
        refuse::responses_with(&[
            (400, CONTEXT_TOO_LONG),
            (400, RunErrorCode::InvalidResponseSchema.as_str()),
            (422, PERSON_NEEDED),
            (429, RunErrorCode::ModelRateLimited.as_str()),
            (504, RunErrorCode::AgentTimeout.as_str()),
            (504, RunErrorCode::ModelTimeout.as_str()),
            (504, RunErrorCode::RemoteTimeout.as_str()),
        ])
    }
}

/// Returns the type of an error, by which clients choose the class of an exception.
fn kind_of(status: StatusCode) -> &'static str {
    match status {
        StatusCode::UNAUTHORIZED => "authentication_error",
        StatusCode::FORBIDDEN => "permission_error",
        StatusCode::TOO_MANY_REQUESTS => "rate_limit_error",
        status if status.is_client_error() => "invalid_request_error",
        _ => "server_error",
    }
}

/// The server's own form of a refusal.
#[derive(Deserialize)]
struct OwnRefusal {
    error: OwnDetail,
}

#[derive(Deserialize)]
struct OwnDetail {
    message: String,
    path: Option<String>,
}

fn rewrite(response: Response) -> BoxFuture<'static, Response> {
    let Some(RefusalCode(code)) = response.extensions().get().copied() else {
        return std::future::ready(response).boxed();
    };
    async move {
        let (mut head, body) = response.into_parts();
        // The body is in memory already.
        let bytes = to_bytes(body, MAX_REFUSAL_BYTES).await.unwrap_or_default();
        let Ok(OwnRefusal { error }) = serde_json::from_slice(&bytes) else {
            return Response::from_parts(head, Body::from(bytes));
        };
        let (message, kind) = (&*error.message, kind_of(head.status));
        let detail = ErrorDetail { message, kind, param: error.path.as_deref(), code };
        let body = serde_json::to_vec(&ErrorBody { error: detail }).unwrap_or_default();
        head.headers.remove(header::CONTENT_LENGTH);
        // The request with this key had its effects.
        if code == "answer_not_kept" {
            head.headers.insert(SHOULD_RETRY, HeaderValue::from_static("false"));
        }
        Response::from_parts(head, Body::from(body))
    }
    .boxed()
}

/// Returns the failure of a run whose end is no success.
pub(super) fn failure_of(outcome: &RunOutcome) -> Option<FailedRun> {
    match outcome {
        RunOutcome::Success { .. } => None,
        RunOutcome::Interrupt { interrupts } => Some(FailedRun::from_questions(interrupts)),
        RunOutcome::Cancelled => Some(FailedRun::cancelled()),
    }
}
