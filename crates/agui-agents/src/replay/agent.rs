//! The agent: plays the events of a recording.

use std::{future::pending, path::Path, time::Duration};

use serde_json::json;
use tokio::time::{Instant, sleep, sleep_until};

use super::{
    super::{CUT_SOURCE, identity},
    conversation::Conversations,
    options::{ReplayFault, ReplayOptions},
};
use agui_agent::{Agent, AgentEffects, AgentError, EventStream, RunContext, event_stream};
use agui_base::{RunErrorCode, deadline::deadline};
use agui_observe::recording::{RecordingError, read_folder};
use agui_protocol::{
    AgentCapabilities, Event, RunAgentInput,
    event::{Raw, RunFinished, RunOutcome},
};

/// The least time between two events of a slow run.
const SLOW_INTERVAL: Duration = Duration::from_millis(500);
/// The time between the last event and the cut of the connection, in which the event is sent.
const CUT_DELAY: Duration = Duration::from_millis(100);

/// An agent that plays the recordings of a folder.
pub struct Replay {
    conversations: Conversations,
    options: ReplayOptions,
}

/// The reason why a folder cannot be replayed.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// A recording cannot be read.
    #[error(transparent)]
    Recording(#[from] RecordingError),
    /// No recording has all events of a run.
    #[error("no recording of the folder has all events of its run")]
    NothingWhole,
}

impl Replay {
    /// Reads the recordings of a folder. Recordings without the end of their run are left out.
    ///
    /// # Errors
    /// A recording cannot be read, or none has all events of its run.
    pub fn open(folder: &Path, options: ReplayOptions) -> Result<Self, ReplayError> {
        let mut recordings = read_folder(folder)?;
        recordings.retain(|recording| {
            let is_whole = recording.is_whole();
            if !is_whole {
                tracing::warn!(
                    name = recording.name,
                    "left out a recording without the end of its run"
                );
            }
            is_whole
        });
        if recordings.is_empty() {
            return Err(ReplayError::NothingWhole);
        }
        Ok(Self { conversations: Conversations::new(recordings), options })
    }
}

impl Agent for Replay {
    fn run(&self, input: RunAgentInput, cx: RunContext) -> EventStream {
        let (found, options) = (self.conversations.find(&input), self.options.for_request(&input));
        event_stream(async_stream::try_stream! {
            let options = options?;
            let recording = found.ok_or_else(no_recording)?;
            tracing::debug!(name = recording.name, "playing a recording");
            let events: Vec<_> =
                recording.events.iter().filter(|event| !matches!(event.event, Event::RunStarted(_))).collect();
            let fault_at = options.fault_after.unwrap_or(events.len() / 2).min(events.len().saturating_sub(1));
            let begun = Instant::now();
            for (position, recorded) in events.iter().enumerate() {
                let fault = options.fault.filter(|_| position >= fault_at);
                match fault {
                    None => {}
                    Some(ReplayFault::Slow) => sleep(SLOW_INTERVAL).await,
                    Some(ReplayFault::Error) => {
                        Err(AgentError::new(RunErrorCode::ReplayFault, "the replay fails here, as it was asked to"))?;
                    }
                    Some(ReplayFault::Stall) => pending().await,
                    Some(ReplayFault::Cut) => {
                        sleep(CUT_DELAY).await;
                        yield cut();
                        yield RunFinished::new(cx.thread_id().clone(), cx.run_id().clone(), RunOutcome::Cancelled).into();
                        return;
                    }
                }
                let at = deadline(begun, at_pace(recorded.ms, options.pace));
                if at > Instant::now() {
                    sleep_until(at).await;
                }
                yield recorded.event.clone();
            }
        })
    }

    fn capabilities(&self) -> AgentCapabilities {
        identity("replay", self.options.description.as_deref().unwrap_or("Plays recorded runs"))
    }

    /// A continued run plays its recording from the start.
    fn can_continue(&self) -> bool {
        true
    }

    fn effects(&self) -> AgentEffects {
        AgentEffects::None
    }
}

/// Returns the event at which a response breaks off. A detached run has no response of its own, and
/// continues to its end.
fn cut() -> Event {
    let mut cut = Raw::new(json!({ "fault": "cut" }));
    cut.source = Some(CUT_SOURCE.to_owned());
    cut.into()
}

fn no_recording() -> AgentError {
    AgentError::new(RunErrorCode::NoRecording, "no recording has this conversation")
}

/// Returns a recorded time at another pace. Both factors come from outside, so the product may
/// exceed the longest duration.
fn at_pace(millis: u64, pace: f64) -> Duration {
    let seconds = (millis as f64 / 1000.0 * pace).max(0.0);
    Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)
}

#[cfg(test)]
mod tests {
    use futures::StreamExt as _;

    use super::*;
    use crate::cuts_connection;
    use agui_agent::emit::TextMessage;
    use agui_observe::recording::{RecordingHead, line};
    use agui_protocol::Message;

    #[tokio::test(start_paused = true)]
    async fn a_cut_breaks_a_response_off_and_cancels_a_detached_run() {
        let finished = RunFinished::new("t".into(), "r".into(), RunOutcome::success());
        let events = TextMessage::whole("Hello!").into_iter().chain([finished.into()]);
        let input = RunAgentInput::new("t", "r", vec![Message::user("u", "Hi")]);
        let head = RecordingHead::new("a".to_owned(), 0, input.clone()).to_line();
        let folder = tempfile::tempdir().unwrap();
        let recording =
            events.fold(head, |lines, event: Event| [lines, line(0, "event", &event)].concat());
        std::fs::write(folder.path().join("a.jsonl"), recording).unwrap();
        let options = ReplayOptions {
            fault: Some(ReplayFault::Cut),
            fault_after: Some(2),
            ..Default::default()
        };
        let replay = Replay::open(folder.path(), options).unwrap();
        let played: Vec<_> =
            replay.run(input, RunContext::new("t", "r", "a")).map(Result::unwrap).collect().await;
        assert!(
            matches!(played[..2], [Event::TextMessageStart(_), Event::TextMessageContent(_)]),
            "{played:?}"
        );
        assert_eq!(
            played.iter().map(cuts_connection).collect::<Vec<_>>(),
            [false, false, true, false]
        );
        let Event::RunFinished(end) = &played[3] else { panic!("{played:?}") };
        assert_eq!(end.outcome, Some(RunOutcome::Cancelled));
    }

    #[test]
    fn no_recorded_time_and_no_pace_is_too_large() {
        assert_eq!(at_pace(1500, 2.0), Duration::from_secs(3));
        assert_eq!(at_pace(u64::MAX, 1000.0), Duration::MAX);
        assert_eq!(at_pace(1500, f64::INFINITY), Duration::MAX);
        assert_eq!([at_pace(1500, -1.0), at_pace(1500, f64::NAN)], [Duration::ZERO; 2]);
    }
}
