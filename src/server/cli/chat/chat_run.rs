//! One run: sends the request, shows the events as they come, and cancels on Ctrl-C.

use std::{error::Error, io, sync::Arc, time::Duration};

use futures::StreamExt as _;
use reqwest::Url;
use tokio::time::{Instant, sleep_until, timeout};

use super::{
    console::{Console, Style},
    conversation::ChatConversation,
    view::View,
};
use crate::server::cli::target::RunTarget;
use agui_agent::{Agent as _, RunContext, ThreadIds};
use agui_agents::{Remote, RemoteOptions};
use agui_protocol::{
    Event, Interrupt, RunAgentInput, TokenUsage,
    event::{RunFinished, RunOutcome},
};
use agui_run::{Guard, Transcript};

/// The time limit of silence. Models of one's own machine may think for long.
const IDLE_TIMEOUT: Duration = Duration::from_secs(600);
const MAX_EVENT_BYTES: usize = 64 * 1024 * 1024;
/// The time limit of a cancelled run for its end.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(3);

/// The end of a run.
#[derive(Debug, PartialEq)]
pub(super) enum ChatRunEnd {
    Success,
    Interrupted(Vec<Interrupt>),
    Cancelled,
    Failed,
}

/// The agent that answers.
pub(super) struct ChatEndpoint<'t> {
    pub(super) target: &'t RunTarget,
    agent: Remote,
    name: Arc<str>,
}

impl<'t> ChatEndpoint<'t> {
    pub(super) fn new(
        url: Url,
        name: Option<&str>,
        target: &'t RunTarget,
    ) -> Result<Self, Box<dyn Error>> {
        let mut options = RemoteOptions::new(url);
        (options.idle_timeout, options.max_event_bytes) = (IDLE_TIMEOUT, MAX_EVENT_BYTES);
        // The chat is the client, whose ids the server's threads have.
        options.thread_ids = ThreadIds::Client;
        if let Some(authorization) = &target.authorization {
            let value = authorization
                .to_str()
                .map_err(|_| "--key-env: the key has characters that are not ASCII")?;
            options.headers.push(("Authorization".to_owned(), value.into()));
        }
        Ok(Self { target, agent: Remote::new(options)?, name: name.unwrap_or("agent").into() })
    }

    /// Runs an input to its end. The conversation gets the messages and the state, also of a run that does not succeed.
    ///
    /// # Errors
    /// Standard output cannot be written to.
    pub(super) async fn run(
        &self,
        input: RunAgentInput,
        conversation: &mut ChatConversation,
        console: &mut Console,
    ) -> io::Result<ChatRunEnd> {
        let (mut transcript, mut guard) = (Transcript::from_input(&input), Guard::new(&input));
        let (begun, mut view) = (Instant::now(), View::default());
        let run_id = input.run_id.clone();
        let cancel_route = ["threads", &conversation.thread_id, "runs", &run_id, "cancel"];
        let cx = RunContext::new(input.thread_id.clone(), run_id.clone(), &self.name);
        let mut events = self.agent.run(input, cx);
        // Set after Ctrl-C: the server is asked to cancel the run, whose end is then awaited for some time.
        let mut deadline = None;
        let end = loop {
            let next = tokio::select! {
                next = events.next() => next,
                () = console.interrupted() => {
                    // The second Ctrl-C does not wait for the end of the run.
                    if deadline.is_some() {
                        break ChatRunEnd::Cancelled;
                    }
                    deadline = Some(Instant::now() + CANCEL_TIMEOUT);
                    let is_asked = tokio::select! {
                        asked = timeout(CANCEL_TIMEOUT, self.target.post(&cancel_route)) => matches!(asked, Ok(Ok(()))),
                        () = console.interrupted() => false,
                    };
                    // Other servers notice the closed connection.
                    if is_asked { continue } else { break ChatRunEnd::Cancelled }
                }
                () = sleep_until(deadline.unwrap_or(begun)), if deadline.is_some() => break ChatRunEnd::Cancelled,
            };
            match next {
                None => break failed("the stream ended before the run", console),
                Some(Err(error)) => break failed(&format!("{error:?}"), console),
                Some(Ok(Event::RunFinished(finished))) => {
                    view.finish(console)?;
                    show_usage(&finished, begun, console);
                    break finished_end(*finished);
                }
                Some(Ok(event)) => {
                    // Chunks become the events that the view and the transcript know.
                    let mut admitted = Vec::new();
                    if let Err(violation) = guard.admit(event, &mut admitted) {
                        break failed(&format!("the stream is not legal: {violation}"), console);
                    }
                    for event in &admitted {
                        view.show(event, &transcript, console)?;
                        transcript.apply(event);
                    }
                }
            }
        };
        view.finish(console)?;
        if end == ChatRunEnd::Cancelled {
            console.note(Style::Failure, "The run was cancelled.");
        }
        conversation.messages = transcript.messages();
        conversation.state = Some(transcript.state().clone());
        Ok(end)
    }
}

fn failed(problem: &str, console: &mut Console) -> ChatRunEnd {
    console.note(Style::Failure, &format!("The run failed: {problem}"));
    ChatRunEnd::Failed
}

fn finished_end(finished: RunFinished) -> ChatRunEnd {
    match finished.outcome {
        None | Some(RunOutcome::Success { .. }) => ChatRunEnd::Success,
        Some(RunOutcome::Interrupt { interrupts }) if interrupts.is_empty() => ChatRunEnd::Success,
        Some(RunOutcome::Interrupt { interrupts }) => ChatRunEnd::Interrupted(interrupts),
        Some(RunOutcome::Cancelled) => ChatRunEnd::Cancelled,
    }
}

fn show_usage(finished: &RunFinished, begun: Instant, console: &mut Console) {
    let mut total = TokenUsage::default();
    finished.usage.iter().for_each(|usage| total.add(usage));
    let text =
        |tokens: Option<u64>| tokens.map_or_else(|| "?".to_owned(), |tokens| tokens.to_string());
    let usage = match (total.input_tokens, total.output_tokens) {
        (None, None) => String::new(),
        (input, output) => format!(", {} tokens in, {} out", text(input), text(output)),
    };
    console.note(Style::Dim, &format!("{:.1} s{usage}", begun.elapsed().as_secs_f64()));
    if let Some(RunOutcome::Success { pending_tool_call_ids }) = &finished.outcome
        && !pending_tool_call_ids.is_empty()
    {
        let note = format!(
            "{} calls have no result: this client has no tools",
            pending_tool_call_ids.len()
        );
        console.note(Style::Dim, &note);
    }
}
