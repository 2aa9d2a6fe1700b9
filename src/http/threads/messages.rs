//! `GET /threads/{thread}/messages`: the messages of the current branch or of a run, page by page.

use axum::extract::State;
use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::pages::page_size;
use crate::{
    http::{ApiError, ApiResult, App, OwnThreads, Path, Query, refuse},
    protocol::{Message, MessageId, RunId, ThreadId},
    store::Feedback,
    threads::{MessageList, MessageSelection},
};

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct MessagesQuery {
    /// The size of the page. 50 by default.
    #[param(value_type = Option<u32>, minimum = 1, maximum = 200)]
    limit: Option<String>,
    /// The `before` of the page that follows.
    before: Option<String>,
    /// A run. Its messages and those before it are returned.
    #[param(value_type = Option<String>)]
    run: Option<RunId>,
}

#[derive(Serialize, ToSchema)]
#[schema(as = MessagePage)]
pub(crate) struct MessagesJson {
    /// The oldest first.
    messages: Vec<Message>,
    /// The `before` of the page with the earlier messages. `null` if these are the first messages.
    #[schema(required)]
    before: Option<String>,
    /// By message id: the ids of all messages in its place.
    #[schema(value_type = BTreeMap<String, Vec<MessageId>>)]
    alternatives: IndexMap<MessageId, Vec<MessageId>>,
    #[serde(skip_serializing_if = "IndexMap::is_empty")]
    /// By message id.
    #[schema(value_type = BTreeMap<String, Feedback>)]
    feedback: IndexMap<MessageId, Feedback>,
}

/// Returns the messages of the current branch or of a run, page by page.
///
/// Without `before`, these are the newest messages.
#[utoipa::path(
    get,
    path = "/threads/{thread}/messages",
    params(MessagesQuery),
    responses(
        (status = 200, description = "A page of messages.", body = MessagesJson),
        refuse::ResponseMemory, refuse::Parameter, refuse::Run, refuse::Store, refuse::Thread,
    ),
)]
pub(crate) async fn list_messages(
    State(app): State<App>,
    Path(id): Path<ThreadId>,
    Query(query): Query<MessagesQuery>,
    own: OwnThreads,
) -> ApiResult {
    let limit = page_size(query.limit.as_deref())?;
    let before = query.before.as_deref().map(str::parse).transpose();
    let before =
        before.map_err(|_| ApiError::InvalidParameter { name: "before", expected: "the `before` of another page" })?;
    let selection = MessageSelection { before, run: query.run.as_ref(), limit };
    let permit = app.response_permit(own.owner(), &id).await?;
    let mut list = own.threads.messages(own.owner(), &id, selection).await?;
    own.present(&mut list.messages);
    permit.json(&MessagesJson::from(list))
}

impl From<MessageList> for MessagesJson {
    fn from(list: MessageList) -> Self {
        Self {
            messages: list.messages,
            before: list.before.map(|before| before.to_string()),
            alternatives: list.alternatives.into_iter().collect(),
            feedback: list.feedback.into_iter().collect(),
        }
    }
}
