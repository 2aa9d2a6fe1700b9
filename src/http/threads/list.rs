//! `GET /threads`: the caller's threads, page by page.

use axum::Json;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::pages::{TimeText, list_page, page_size, read_cursor, time};
use crate::http::{ApiError, ApiResult, OwnThreads, Query, refuse};
use agui_protocol::{JsonObject, RunId, ThreadId};
use agui_store::{Thread, ThreadPage};

const MAX_SEARCH_CHARS: usize = 200;

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct ListQuery {
    /// The size of the page. 50 by default.
    #[param(value_type = Option<u32>, minimum = 1, maximum = 200)]
    limit: Option<String>,
    /// The `next` of the page before.
    cursor: Option<String>,
    /// `true`, `false` or `all`. `false` by default.
    archived: Option<String>,
    /// Only threads of this agent.
    agent: Option<String>,
    /// Only threads with these words in title or messages.
    #[param(max_length = 200)]
    q: Option<String>,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ThreadList {
    threads: Vec<ThreadSummary>,
    /// The `cursor` of the next page. Absent on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ThreadSummary {
    thread_id: ThreadId,
    /// The agent of the newest run.
    agent: String,
    #[schema(required)]
    title: Option<String>,
    archived: bool,
    #[serde(skip_serializing_if = "JsonObject::is_empty")]
    #[schema(value_type = Object)]
    metadata: JsonObject,
    #[serde(skip_serializing_if = "Option::is_none")]
    /// The running run.
    active_run_id: Option<RunId>,
    open_interrupts: u64,
    created_at: TimeText,
    updated_at: TimeText,
}

/// Lists the caller's threads, the newest activity first.
#[utoipa::path(
    get,
    path = "/threads",
    params(ListQuery),
    responses(
        (status = 200, description = "A page of threads.", body = ThreadList),
        refuse::Parameter, refuse::Store, refuse::Url,
    ),
)]
pub(crate) async fn list_threads(
    Query(query): Query<ListQuery>,
    own: OwnThreads,
) -> ApiResult<Json<ThreadList>> {
    let limit = page_size(query.limit.as_deref())?;
    let after = query.cursor.as_deref().map(read_cursor).transpose()?;
    let archived = match query.archived.as_deref() {
        None | Some("false") => Some(false),
        Some("true") => Some(true),
        Some("all") => None,
        Some(_) => {
            return Err(ApiError::InvalidParameter {
                name: "archived",
                expected: "true, false or all",
            });
        }
    };
    let search = query.q.filter(|text| !text.trim().is_empty());
    if search.as_ref().is_some_and(|text| text.chars().count() > MAX_SEARCH_CHARS) {
        return Err(ApiError::InvalidParameter { name: "q", expected: "at most 200 characters" });
    }
    let page = ThreadPage { after, limit, archived, agent: query.agent, query: search };
    let (found, next) = list_page(&own, page).await?;
    Ok(Json(ThreadList { threads: found.into_iter().map(ThreadSummary::from).collect(), next }))
}

impl From<Thread> for ThreadSummary {
    fn from(thread: Thread) -> Self {
        Self {
            thread_id: thread.key.id,
            agent: thread.agent,
            title: thread.title,
            archived: thread.archived,
            metadata: thread.metadata,
            active_run_id: thread.is_running.then_some(thread.run_id),
            open_interrupts: thread.interrupts.len() as u64,
            created_at: time(thread.created_at),
            updated_at: time(thread.updated_at),
        }
    }
}
