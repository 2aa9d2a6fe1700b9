//! `GET /threads/{thread}/runs/{run}/recording`: a detached run as a recording.

use axum::{
    body::Body,
    http::{HeaderName, HeaderValue, header},
    response::IntoResponse as _,
};
use futures::stream;

use crate::http::{ApiError, ApiResult, OwnThreads, Path, refuse};
use agui_protocol::{RunId, ThreadId};
use agui_run::threads::ThreadError;

const JSON_LINES: HeaderValue = HeaderValue::from_static("application/jsonl");
const CROSS_ORIGIN_RESOURCE_POLICY: HeaderName =
    HeaderName::from_static("cross-origin-resource-policy");

/// Returns a detached run that has ended as a recording.
///
/// If the log is removed meanwhile, or the store fails, the response breaks.
#[utoipa::path(
    get,
    path = "/threads/{thread}/runs/{run}/recording",
    tag = "runs",
    responses(
        (status = 200, description = "The recording.", body = String, content_type = "application/jsonl", headers(("Content-Disposition" = String, description = "The name of a file for the recording."))),
        refuse::Follow, refuse::Running, refuse::Store,
    ),
)]
pub(crate) async fn read_recording(
    Path((thread, run)): Path<(ThreadId, RunId)>,
    own: OwnThreads,
) -> ApiResult {
    let recording = own.threads.recording(&own.caller.key(thread), &run, own.urls()).await?;
    // The name has letters, digits and `-_.` only.
    let disposition = format!("attachment; filename=\"{}\"", recording.file_name());
    let lines = stream::try_unfold(recording, |mut recording| async move {
        let next = recording.next().await;
        let next = next.inspect_err(|error| {
            tracing::warn!(?error, "a recording could not be sent to its end")
        })?;
        Ok::<_, ThreadError>(next.map(|lines| (lines, recording)))
    });
    let headers = [
        (header::CONTENT_TYPE, JSON_LINES),
        (header::CONTENT_DISPOSITION, disposition.try_into().map_err(|_| ApiError::Internal)?),
        (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
        (CROSS_ORIGIN_RESOURCE_POLICY, HeaderValue::from_static("same-origin")),
    ];
    Ok((headers, Body::from_stream(lines)).into_response())
}
