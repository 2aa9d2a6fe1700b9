//! The part of a log that a response has.

use super::position::Offset;
use crate::{
    http::error::ApiError,
    run::{LogPage, RunLog},
};

/// Returns the page at an offset. That of `now` is empty.
pub(super) async fn first_page(log: &RunLog, offset: Offset) -> Result<LogPage, ApiError> {
    match offset {
        Offset::Start => Ok(log.page(0).await?),
        Offset::Now => Ok(log.end().await?),
        Offset::After(number) => {
            let page = log.page(number).await?;
            // An offset after the end is of another run of the same id, which this one has replaced.
            let is_known = number <= page.tail();
            is_known.then_some(page).ok_or_else(|| ApiError::invalid_parameter("offset", "an offset of this log"))
        }
    }
}

/// Returns the events as a JSON array.
pub(super) fn array(page: &LogPage) -> String {
    let events: Vec<_> = page.events().collect();
    format!("[{}]", events.join(","))
}
