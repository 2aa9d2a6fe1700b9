//! A caller's files: store, list, read, delete.
//!
//! Another principal's file does not exist for the caller: 404 `unknown_file`. The signed URL of a file opens it without a credential,
//! and nothing else. So the handlers check their callers: the middleware would refuse bodies that are not JSON, and signed URLs.

mod disposition;
mod download;
mod manage;
mod multipart;
mod own_files;
mod upload;

use utoipa_axum::{router::OpenApiRouter, routes};

pub(crate) use multipart::FormFile;
pub(crate) use upload::file_of_form;

use super::App;

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(manage::list_files, upload::upload_file))
        .routes(routes!(download::read_file, manage::delete_file))
}
