//! `GET /files` and `DELETE /files/{file}`.

use axum::{Json, http::StatusCode};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::own_files::{FileJson, OwnFiles};
use crate::http::{
    ApiError, ApiResult, Path, Query, refuse,
    threads::pages::{page_size, read_cursor},
};
use agui_store::files::{DeletedFile, FileDeletion};

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct FileListQuery {
    /// The size of the page. 50 by default.
    #[param(value_type = Option<u32>, minimum = 1, maximum = 200)]
    limit: Option<String>,
    /// The `next` of the page before.
    cursor: Option<String>,
}

#[derive(Serialize, ToSchema)]
pub(super) struct FileList {
    files: Vec<FileJson>,
    /// The `cursor` of the next page. Absent on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

/// Lists the caller's files, the newest first.
#[utoipa::path(
    get,
    path = "/files",
    params(FileListQuery),
    responses(
        (status = 200, description = "A page of files.", body = FileList),
        refuse::File, refuse::Parameter, refuse::Store, refuse::Url,
    ),
)]
pub(super) async fn list_files(
    own: OwnFiles,
    Query(query): Query<FileListQuery>,
) -> ApiResult<Json<FileList>> {
    let limit = page_size(query.limit.as_deref())?;
    let before = query.cursor.as_deref().map(read_cursor).transpose()?;
    // One more, which shows whether there is a next page.
    let mut found = own.files.list(&own.owner, before, limit + 1).await?;
    let has_more = found.len() > limit;
    found.truncate(limit);
    let next = found.last().filter(|_| has_more).map(|last| last.number.to_string());
    Ok(Json(FileList {
        files: found.into_iter().map(|file| FileJson::new(file, &own.urls)).collect(),
        next,
    }))
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct DeleteFileQuery {
    /// Present: the file is deleted also if messages use it.
    force: Option<String>,
}

/// Deletes a file.
///
/// It is refused while messages use the file, unless `force` is given. Models are then told that it was deleted.
#[utoipa::path(
    delete,
    path = "/files/{file}",
    params(DeleteFileQuery),
    responses(
        (status = 204, description = "The file is deleted."),
        refuse::File, refuse::FileDeletion, refuse::Store,
    ),
)]
pub(super) async fn delete_file(
    own: OwnFiles,
    Path(id): Path<String>,
    Query(query): Query<DeleteFileQuery>,
) -> ApiResult<StatusCode> {
    let is_forced = query.force.is_some_and(|force| force != "false");
    let deletion = if is_forced { FileDeletion::EvenIfUsed } else { FileDeletion::UnlessUsed };
    match own.files.delete(&own.owner, &id, deletion).await? {
        DeletedFile::Deleted => {
            own.threads.stored_bytes.forget(&own.owner);
            Ok(StatusCode::NO_CONTENT)
        }
        DeletedFile::Unknown => Err(ApiError::UnknownFile),
        DeletedFile::Used(threads) => Err(ApiError::FileInUse(threads)),
    }
}
