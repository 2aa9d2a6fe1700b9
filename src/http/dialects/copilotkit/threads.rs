//! A caller's threads in the format of CopilotKit's thread list.

use axum::{
    Extension, Json,
    extract::{Request, State},
};
use serde::{Deserialize, Serialize};

use super::agents::find_agent;
use crate::http::openapi::refuse;
use crate::{
    http::{
        App,
        accept::{
            extract::{Path, Query},
            middleware::Caller,
            read_body,
        },
        error::ApiError,
        threads::{list_page, page_size, read_cursor, time},
    },
    protocol::{ThreadId, decode::decode_members},
    store::{ThreadPage, ThreadSummary},
    threads::{EditError, ThreadEdit},
};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ThreadListQuery {
    agent_id: Option<String>,
    include_archived: Option<String>,
    limit: Option<String>,
    cursor: Option<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ThreadList {
    threads: Vec<ThreadRecord>,
    /// `null` at the end of the list.
    next_cursor: Option<String>,
    /// The topic of the list's changes (`socket.rs`): the name that the page uses for the agent.
    join_code: Option<String>,
}

/// A thread. Clients require all of these members, but this server has no organizations.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ThreadRecord {
    id: ThreadId,
    name: Option<String>,
    agent_id: String,
    organization_id: &'static str,
    created_by_id: &'static str,
    archived: bool,
    created_at: String,
    updated_at: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct DeleteResult {
    thread_id: ThreadId,
    deleted: bool,
}

/// The request body of `PATCH /threads/{thread}`.
#[derive(Deserialize)]
struct UpdateInput {
    name: Option<String>,
    archived: Option<bool>,
}

#[utoipa::path(
    get,
    path = "/threads",
    operation_id = "listCopilotThreads",
    tag = "CopilotKit",
    summary = "Lists the caller's threads",
    params(
        ("limit" = Option<u32>, Query, description = "The size of the page. 50 by default.", minimum = 1, maximum = 200),
        ("agentId" = Option<String>, Query, description = "Only threads of this agent."),
        ("includeArchived" = Option<bool>, Query, description = "False by default."),
        ("cursor" = Option<String>, Query, description = "The `nextCursor` of the page before."),
    ),
    responses(
        (status = 200, description = "A page of threads.", body = ref("#/components/schemas/CopilotThreadList")),
        refuse::Agent, refuse::Parameter, refuse::Store, refuse::Url,
    ),
)]
pub(super) async fn list_threads(
    State(app): State<App>,
    Query(query): Query<ThreadListQuery>,
    Extension(caller): Extension<Caller>,
) -> Result<Json<ThreadList>, ApiError> {
    let threads = app.threads().ok_or_else(ApiError::no_stored_threads)?;
    let agent = query.agent_id.as_deref().map(|name| find_agent(&app, name)).transpose()?;
    let page = ThreadPage {
        after: query.cursor.as_deref().map(read_cursor).transpose()?,
        limit: page_size(query.limit.as_deref())?,
        archived: if query.include_archived.as_deref() == Some("true") { None } else { Some(false) },
        agent: agent.map(|agent| agent.name().to_owned()),
        query: None,
    };
    let (found, next_cursor) = list_page(threads, caller.principal().as_ref(), page).await?;
    let record = |thread| ThreadRecord::of(thread, query.agent_id.as_deref());
    let threads = found.into_iter().map(record).collect();
    Ok(Json(ThreadList { threads, next_cursor, join_code: query.agent_id.clone() }))
}

/// Renames a thread, archives it, or returns it from the archive.
#[utoipa::path(
    patch,
    path = "/threads/{thread}",
    operation_id = "editCopilotThread",
    tag = "CopilotKit",
    summary = "Renames or archives a thread",
    request_body = ref("#/components/schemas/CopilotThreadEdit"),
    responses(
        (status = 200, description = "The changed thread.", body = ref("#/components/schemas/CopilotThread")),
        refuse::Body, refuse::Edit, refuse::Message, refuse::Store, refuse::Thread,
    ),
)]
pub(super) async fn update_thread(
    State(app): State<App>,
    Path(thread): Path<String>,
    Extension(caller): Extension<Caller>,
    request: Request,
) -> Result<Json<ThreadRecord>, ApiError> {
    let (head, body) = request.into_parts();
    let body = read_body::read_small(&app, &head, body).await?;
    let UpdateInput { name, archived } = decode_members(&body)?;
    let edit = ThreadEdit { title: name.map(Some), archived, ..ThreadEdit::default() };
    edit_thread(&app, &caller, thread, edit).await
}

#[utoipa::path(
    post,
    path = "/threads/{thread}/archive",
    operation_id = "archiveCopilotThread",
    tag = "CopilotKit",
    summary = "Archives a thread",
    responses(
        (status = 200, description = "The archived thread.", body = ref("#/components/schemas/CopilotThread")),
        refuse::Edit, refuse::Store, refuse::Thread,
    ),
)]
pub(super) async fn archive_thread(
    State(app): State<App>,
    Path(thread): Path<String>,
    Extension(caller): Extension<Caller>,
) -> Result<Json<ThreadRecord>, ApiError> {
    let edit = ThreadEdit { archived: Some(true), ..ThreadEdit::default() };
    edit_thread(&app, &caller, thread, edit).await
}

async fn edit_thread(
    app: &App,
    caller: &Caller,
    thread: String,
    edit: ThreadEdit,
) -> Result<Json<ThreadRecord>, ApiError> {
    let threads = app.threads().ok_or_else(ApiError::no_stored_threads)?;
    let edited = threads.edit(caller.principal().as_ref(), &thread.into(), edit).await;
    let thread = edited.map_err(|error| match error {
        EditError::TitleTooLong => ApiError::from(error).at("name"),
        error => error.into(),
    })?;
    Ok(Json(ThreadRecord::of(thread.into_summary(), None)))
}

#[utoipa::path(
    delete,
    path = "/threads/{thread}",
    operation_id = "deleteCopilotThread",
    tag = "CopilotKit",
    summary = "Deletes a thread",
    responses(
        (status = 200, description = "The thread is deleted.", body = ref("#/components/schemas/CopilotThreadDeletion")),
        refuse::Store, refuse::Thread,
    ),
)]
pub(super) async fn delete_thread(
    State(app): State<App>,
    Path(thread): Path<String>,
    Extension(caller): Extension<Caller>,
) -> Result<Json<DeleteResult>, ApiError> {
    let threads = app.threads().ok_or_else(ApiError::no_stored_threads)?;
    let thread_id = ThreadId::from(thread);
    threads.delete(caller.principal().as_ref(), &thread_id).await?;
    Ok(Json(DeleteResult { thread_id, deleted: true }))
}

impl ThreadRecord {
    /// `agent` is the name that the client asked for, such as `default`: it looks for its threads by that name.
    pub(super) fn of(thread: ThreadSummary, agent: Option<&str>) -> Self {
        Self {
            id: thread.id,
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
