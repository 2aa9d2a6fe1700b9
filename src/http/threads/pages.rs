//! Pages of lists, and times as clients see them.

use std::str::FromStr;

use serde::Serialize;
use utoipa::ToSchema;

use crate::http::{ApiError, ApiResult, OwnThreads};
use agui_base::time_text::time_text;
use agui_store::{Millis, StoreError, Thread, ThreadPage};

pub(super) const PAGE_SIZE: usize = 50;
const MAX_PAGE_SIZE: usize = 200;

pub(crate) fn page_size(limit: Option<&str>) -> ApiResult<usize> {
    match limit.map(str::parse) {
        None => Ok(PAGE_SIZE),
        Some(Ok(limit)) if (1..=MAX_PAGE_SIZE).contains(&limit) => Ok(limit),
        Some(_) => {
            Err(ApiError::InvalidParameter { name: "limit", expected: "a number from 1 to 200" })
        }
    }
}

/// Returns a page of a principal's threads, and the cursor of the next page, if there is one. It is opaque to clients.
pub(crate) async fn list_page(
    own: &OwnThreads,
    mut page: ThreadPage,
) -> Result<(Vec<Thread>, Option<String>), StoreError> {
    let limit = page.limit;
    // One more, which shows whether there is a next page.
    page.limit = limit + 1;
    let mut found = own.threads.list(&own.caller.owner(), &page).await?;
    let has_more = found.len() > limit;
    found.truncate(limit);
    let next = found.last().filter(|_| has_more).map(|last| last.run.to_string());
    Ok((found, next))
}

pub(crate) fn read_cursor<N: FromStr>(cursor: &str) -> ApiResult<N> {
    cursor.parse().map_err(|_| ApiError::InvalidParameter {
        name: "cursor",
        expected: "the `next` of another page",
    })
}

/// A time such as `2026-01-31T12:00:00.000Z`: three digits of milliseconds, so that times sort as texts.
#[derive(Serialize, ToSchema)]
#[schema(as = Time, value_type = String, format = DateTime)]
pub(crate) struct TimeText(String);

pub(crate) fn time(millis: Millis) -> TimeText {
    TimeText(time_text(millis))
}
