//! `GET /threads/{thread}/messages`: the messages of the current branch or of a run, page by page.

use axum::{Extension, Json, extract::State};
use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

use super::{page_size, transfer::FeedbackJson};
use crate::http::openapi::refuse;
use crate::{
    http::{
        App,
        accept::{
            extract::{Path, Query},
            middleware::Caller,
        },
        error::ApiError,
    },
    protocol::{Message, MessageId, RunId},
    threads::{MessageList, MessageSelection},
};

#[derive(Deserialize)]
pub(crate) struct MessagesQuery {
    limit: Option<String>,
    before: Option<String>,
    run: Option<RunId>,
}

#[derive(Serialize)]
pub(crate) struct MessagesJson {
    /// The oldest first.
    messages: Vec<Message>,
    /// `null` if these are the first messages.
    before: Option<String>,
    alternatives: IndexMap<MessageId, Vec<MessageId>>,
    #[serde(skip_serializing_if = "IndexMap::is_empty")]
    feedback: IndexMap<MessageId, FeedbackJson>,
}

/// Returns the newest messages, or those before the cursor `before`. `limit` is 1 to 200, by default 50.
#[utoipa::path(
    get,
    path = "/threads/{thread}/messages",
    operation_id = "listMessages",
    tag = "threads",
    summary = "Returns the messages of the current branch or of a run, page by page",
    params(
        ("limit" = Option<u32>, Query, description = "The size of the page. 50 by default.", minimum = 1, maximum = 200),
        ("before" = Option<String>, Query, description = "The `before` of the page that follows."),
        ("run" = Option<String>, Query, description = "A run. Its messages and those before it are returned."),
    ),
    responses(
        (status = 200, description = "A page of messages.", body = ref("#/components/schemas/MessagePage")),
        refuse::Parameter, refuse::Run, refuse::Store, refuse::Thread,
    ),
)]
pub(crate) async fn messages(
    State(app): State<App>,
    Path(thread): Path<String>,
    Query(query): Query<MessagesQuery>,
    Extension(caller): Extension<Caller>,
) -> Result<Json<MessagesJson>, ApiError> {
    let threads = app.threads().ok_or_else(ApiError::internal)?;
    let limit = page_size(query.limit.as_deref())?;
    let before = query.before.as_deref().map(str::parse).transpose();
    let before = before.map_err(|_| ApiError::invalid_parameter("before", "the `before` of another page"))?;
    let selection = MessageSelection { before, run: query.run.as_ref(), limit };
    Ok(Json(threads.messages(caller.principal().as_ref(), &thread.into(), selection).await?.into()))
}

impl From<MessageList> for MessagesJson {
    fn from(list: MessageList) -> Self {
        Self {
            messages: list.messages,
            before: list.before.map(|before| before.to_string()),
            alternatives: list.alternatives.into_iter().collect(),
            feedback: list.feedback.into_iter().map(|(id, feedback)| (id, feedback.into())).collect(),
        }
    }
}
