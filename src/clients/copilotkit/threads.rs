//! A caller's threads in the format of CopilotKit's thread list.

use axum::{Json, extract::Request};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::agents::find_agent;
use crate::http::{
    ApiError, ApiResult, OwnThreads, Path, Query, read_body, refuse,
    threads::pages::{TimeText, list_page, page_size, read_cursor, time},
};
use agui_protocol::{ThreadId, decode::decode_members};
use agui_run::threads::{ThreadEdit, ThreadError};
use agui_store::{Thread, ThreadPage};

#[derive(Deserialize, IntoParams)]
#[serde(rename_all = "camelCase")]
#[into_params(parameter_in = Query)]
pub(super) struct ThreadListQuery {
    /// Only threads of this agent.
    agent_id: Option<String>,
    /// False by default.
    #[param(value_type = Option<bool>)]
    include_archived: Option<String>,
    /// The size of the page. 50 by default.
    #[param(value_type = Option<u32>, minimum = 1, maximum = 200)]
    limit: Option<String>,
    /// The `nextCursor` of the page before.
    cursor: Option<String>,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct CopilotThreadList {
    threads: Vec<CopilotThread>,
    /// `null` on the last page.
    #[schema(required)]
    next_cursor: Option<String>,
    /// The topic of the list's changes (`socket.rs`): the name that the page uses for the agent.
    #[schema(required)]
    join_code: Option<String>,
}

/// A thread. Clients require all of these members, but this server has no organizations.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct CopilotThread {
    id: ThreadId,
    #[schema(required)]
    name: Option<String>,
    agent_id: String,
    organization_id: &'static str,
    created_by_id: &'static str,
    archived: bool,
    created_at: TimeText,
    updated_at: TimeText,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct CopilotThreadDeletion {
    thread_id: ThreadId,
    deleted: bool,
}

/// The request body of `PATCH /threads/{thread}`.
#[derive(Deserialize, ToSchema)]
#[schema(as = CopilotThreadEdit)]
pub(super) struct UpdateInput {
    name: Option<String>,
    archived: Option<bool>,
}

/// Lists the caller's threads.
#[utoipa::path(
    get,
    path = "/threads",
    params(ThreadListQuery),
    responses(
        (status = 200, description = "A page of threads.", body = CopilotThreadList),
        refuse::Agent, refuse::Parameter, refuse::Store, refuse::Url,
    ),
)]
pub(super) async fn list_copilot_threads(
    Query(query): Query<ThreadListQuery>,
    own: OwnThreads,
) -> ApiResult<Json<CopilotThreadList>> {
    let agent = query.agent_id.as_deref().map(|name| find_agent(&own.app, name)).transpose()?;
    let page = ThreadPage {
        after: query.cursor.as_deref().map(read_cursor).transpose()?,
        limit: page_size(query.limit.as_deref())?,
        archived: if query.include_archived.as_deref() == Some("true") {
            None
        } else {
            Some(false)
        },
        agent: agent.map(|agent| agent.name().to_owned()),
        query: None,
    };
    let (found, next_cursor) = list_page(&own, page).await?;
    let record = |thread| CopilotThread::new(thread, query.agent_id.as_deref());
    let threads = found.into_iter().map(record).collect();
    Ok(Json(CopilotThreadList { threads, next_cursor, join_code: query.agent_id.clone() }))
}

/// Renames or archives a thread.
#[utoipa::path(
    patch,
    path = "/threads/{thread}",
    request_body = UpdateInput,
    responses(
        (status = 200, description = "The changed thread.", body = CopilotThread),
        refuse::Body, refuse::Edit, refuse::Message, refuse::Store, refuse::Thread,
    ),
)]
pub(super) async fn edit_copilot_thread(
    Path(id): Path<ThreadId>,
    own: OwnThreads,
    request: Request,
) -> ApiResult<Json<CopilotThread>> {
    let body = read_body::read_small(&own.app, request).await?;
    let UpdateInput { name, archived } = decode_members(&body)?;
    let edit = ThreadEdit { title: name.map(Some), archived, ..ThreadEdit::default() };
    edit_thread(&own, id, edit).await
}

/// Archives a thread.
#[utoipa::path(
    post,
    path = "/threads/{thread}/archive",
    responses(
        (status = 200, description = "The archived thread.", body = CopilotThread),
        refuse::Edit, refuse::Store, refuse::Thread,
    ),
)]
pub(super) async fn archive_copilot_thread(
    Path(id): Path<ThreadId>,
    own: OwnThreads,
) -> ApiResult<Json<CopilotThread>> {
    let edit = ThreadEdit { archived: Some(true), ..ThreadEdit::default() };
    edit_thread(&own, id, edit).await
}

async fn edit_thread(
    own: &OwnThreads,
    id: ThreadId,
    edit: ThreadEdit,
) -> ApiResult<Json<CopilotThread>> {
    let edited = own.threads.edit(&own.caller.key(id), edit).await;
    let thread = edited.map_err(|error| match error {
        ThreadError::TitleTooLong => {
            ApiError::InvalidInput { path: "name".to_owned(), message: error.to_string() }
        }
        error => error.into(),
    })?;
    Ok(Json(CopilotThread::new(thread, None)))
}

/// Deletes a thread.
#[utoipa::path(
    delete,
    path = "/threads/{thread}",
    responses(
        (status = 200, description = "The thread is deleted.", body = CopilotThreadDeletion),
        refuse::Store, refuse::Thread,
    ),
)]
pub(super) async fn delete_copilot_thread(
    Path(id): Path<ThreadId>,
    own: OwnThreads,
) -> ApiResult<Json<CopilotThreadDeletion>> {
    let key = own.caller.key(id);
    own.threads.delete(&key).await?;
    Ok(Json(CopilotThreadDeletion { thread_id: key.id, deleted: true }))
}

impl CopilotThread {
    /// `agent` is the name that the client asked for, such as `default`: it looks for its threads by that name.
    pub(super) fn new(thread: Thread, agent: Option<&str>) -> Self {
        Self {
            id: thread.key.id,
            name: thread.title,
            agent_id: agent.map_or(thread.agent, str::to_owned),
            organization_id: "",
            created_by_id: "",
            archived: thread.archived,
            created_at: time(thread.created_at),
            updated_at: time(thread.updated_at),
        }
    }
}
