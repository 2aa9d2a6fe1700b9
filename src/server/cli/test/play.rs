//! Sends the request of a recording to an agent, and reads the events.

use std::time::{Duration, Instant};

use futures::StreamExt as _;
use reqwest::{
    Url,
    header::{ACCEPT, HeaderMap, HeaderName, HeaderValue},
};

use super::ids::IdPairs;
use crate::server::cli::{printable::excerpt, server_client::require_success, target::RunTarget};
use agui_base::{
    permits::ANONYMOUS,
    text::LINE_CHARS,
    upstream::events::{StreamLimits, events},
};
use agui_observe::recording::{RecordedEvent, Recording};
use agui_protocol::{Event, RunAgentInput, RunId, TokenUsage};
use agui_run::Guard;

const MAX_EVENT_BYTES: usize = 64 * 1024 * 1024;

pub(super) struct Player<'t> {
    pub(super) target: &'t RunTarget,
    /// The time limit of a run.
    pub(super) timeout: Duration,
}

/// A run that was played.
pub(super) struct Played {
    pub(super) request: RunAgentInput,
    pub(super) events: Vec<RecordedEvent>,
    pub(super) usage: Vec<TokenUsage>,
    pub(super) duration: Duration,
}

impl Player<'_> {
    /// Plays a recording, in the new thread of `ids`. An error is the problem, for people.
    pub(super) async fn play(
        &self,
        url: Url,
        recording: &Recording,
        ids: &mut IdPairs,
    ) -> Result<Played, String> {
        let run_id = RunId::random();
        ids.add(&recording.head.request.run_id, &run_id);
        let request =
            ids.live_request(&recording.head.request).map_err(|error| error.to_string())?;
        let begun = Instant::now();
        let reading = self.read(url, recording, &request, begun);
        let events = tokio::time::timeout(self.timeout, reading)
            .await
            .map_err(|_| format!("the run has not ended within {} s", self.timeout.as_secs()))??;
        let usage = match events.last().map(|last| &last.event) {
            Some(Event::RunFinished(finished)) => finished.usage.clone(),
            Some(Event::RunError(error)) => error.usage.clone(),
            _ => Vec::new(),
        };
        Ok(Played { request, events, usage, duration: begun.elapsed() })
    }

    async fn read(
        &self,
        url: Url,
        recording: &Recording,
        request: &RunAgentInput,
        begun: Instant,
    ) -> Result<Vec<RecordedEvent>, String> {
        let sending = self.target.client.post(url).headers(headers(recording)).json(request);
        let response = self
            .target
            .authorized(sending)
            .send()
            .await
            .map_err(|error| format!("the agent cannot be reached: {error:?}"))?;
        let response = require_success(response).await.map_err(|error| error.to_string())?;
        let limits = StreamLimits { max_event_bytes: MAX_EVENT_BYTES, idle_timeout: self.timeout };
        let mut stream = events(response, limits, &ANONYMOUS.into());
        let (mut all, mut guard) = (Vec::new(), Guard::new(request));
        while let Some(event) = stream.next().await {
            let event = event.map_err(|error| {
                format!("the response broke after {} events: {error}", all.len())
            })?;
            let event: Event = serde_json::from_str(&event.data).map_err(|error| {
                format!("not an event of AG-UI: {error}: {}", excerpt(&event.data, LINE_CHARS))
            })?;
            let ms = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
            let is_terminal = matches!(event, Event::RunFinished(_) | Event::RunError(_));
            if is_terminal || matches!(event, Event::RunStarted(_)) {
                all.push(RecordedEvent { ms, event });
            } else {
                // Chunks become the events that a recording has in their place.
                let mut admitted = Vec::new();
                guard
                    .admit(event, &mut admitted)
                    .map_err(|violation| format!("the stream is not legal: {violation}"))?;
                all.extend(admitted.into_iter().map(|event| RecordedEvent { ms, event }));
            }
            if is_terminal {
                return Ok(all);
            }
        }
        Err(format!("the response ended without the end of the run, after {} events", all.len()))
    }
}

fn headers(recording: &Recording) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, values) in &recording.head.headers {
        for value in values {
            // Both were headers of a request.
            if let (Ok(name), Ok(value)) =
                (HeaderName::try_from(name), HeaderValue::try_from(value))
            {
                headers.append(name, value);
            }
        }
    }
    // A server takes a client that accepts this type alone for one from before AG-UI 1.0.
    headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream, application/json"));
    headers
}
