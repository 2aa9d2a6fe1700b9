//! The recording of a running run.

use std::{
    collections::BTreeMap,
    fmt,
    sync::Arc,
    time::{Duration, Instant},
};

use parking_lot::Mutex;

use super::writer::RecordingWriter;
use crate::recording::{ProviderExchange, RecordingEnd, RecordingHead, line};
use agui_protocol::{Event, RunAgentInput, TokenUsage};

/// Lines are given to the writer in portions of this size, in bytes.
const PORTION_BYTES: usize = 16 * 1024;
/// The time that a line waits for further lines.
const PORTION_TIME: Duration = Duration::from_secs(1);
/// An estimate of the memory of a request without its messages, which the run shares.
const REQUEST_BYTES: usize = 4096;

/// The recording of a run. Clones share it. A run that is dropped before its terminal event is recorded as `abandoned`.
#[derive(Clone)]
pub struct LiveRecording(Arc<LiveParts>);

struct LiveParts {
    writer: RecordingWriter,
    file: Arc<str>,
    begun: Instant,
    state: Mutex<LiveState>,
}

struct LiveState {
    lines: Vec<u8>,
    last_portion: Instant,
    /// True if the queue of the writer had no space for lines.
    is_cut: bool,
    has_ended: bool,
}

impl fmt::Debug for LiveRecording {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("LiveRecording").field(&self.0.file).finish()
    }
}

impl LiveRecording {
    /// Starts the recording of a run. `headers` may be recorded; the options select from them.
    pub fn start(
        writer: &RecordingWriter,
        agent: &str,
        headers: &[(String, String)],
        request: RunAgentInput,
    ) -> Self {
        let writer = writer.clone();
        let started_at = jiff::Timestamp::now().as_millisecond();
        let file = writer.new_file(started_at, &request.thread_id, &request.run_id);
        let mut recorded = BTreeMap::<String, Vec<String>>::new();
        for (name, value) in headers {
            if writer.options().headers.contains(name) {
                recorded.entry(name.clone()).or_default().push(value.clone());
            }
        }
        let head = RecordingHead {
            headers: recorded,
            ..RecordingHead::new(agent.to_owned(), started_at, request)
        };
        // Serialized on the writer's thread: a request can have megabytes of attachments.
        let is_queued = writer.create(&file, REQUEST_BYTES, move || head.to_line());
        let begun = Instant::now();
        let state = LiveState {
            lines: Vec::new(),
            last_portion: begun,
            is_cut: !is_queued,
            has_ended: false,
        };
        Self(Arc::new(LiveParts { writer, file, begun, state: Mutex::new(state) }))
    }

    /// Records an event. The terminal event ends the recording.
    pub fn event(&self, event: &Event) {
        let parts = &*self.0;
        let mut state = parts.state.lock();
        if state.has_ended {
            return;
        }
        if !state.is_cut {
            state.lines.extend(line(millis(parts.begun.elapsed()), "event", event));
        }
        let usage = match event {
            Event::RunFinished(finished) => &finished.usage,
            Event::RunError(error) => &error.usage,
            _ => {
                if state.lines.len() >= PORTION_BYTES
                    || state.last_portion.elapsed() >= PORTION_TIME
                {
                    parts.send_lines(&mut state);
                }
                return;
            }
        };
        parts.end(&mut state, "finished", usage.clone());
    }

    /// Returns whether exchanges with model providers are recorded.
    pub fn has_exchanges(&self) -> bool {
        self.0.writer.options().exchanges
    }

    /// Records an exchange that began at `begun`. `make` is called on the writer's thread; it keeps about `bytes` in
    /// memory.
    pub fn exchange(
        &self,
        begun: Instant,
        bytes: usize,
        make: impl FnOnce() -> ProviderExchange + Send + 'static,
    ) {
        let parts = &*self.0;
        let mut state = parts.state.lock();
        if state.has_ended || state.is_cut {
            return;
        }
        parts.send_lines(&mut state);
        let ms = millis(begun.saturating_duration_since(parts.begun));
        state.is_cut |=
            !parts.writer.append(&parts.file, bytes, move || line(ms, "exchange", &make()));
    }
}

impl LiveParts {
    fn send_lines(&self, state: &mut LiveState) {
        state.last_portion = Instant::now();
        let lines = std::mem::take(&mut state.lines);
        if !lines.is_empty() {
            state.is_cut |= !self.writer.append(&self.file, lines.len(), move || lines);
        }
    }

    fn end(&self, state: &mut LiveState, outcome: &str, usage: Vec<TokenUsage>) {
        if std::mem::replace(&mut state.has_ended, true) {
            return;
        }
        self.send_lines(state);
        let end = RecordingEnd { outcome: outcome.to_owned(), cut: state.is_cut, usage };
        self.writer.finish(&self.file, end, millis(self.begun.elapsed()));
    }
}

impl Drop for LiveParts {
    fn drop(&mut self) {
        self.end(&mut self.state.lock(), "abandoned", Vec::new());
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
