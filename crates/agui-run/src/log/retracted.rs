//! Finds the retracted messages that a client still shows. A run retracts messages when it is
//! continued after its server was lost; their ids are in its log. A client that has not read the
//! rest of the log sends them again, and they would be stored beside the messages that replaced
//! them.

use std::collections::HashSet;

use serde::Deserialize;

use super::mark::LogMark;
use crate::{
    conversation::branch::{Branch, is_agent_only},
    measured_store::MeasuredStore,
};
use agui_protocol::{Message, MessageId};
use agui_store::{RunNumber, StoreError, ThreadKey, ThreadParts};

/// Newest runs to check.
const MAX_CHECKED: usize = 32;
/// Continued runs whose logs are read.
const MAX_READ: usize = 4;
/// Pages to read of each log.
const MAX_PAGES: usize = 16;
const PAGE_BYTES: usize = 1024 * 1024;

/// The ids by which a client may know the message of an event. A message that has only calls has
/// the id of its first call.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct EventIds {
    message_id: Option<MessageId>,
    parent_message_id: Option<MessageId>,
    tool_call_id: Option<MessageId>,
}

/// Returns the ids of the client's messages that runs of the branch have retracted. Reads from the
/// store only if the client shows an agent's message that the branch does not have, and only the
/// logs of continued runs beside that message: pages that make their own ids show such messages in
/// each request.
pub(crate) async fn retracted(
    store: &MeasuredStore,
    key: &ThreadKey,
    stored: &Branch,
    client: &[Message],
) -> Result<HashSet<MessageId>, StoreError> {
    let mut unknown = HashSet::new();
    let mut runs = Vec::new();
    let mut next = 0;
    for message in client {
        if let Some(position) = stored.messages().position(message.id()) {
            next = position + 1;
        } else if is_agent_only(message) || matches!(message, Message::Reasoning(_)) {
            unknown.insert(message.id().clone());
            let before = next.checked_sub(1).and_then(|last| stored.origin(last).run());
            runs.extend(before.into_iter().chain(stored.origin(next).run()));
        }
    }
    if runs.is_empty() {
        return Ok(HashSet::new());
    }
    let newest = ThreadParts { runs: MAX_CHECKED, ..ThreadParts::default() };
    let records = store.thread(key, newest).await?.map(|view| view.runs);
    let continued =
        records.into_iter().flatten().filter(|run| run.takeovers > 0 && runs.contains(&run.number));
    let mut retracted = HashSet::new();
    for run in continued.take(MAX_READ) {
        retracted.extend(retracted_by(store, &key.owner, run.number, &unknown).await?);
    }
    Ok(retracted)
}

/// Returns the `unknown` messages that the run's log has before a mark *continued*.
async fn retracted_by(
    store: &MeasuredStore,
    owner: &str,
    run: RunNumber,
    unknown: &HashSet<MessageId>,
) -> Result<HashSet<MessageId>, StoreError> {
    let mut after = 0;
    let mut begun = HashSet::new();
    let mut retracted = HashSet::new();
    for _ in 0..MAX_PAGES {
        let page = match store.events(owner, run, after, PAGE_BYTES).await {
            // The thread stays usable if a log is damaged.
            Err(StoreError::Failed(_)) => break,
            page => page?,
        };
        let Some(page) = page.filter(|page| !page.events.is_empty()) else { break };
        after += page.events.len() as u64;
        for line in &page.events {
            match LogMark::from_line(line) {
                Some(LogMark::Continued { .. }) => retracted.extend(begun.drain()),
                Some(_) => {}
                None => {
                    let Ok(ids) = serde_json::from_str::<EventIds>(line) else { continue };
                    let ids = [ids.message_id, ids.parent_message_id, ids.tool_call_id]
                        .into_iter()
                        .flatten();
                    begun.extend(ids.filter(|id| unknown.contains(id)));
                }
            }
        }
    }
    Ok(retracted)
}
