//! A stored detached run as a recording, in the format of `docs/recordings.md`.
//!
//! The log has what clients get; a recording has what the agent has sent. The snapshots that the recorder adds are left
//! out: that of the state after `RUN_STARTED`, and those of state and messages before interrupts.

use super::{LogPage, RunLog, ThreadError, Threads};
use crate::run::persist::stored_request::StoredRequest;
use crate::{
    agent::Principal,
    observe::recordings::name_of_stored_run,
    protocol::{
        RunAgentInput, RunId, ThreadId,
        recording::{self, RecordingEnd, RecordingHead},
    },
    store::{RunRecord, RunStatus, StoreError, ThreadParts, branch_of},
};

/// The number of the event after `RUN_STARTED`.
const SECOND_EVENT: u64 = 2;

/// A stored detached run as a recording, read in parts.
#[derive(Debug)]
pub(crate) struct RunRecording {
    log: RunLog,
    name: String,
    /// The first line.
    head: Option<Vec<u8>>,
    first_page: Option<LogPage>,
    /// The numbers of the events that the server may have added, with their types.
    added: Vec<(u64, &'static str)>,
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
    pub(crate) async fn recording(
        &self,
        owner: Option<&Principal>,
        thread: &ThreadId,
        run: &RunId,
    ) -> Result<RunRecording, ThreadError> {
        let log = self.log(owner, thread, run).await?;
        let (record, key) = (&log.record, self.runs.key(owner, thread));
        if record.status == RunStatus::Running {
            return Err(ThreadError::Running);
        }
        let start = self
            .runs
            .store
            .call("run_start", |store| store.run_start(&key.owner, record.number))
            .await?
            .ok_or(ThreadError::LogRemoved)?;
        // Fails now if the log was removed.
        let first_page = Some(log.page(0).await?);
        let view = self.view(&key, ThreadParts { messages: true, ..ThreadParts::default() }).await?;
        if view.thread.number != record.thread {
            return Err(ThreadError::NoThread);
        }
        let messages: Vec<_> =
            branch_of(&view.nodes, start.head).into_iter().map(|node| node.message.clone()).collect();
        let request = StoredRequest::from_json(&start.request).map_err(|error| StoreError::Failed(Box::new(error)))?;
        let added = added_events(record, request.adds_state);
        let input = request.into_input(thread.clone(), record.id.clone(), messages.into());
        let input = RunAgentInput { state: start.state, ..input };
        let name = name_of_stored_run(record.started_at, thread, &record.id, record.number);
        let head = RecordingHead::new(record.agent.clone(), record.started_at, input).to_line();
        let (head, after, ms) = (Some(head), 0, 0);
        Ok(RunRecording { log, name, head, first_page, added, after, ms, has_terminal: false, has_end: false })
    }
}

impl RunRecording {
    /// Returns the name of the file, as that of a recording in a folder.
    pub(crate) fn file_name(&self) -> &str {
        &self.name
    }

    /// Returns the next lines; `None` after the last one.
    ///
    /// # Errors
    /// [`ThreadError::LogRemoved`] or [`ThreadError::Store`].
    pub(crate) async fn next(&mut self) -> Result<Option<Vec<u8>>, ThreadError> {
        if let Some(head) = self.head.take() {
            return Ok(Some(head));
        }
        if self.has_end {
            return Ok(None);
        }
        let page = match self.first_page.take() {
            Some(page) => page,
            None => self.log.page(self.after).await?,
        };
        let mut lines = self.events(&page);
        self.after = page.last();
        if page.is_closed() {
            self.has_end = true;
            let outcome = if self.has_terminal { "finished" } else { "abandoned" };
            let end = RecordingEnd { outcome: outcome.to_owned(), cut: false, usage: self.log.record.usage.clone() };
            lines.extend(recording::line(self.ms, "end", &end));
        }
        Ok(Some(lines))
    }

    fn events(&mut self, page: &LogPage) -> Vec<u8> {
        let mut lines = Vec::new();
        for (number, ms, event) in page.timed_events() {
            self.ms = ms;
            self.has_terminal |= is_of_type(event, "RUN_FINISHED") || is_of_type(event, "RUN_ERROR");
            if !self.added.iter().any(|(added, name)| *added == number && is_of_type(event, name)) {
                recording::push_event_line(&mut lines, ms, event);
            }
        }
        lines
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
    use crate::protocol::{Event, event::RunStarted};

    #[test]
    fn the_type_of_an_event_stands_first_in_its_line() {
        let line = serde_json::to_string(&Event::from(RunStarted::new("t".into(), "r".into()))).unwrap();
        assert!(is_of_type(&line, "RUN_STARTED") && !is_of_type(&line, "RUN_START"), "{line}");
    }
}
