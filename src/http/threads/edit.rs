//! `PATCH` and `DELETE /threads/{thread}`, and `DELETE /threads`.

use axum::{Json, extract::Request, http::StatusCode};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::list::ThreadSummary;
use crate::http::{ApiError, ApiResult, OwnThreads, Path, read_body, refuse};
use agui_protocol::{JsonObject, MessageId, ThreadId, decode::decode_value};
use agui_run::threads::ThreadEdit;

/// The members that `read_edit` reads.
#[derive(ToSchema)]
#[schema(as = ThreadEdit)]
#[expect(dead_code, reason = "serde cannot tell `null` from an absent member")]
pub(crate) struct ThreadEditInput {
    /// `null` removes it.
    title: Option<String>,
    archived: Option<bool>,
    /// Replaces the metadata. `null` removes them.
    #[schema(value_type = Option<Object>)]
    metadata: Option<JsonObject>,
    /// The id of the message that becomes the last of the current branch.
    head: Option<MessageId>,
}

/// Changes title, archive, metadata or the current branch.
///
/// Returns the thread as it is in the list.
#[utoipa::path(
    patch,
    path = "/threads/{thread}",
    request_body = ThreadEditInput,
    responses(
        (status = 200, description = "The changed thread.", body = ThreadSummary),
        refuse::Body, refuse::Edit, refuse::Message, refuse::Store, refuse::Thread,
    ),
)]
pub(crate) async fn edit_thread(
    Path(id): Path<ThreadId>,
    own: OwnThreads,
    request: Request,
) -> ApiResult<Json<ThreadSummary>> {
    let body = read_body::read_small(&own.app, request).await?;
    let edit = read_edit(decode_value(&body)?)?;
    let thread = own.threads.edit(&own.caller.key(id), edit).await?;
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
pub(crate) async fn delete_thread(
    Path(id): Path<ThreadId>,
    own: OwnThreads,
) -> ApiResult<StatusCode> {
    own.threads.delete(&own.caller.key(id)).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// The number of deleted threads.
#[derive(Serialize, ToSchema)]
pub(crate) struct DeletedThreads {
    deleted: u64,
}

/// Deletes all threads of the caller with their runs, also archived ones. Running runs are cancelled.
#[utoipa::path(
    delete,
    path = "/threads",
    responses((status = 200, description = "The threads are deleted.", body = DeletedThreads), refuse::Store)
)]
pub(crate) async fn delete_threads(own: OwnThreads) -> ApiResult<Json<DeletedThreads>> {
    Ok(Json(DeletedThreads { deleted: own.threads.delete_all(own.caller.owner()).await? }))
}

/// `null` removes the title and the metadata, and is ignored elsewhere. Unknown members are ignored.
fn read_edit(body: Value) -> ApiResult<ThreadEdit> {
    let Value::Object(members) = body else {
        return Err(ApiError::invalid_input(
            "",
            "an object with title, archived, metadata or head",
        ));
    };
    let mut edit = ThreadEdit::default();
    for (name, value) in members {
        match (name.as_str(), value) {
            ("title", Value::Null) => edit.title = Some(None),
            ("title", Value::String(title)) => edit.title = Some(Some(title)),
            ("title", _) => return Err(ApiError::invalid_input("title", "a string or null")),
            ("metadata", Value::Null) => edit.metadata = Some(None),
            ("metadata", Value::Object(metadata)) => edit.metadata = Some(Some(metadata)),
            ("metadata", _) => {
                return Err(ApiError::invalid_input("metadata", "an object or null"));
            }
            ("archived" | "head", Value::Null) => {}
            ("archived", Value::Bool(archived)) => edit.archived = Some(archived),
            ("archived", _) => return Err(ApiError::invalid_input("archived", "true or false")),
            ("head", Value::String(head)) => edit.head = Some(head.into()),
            ("head", _) => return Err(ApiError::invalid_input("head", "the id of a message")),
            _ => {}
        }
    }
    Ok(edit)
}
