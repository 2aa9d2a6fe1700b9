//! A stored detached run as a recording, in the format of `docs/recordings.md`.
//!
//! The log has the events that clients get; a recording has the events that the agent sent. So a
//! recording has no snapshots of the server: of the state after `RUN_STARTED`, and of state and
//! messages before interrupts.

use super::{ThreadError, Threads};
use crate::{Follower, log::mark::is_mark, persist::stored_request::StoredRequest};
use agui_agent::files::{FileUrls, OWN_FILE};
use agui_observe::{
    recording,
    recording::{RecordingEnd, RecordingHead},
    recordings::name_of_stored_run,
};
use agui_protocol::{RunAgentInput, RunId};
use agui_store::{
    EventPage, RunRecord, RunStatus, StoreError, ThreadKey, ThreadParts, host::branch_of,
};

/// The size of a page of the log, in bytes; a page has at least one event.
const PAGE_BYTES: usize = 64 * 1024;
/// The number of the event after `RUN_STARTED`.
const SECOND_EVENT: u64 = 2;

/// A stored detached run as a recording, read in parts.
pub struct RunRecording {
    threads: Threads,
    record: RunRecord,
    /// The reader of the log, which counts as a follower.
    follower: Follower,
    name: String,
    /// The first line.
    head: Option<Vec<u8>>,
    first_page: Option<EventPage>,
    /// The numbers of the events that the server may have added, with their types.
    added: Vec<(u64, &'static str)>,
    /// True if the client or a tool sent data that were stored as files, so that the server added a
    /// snapshot that names them.
    had_inline_media: bool,
    /// `None` if the store keeps no files.
    urls: Option<FileUrls>,
    /// The number of the last event that was read.
    after: u64,
    /// The time of the last event.
    ms: u64,
    has_terminal: bool,
    has_end: bool,
}

impl Threads {
    /// Returns the recording of a detached run that has ended.
    ///
    /// # Errors
    /// A [`ThreadError`]; [`ThreadError::Running`] if the run has not ended.
    pub async fn recording(
        &self,
        key: &ThreadKey,
        run: &RunId,
        urls: Option<FileUrls>,
    ) -> Result<RunRecording, ThreadError> {
        let record = self.detached_run(key, run).await?;
        let follower = self.follower(key, &record, 0)?;
        if record.status == RunStatus::Running {
            return Err(ThreadError::Running);
        }
        let start = self.core.store.run_start(&key.owner, record.number).await?;
        let start = start.ok_or(ThreadError::LogRemoved)?;
        let view = self.view(key, ThreadParts { messages: true, ..ThreadParts::default() }).await?;
        if view.thread.number != record.thread {
            return Err(ThreadError::NoThread);
        }
        let mut messages: Vec<_> = branch_of(&view.nodes, start.head)
            .into_iter()
            .map(|node| node.message.clone())
            .collect();
        if let Some(urls) = &urls {
            urls.present(&mut messages);
        }
        let request = StoredRequest::from_json(&start.request)
            .map_err(|error| StoreError::Failed(Box::new(error)))?;
        let added = added_events(&record, request.adds_state);
        let had_inline_media = request.had_inline_media;
        let input = request.into_input(key.id.clone(), record.id.clone(), messages.into());
        let input = RunAgentInput { state: start.state, ..input };
        let name = name_of_stored_run(record.started_at, &key.id, &record.id, record.number.0);
        let head =
            Some(RecordingHead::new(record.agent.clone(), record.started_at, input).to_line());
        let mut recording = RunRecording {
            threads: self.clone(),
            record,
            follower,
            name,
            head,
            first_page: None,
            added,
            had_inline_media,
            urls,
            after: 0,
            ms: 0,
            has_terminal: false,
            has_end: false,
        };
        // Fails now if the log was removed.
        recording.first_page = Some(recording.page().await?);
        Ok(recording)
    }
}

impl RunRecording {
    /// Returns the name of the file, in the format of recordings in a folder.
    pub fn file_name(&self) -> &str {
        &self.name
    }

    /// Returns the next lines; `None` after the last one.
    ///
    /// # Errors
    /// [`ThreadError::LogRemoved`] or [`ThreadError::Store`].
    pub async fn next(&mut self) -> Result<Option<Vec<u8>>, ThreadError> {
        if let Some(head) = self.head.take() {
            return Ok(Some(head));
        }
        if self.has_end {
            return Ok(None);
        }
        let page = match self.first_page.take() {
            Some(page) => page,
            None => self.page().await?,
        };
        let mut lines = Vec::new();
        for ((number, event), ms) in (page.first..)
            .zip(&page.events)
            .zip(page.times)
            .filter(|((_, event), _)| !is_mark(event))
        {
            self.ms = ms;
            self.has_terminal |=
                is_of_type(event, "RUN_FINISHED") || is_of_type(event, "RUN_ERROR");
            self.had_inline_media |=
                is_of_type(event, "TOOL_CALL_RESULT") && event.contains("\"type\":\"data\"");
            if self.is_added(number, event) {
                continue;
            }
            match self.urls.as_ref().and_then(|urls| urls.line(event)) {
                Some(event) => recording::push_event_line(&mut lines, ms, &event),
                None => recording::push_event_line(&mut lines, ms, event),
            }
        }
        self.after += page.events.len() as u64;
        if self.after >= page.count {
            self.has_end = true;
            let outcome = if self.has_terminal { "finished" } else { "abandoned" };
            let end = RecordingEnd {
                outcome: outcome.to_owned(),
                cut: false,
                usage: self.record.usage.clone(),
            };
            lines.extend(recording::line(self.ms, "end", &end));
        }
        Ok(Some(lines))
    }

    /// Returns whether the server has added an event.
    fn is_added(&self, number: u64, event: &str) -> bool {
        let names_files = || {
            self.had_inline_media && number + 1 == self.record.events && event.contains(OWN_FILE)
        };
        self.added.iter().any(|(added, name)| *added == number && is_of_type(event, name))
            || is_of_type(event, "MESSAGES_SNAPSHOT") && names_files()
    }

    /// Reads the stored events that follow the last one.
    async fn page(&self) -> Result<EventPage, ThreadError> {
        let (owner, run) = (&self.follower.key.owner, self.record.number);
        let page = self.threads.core.store.events(owner, run, self.after, PAGE_BYTES);
        let page = page.await?.ok_or(ThreadError::LogRemoved)?;
        if page.events.is_empty() && self.after < page.count {
            Err(ThreadError::LogRemoved)
        } else {
            Ok(page)
        }
    }
}

/// Returns the numbers of the events that the server has added to the log, with their types.
fn added_events(run: &RunRecord, adds_state: bool) -> Vec<(u64, &'static str)> {
    let mut added = Vec::new();
    if adds_state {
        added.push((SECOND_EVENT, "STATE_SNAPSHOT"));
    }
    if run.status == RunStatus::Interrupted {
        added.push((run.events.saturating_sub(2), "STATE_SNAPSHOT"));
        added.push((run.events.saturating_sub(1), "MESSAGES_SNAPSHOT"));
    }
    added
}

/// Returns whether a line of a log is an event of a type. Events are written with their type first.
fn is_of_type(event: &str, name: &str) -> bool {
    event
        .strip_prefix(r#"{"type":""#)
        .and_then(|rest| rest.strip_prefix(name))
        .is_some_and(|rest| rest.starts_with('"'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use agui_protocol::{Event, event::RunStarted};

    #[test]
    fn the_type_of_an_event_stands_first_in_its_line() {
        let line =
            serde_json::to_string(&Event::from(RunStarted::new("t".into(), "r".into()))).unwrap();
        assert!(is_of_type(&line, "RUN_STARTED") && !is_of_type(&line, "RUN_START"), "{line}");
    }
}
