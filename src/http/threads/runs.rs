//! Runs of a thread as JSON, and `POST /threads/{thread}/runs/{run}/cancel`.

use axum::{Json, http::StatusCode};
use serde::Serialize;
use utoipa::{ToSchema, openapi::schema::ObjectBuilder};

use super::pages::{TimeText, time};
use crate::{
    http::{ApiResult, OwnThreads, Path, openapi::schema::text_of, refuse},
    observe::metrics::Prices,
    protocol::{RunId, ThreadId, TokenUsage},
    store::{RunFailure, RunRecord, RunStatus},
};

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Run)]
pub(super) struct RunJson {
    run_id: RunId,
    agent: String,
    status: RunStatus,
    /// True if the run continues without its client, and can be followed.
    detached: bool,
    started_at: TimeText,
    #[serde(skip_serializing_if = "Option::is_none")]
    ended_at: Option<TimeText>,
    events: u64,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    usage: Vec<TokenUsage>,
    /// The cost of the tokens, in the currency of `[prices]`. Absent if a model has no price.
    #[serde(skip_serializing_if = "Option::is_none")]
    cost: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<RunFailure>,
    /// How often another server has taken the run over, to go on with it or to close it.
    #[serde(skip_serializing_if = "is_zero")]
    takeovers: u64,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Cancellation {
    run_id: RunId,
    #[schema(schema_with = cancellation_status)]
    status: &'static str,
    message: &'static str,
}

/// Cancels a run, on any replica.
///
/// The stream of a running run then ends with the outcome `cancelled`.
#[utoipa::path(
    post,
    path = "/threads/{thread}/runs/{run}/cancel",
    tag = "runs",
    responses(
        (status = 200, description = "The run had already ended.", body = Cancellation),
        (status = 202, description = "The run is being cancelled.", body = Cancellation),
        refuse::Run, refuse::Store, refuse::Thread,
    ),
)]
pub(crate) async fn cancel_run(
    Path((thread, run_id)): Path<(ThreadId, RunId)>,
    own: OwnThreads,
) -> ApiResult<(StatusCode, Json<Cancellation>)> {
    Ok(match own.threads.cancel(own.owner(), &thread, &run_id).await? {
        None => {
            let message = "the run is being cancelled";
            (StatusCode::ACCEPTED, Json(Cancellation { run_id, status: "cancelling", message }))
        }
        Some(run) => {
            let message = "the run had already ended";
            (StatusCode::OK, Json(Cancellation { run_id, status: run.status.as_str(), message }))
        }
    })
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

fn cancellation_status() -> ObjectBuilder {
    text_of(["cancelling"].into_iter().chain(RunStatus::ALL.map(RunStatus::as_str)))
}

impl RunJson {
    pub(super) fn new(run: RunRecord, prices: &Prices) -> Self {
        Self {
            cost: prices.cost_of_run(&run.usage),
            run_id: run.id,
            agent: run.agent,
            status: run.status,
            detached: run.detached,
            started_at: time(run.started_at),
            ended_at: run.ended_at.map(time),
            events: run.events,
            usage: run.usage,
            error: run.failure,
            takeovers: run.takeovers,
        }
    }
}
