//! `PATCH` and `DELETE /threads/{thread}`, and `DELETE /threads`.

use axum::{
    Json,
    extract::{Request, State},
    http::StatusCode,
};
use serde::Serialize;
use utoipa::ToSchema;

use super::list::ThreadSummaryJson;
use crate::{
    http::{ApiResult, App, OwnThreads, Path, read_body, refuse},
    protocol::{ThreadId, decode::decode_members},
    threads::ThreadEdit,
};

/// Changes title, archive, metadata or the current branch.
///
/// Returns the thread as it is in the list.
#[utoipa::path(
    patch,
    path = "/threads/{thread}",
    request_body = ThreadEdit,
    responses(
        (status = 200, description = "The changed thread.", body = ThreadSummaryJson),
        refuse::Body, refuse::Edit, refuse::Message, refuse::Store, refuse::Thread,
    ),
)]
pub(crate) async fn edit_thread(
    State(app): State<App>,
    Path(id): Path<ThreadId>,
    own: OwnThreads,
    request: Request,
) -> ApiResult<Json<ThreadSummaryJson>> {
    let body = read_body::read_small(&app, request).await?;
    let thread = own.threads.edit(own.owner(), &id, decode_members(&body)?).await?;
    Ok(Json(thread.into()))
}

/// Deletes a thread with its runs. A running run is cancelled.
///
/// The run is cancelled first, wherever it runs.
#[utoipa::path(
    delete,
    path = "/threads/{thread}",
    responses((status = 204, description = "The thread is deleted."), refuse::Store, refuse::Thread)
)]
pub(crate) async fn delete_thread(Path(id): Path<ThreadId>, own: OwnThreads) -> ApiResult<StatusCode> {
    own.threads.delete(own.owner(), &id).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// The number of deleted threads.
#[derive(Serialize, ToSchema)]
#[schema(as = DeletedThreads)]
pub(crate) struct DeletedJson {
    deleted: u64,
}

/// Deletes all threads of the caller with their runs, also archived ones. Running runs are cancelled.
#[utoipa::path(
    delete,
    path = "/threads",
    responses((status = 200, description = "The threads are deleted.", body = DeletedJson), refuse::Store)
)]
pub(crate) async fn delete_threads(own: OwnThreads) -> ApiResult<Json<DeletedJson>> {
    Ok(Json(DeletedJson { deleted: own.threads.delete_all(own.owner()).await? }))
}
