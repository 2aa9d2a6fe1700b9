//! `GET /threads/{thread}/export` and `POST /threads/import`: a thread with everything that is stored of it, as JSON.

use axum::{Json, extract::Request, http::StatusCode};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::list::ThreadSummary;
use crate::http::{ApiError, ApiResult, OwnThreads, Path, Query, read_run::read_export, refuse};
use agui_agent::files::LoadedFor;
use agui_base::text::short_line;
use agui_protocol::{ThreadId, decode::decode_value};
use agui_store::ThreadContent;

#[derive(Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ThreadExport {
    thread_id: ThreadId,
    #[serde(flatten)]
    #[schema(inline)]
    content: ThreadContent,
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct ExportQuery {
    /// `inline`: the data of files, the newest 64 MiB, in place of their URLs, which expire.
    #[param(value_type = Option<String>, pattern = "^(url|inline)$")]
    files: Option<String>,
}

#[derive(Deserialize, IntoParams)]
#[serde(rename_all = "camelCase")]
#[into_params(parameter_in = Query)]
pub(crate) struct ImportQuery {
    /// The id of the thread. The export's by default.
    #[param(value_type = Option<String>)]
    thread_id: Option<ThreadId>,
}

/// Returns everything that is stored of a thread.
///
/// These are all branches, states and runs. Logs of detached runs, and a run that has not ended, are left out.
#[utoipa::path(
    get,
    path = "/threads/{thread}/export",
    params(ExportQuery),
    responses(
        (status = 200, description = "The thread.", body = ThreadExport),
        refuse::Limits, refuse::Parameter, refuse::ResponseMemory, refuse::Store, refuse::Thread, refuse::Url,
    ),
)]
pub(crate) async fn export_thread(
    Path(id): Path<ThreadId>,
    Query(query): Query<ExportQuery>,
    own: OwnThreads,
) -> ApiResult {
    let loads_files = match query.files.as_deref() {
        None | Some("url") => false,
        Some("inline") => true,
        Some(_) => {
            return Err(ApiError::InvalidParameter {
                name: "files",
                expected: "`url` or `inline`",
            });
        }
    };
    let key = own.caller.key(id);
    let mut permit = own.app.response_permit(&key).await?;
    let mut content = own.threads.export(&key).await?;
    if let Some(files) = own.threads.core.files.as_ref().filter(|_| loads_files) {
        let messages = content.messages.iter_mut().map(|copied| &mut copied.message).collect();
        let loading = files.loading(&key.owner, messages, LoadedFor::Export).await?;
        permit = permit
            .and(own.app.runs.memory.copy(own.caller.principal.as_ref(), loading.bytes()).await?);
        loading.load().await;
    }
    own.present(content.messages.iter_mut().map(|copied| &mut copied.message));
    permit.json(&ThreadExport { thread_id: key.id, content })
}

/// Creates a thread from an export.
///
/// Counts as a run for the limits of runs.
#[utoipa::path(
    post,
    path = "/threads/import",
    params(ImportQuery),
    request_body = ThreadExport,
    responses(
        (status = 201, description = "The new thread.", body = ThreadSummary),
        refuse::Body, refuse::Copy, refuse::Limits, refuse::Store, refuse::Url,
    ),
)]
pub(crate) async fn import_thread(
    Query(query): Query<ImportQuery>,
    own: OwnThreads,
    request: Request,
) -> ApiResult<(StatusCode, Json<ThreadSummary>)> {
    // All values count as open.
    let decode = |body: &[u8]| Ok((decode_value(body)?, usize::MAX));
    let (_permit, json) = read_export(&own.app, request, decode).await?;
    let ThreadExport { thread_id, content } = serde_json::from_value(json).map_err(|error| {
        let problem = short_line(&error.to_string());
        ApiError::InvalidInput {
            path: String::new(),
            message: format!("the body is no export of a thread: {problem}"),
        }
    })?;
    let key = own.caller.key(query.thread_id.unwrap_or(thread_id));
    let thread = own.threads.import(&key, content).await?;
    Ok((StatusCode::CREATED, Json(thread.into())))
}
