//! Messages that a run has taken back when it went on after its server was lost, and that the client still shows: it has not
//! read on in the log, and its next request would store them beside those that took their place. Their ids are in the log.

use std::collections::HashSet;

use serde::Deserialize;

use super::mark::LogMark;
use crate::{
    conversation::branch::{Branch, is_claim},
    measured_store::MeasuredStore,
};
use agui_protocol::{Message, MessageId};
use agui_store::{StoreError, ThreadKey, ThreadParts};

/// The newest runs that are asked whether they went on, those of them whose logs are read, and the part of a log that is read.
const MAX_ASKED: usize = 32;
const MAX_RUNS: usize = 4;
const MAX_PAGES: usize = 16;
const PAGE_BYTES: usize = 1024 * 1024;

/// The ids by which a client may know the message of an event. A message that has only calls has the id of the first one.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct EventIds {
    message_id: Option<MessageId>,
    parent_message_id: Option<MessageId>,
    tool_call_id: Option<MessageId>,
}

/// Returns the ids of the client's messages that runs of the branch have taken back. Reads from the store only if the client shows
/// a message of an agent that the branch does not have, and logs only of the runs beside it that went on: pages that make ids of
/// their own show such messages in each request.
pub(crate) async fn taken_back(
    store: &MeasuredStore,
    key: &ThreadKey,
    stored: &Branch,
    client: &[Message],
) -> Result<HashSet<MessageId>, StoreError> {
    let (mut unknown, mut runs, mut next) = (HashSet::new(), Vec::new(), 0);
    for message in client {
        if let Some(position) = stored.messages().position(message.id()) {
            next = position + 1;
        } else if is_claim(message) || matches!(message, Message::Reasoning(_)) {
            unknown.insert(message.id().clone());
            let before = next.checked_sub(1).and_then(|last| stored.origin(last).run());
            runs.extend(before.into_iter().chain(stored.origin(next).run()));
        }
    }
    if runs.is_empty() {
        return Ok(HashSet::new());
    }
    let newest = ThreadParts { runs: MAX_ASKED, ..ThreadParts::default() };
    let records =
        store.call("thread", |store| store.thread(key, newest)).await?.map(|view| view.runs);
    let went_on =
        records.into_iter().flatten().filter(|run| run.takeovers > 0 && runs.contains(&run.number));
    let mut taken_back = HashSet::new();
    for run in went_on.take(MAX_RUNS) {
        taken_back.extend(taken_back_by(store, &key.owner, run.number, &unknown).await?);
    }
    Ok(taken_back)
}

/// Returns which of these messages the log has before a mark after which the run went on.
async fn taken_back_by(
    store: &MeasuredStore,
    owner: &str,
    run: i64,
    unknown: &HashSet<MessageId>,
) -> Result<HashSet<MessageId>, StoreError> {
    let (mut after, mut begun, mut taken_back) = (0, HashSet::new(), HashSet::new());
    for _ in 0..MAX_PAGES {
        let page =
            match store.call("events", |store| store.events(owner, run, after, PAGE_BYTES)).await {
                // A damaged log keeps nobody from the thread.
                Err(StoreError::Failed(_)) => break,
                page => page?,
            };
        let Some(page) = page.filter(|page| !page.events.is_empty()) else { break };
        after += page.events.len() as u64;
        for line in &page.events {
            match LogMark::from_line(line) {
                Some(LogMark::Continued { .. }) => taken_back.extend(begun.drain()),
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
    Ok(taken_back)
}
