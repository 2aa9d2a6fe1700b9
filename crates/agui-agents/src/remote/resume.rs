//! The stream of one run of an endpoint. If the endpoint keeps runs whose client leaves, a broken
//! stream is resumed, also by another server that continues the run.

use std::{ops::Range, sync::Arc, time::Duration};

use futures::{StreamExt as _, stream};
use serde_json::json;
use tokio::time::sleep;
use tracing::Instrument as _;

use super::request::Endpoint;
use agui_agent::{AgentError, RunContext};
use agui_base::{
    RunErrorCode,
    upstream::events::{ServerEvent, ServerEvents, StreamError},
};
use agui_protocol::{Event, RunAgentInput};

/// Requests for the rest of a broken stream before an event comes.
const MAX_ATTEMPTS: u32 = 30;
/// The time between two of these requests.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);
/// The member of a mark: the number of the endpoint's last event.
const AFTER: &str = "after";

pub(super) struct RunStream {
    endpoint: Arc<Endpoint>,
    cx: RunContext,
    /// The run's input, with the endpoint's ids.
    input: RunAgentInput,
    frames: ServerEvents,
    /// The number of the last event; `None` for an endpoint that does not resume.
    last: Option<u64>,
    /// The number of open messages, calls and steps.
    open: usize,
    /// True if the endpoint continues the run when this server stops reading it.
    is_kept: bool,
}

impl RunStream {
    /// Requests the run. For a continued run, requests the events after its last mark.
    pub(super) async fn open(
        endpoint: Arc<Endpoint>,
        mut input: RunAgentInput,
        cx: RunContext,
    ) -> Result<Self, AgentError> {
        cx.replace_ids(&mut input, endpoint.thread_ids).await.map_err(|error| {
            AgentError::new(RunErrorCode::StoreUnavailable, "the remote agent cannot be asked now")
                .caused_by(error)
        })?;
        let is_kept = endpoint.is_resumable && cx.is_kept();
        if is_kept {
            let props = input.forwarded_props.get_or_insert_with(|| json!({}));
            if let Some(props) = props.as_object_mut() {
                props.insert("onDisconnect".to_owned(), "continue".into());
            }
        }
        let last = cx
            .continuation()
            .map(|run| run.marks.iter().rev().find_map(|mark| mark[AFTER].as_u64()).unwrap_or(0));
        let mut run =
            Self { endpoint, cx, input, frames: stream::empty().boxed(), last, open: 0, is_kept };
        run.frames = match run.rest(&mut (0..MAX_ATTEMPTS)).await {
            Some(rest) => rest,
            None => run.endpoint.send(run.input.clone(), &run.cx).await?,
        };
        Ok(run)
    }

    pub(super) async fn next(&mut self) -> Option<Result<ServerEvent, StreamError>> {
        let mut attempts = 0..MAX_ATTEMPTS;
        loop {
            let broken = match self.frames.next().await {
                Some(Ok(frame)) if !frame.is_cut_off => {
                    if self.is_kept {
                        self.last =
                            frame.id.as_deref().and_then(|id| id.parse().ok()).or(self.last);
                    }
                    return Some(Ok(frame));
                }
                None => return None,
                Some(broken) => broken,
            };
            match self.rest(&mut attempts).await {
                Some(rest) => self.frames = rest,
                None => return Some(broken),
            }
        }
    }

    /// Requests the events after the last one. Returns `None` if the stream cannot be resumed, or
    /// if the endpoint does not have the run.
    async fn rest(&mut self, attempts: &mut Range<u32>) -> Option<ServerEvents> {
        let last = self.last?;
        for attempt in attempts {
            match self.endpoint.resume(self.input.clone(), &self.cx, last).await {
                Ok(rest) => return rest,
                Err(error) => tracing::debug!(
                    ?error,
                    attempt,
                    "a run of a remote agent cannot be resumed yet"
                ),
            }
            sleep(RETRY_INTERVAL).await;
        }
        None
    }

    /// Returns the run's input, with the endpoint's ids.
    pub(super) fn input(&self) -> &RunAgentInput {
        &self.input
    }

    /// Counts the open items. Returns whether the event closes the last one.
    pub(super) fn passes(&mut self, event: &Event) -> bool {
        match event {
            Event::TextMessageStart(_)
            | Event::ToolCallStart(_)
            | Event::ReasoningStart(_)
            | Event::ReasoningMessageStart(_)
            | Event::StepStarted(_)
            | Event::SubagentStarted(_) => {
                self.open += 1;
                false
            }
            Event::TextMessageEnd(_)
            | Event::ToolCallEnd(_)
            | Event::ReasoningEnd(_)
            | Event::ReasoningMessageEnd(_)
            | Event::StepFinished(_)
            | Event::SubagentFinished(_)
            | Event::SubagentError(_) => {
                self.open = self.open.saturating_sub(1);
                self.open == 0
            }
            _ => false,
        }
    }

    /// Marks a place where nothing is open: another server can continue there.
    pub(super) fn mark(&self) {
        if let Some(last) = self.last {
            self.cx.mark(json!({ AFTER: last }));
        }
    }

    /// Returns the rest of the stream, after the end of the run.
    pub(super) fn into_rest(mut self) -> ServerEvents {
        self.is_kept = false;
        std::mem::replace(&mut self.frames, stream::empty().boxed())
    }
}

impl Drop for RunStream {
    /// Cancels the run: an endpoint that keeps runs does not notice that this server stopped it.
    fn drop(&mut self) {
        if self.is_kept && !self.cx.is_left_to_another_server() {
            let input = std::mem::take(&mut self.input);
            let (endpoint, cx) = (self.endpoint.clone(), self.cx.clone());
            tokio::spawn(async move { endpoint.cancel(&input, &cx).await }.in_current_span());
        }
    }
}
