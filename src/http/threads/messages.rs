//! `GET /threads/{thread}/messages`: the messages of the current branch or of a run, page by page.

use serde::Deserialize;
use utoipa::IntoParams;

use super::pages::page_size;
use crate::http::{ApiError, ApiResult, OwnThreads, Path, Query, refuse};
use agui_protocol::{RunId, ThreadId};
use agui_run::threads::MessageList;

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

/// Returns the messages of the current branch or of a run, page by page.
///
/// Without `before`, these are the newest messages.
#[utoipa::path(
    get,
    path = "/threads/{thread}/messages",
    params(MessagesQuery),
    responses(
        (status = 200, description = "A page of messages.", body = MessageList),
        refuse::ResponseMemory, refuse::Parameter, refuse::Run, refuse::Store, refuse::Thread,
    ),
)]
pub(crate) async fn list_messages(
    Path(id): Path<ThreadId>,
    Query(query): Query<MessagesQuery>,
    own: OwnThreads,
) -> ApiResult {
    let limit = page_size(query.limit.as_deref())?;
    let before = query.before.as_deref().map(str::parse).transpose();
    let before = before.map_err(|_| ApiError::InvalidParameter {
        name: "before",
        expected: "the `before` of another page",
    })?;
    let key = own.caller.key(id);
    let permit = own.app.response_permit(&key).await?;
    let mut list = own.threads.messages(&key, before, query.run.as_ref(), limit).await?;
    own.present(&mut list.messages);
    permit.json(&list)
}
