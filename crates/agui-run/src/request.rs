//! The argument and the result of [`Runs::start`](crate::runs::Runs::start).

use futures::future::BoxFuture;

use super::{
    drive::driver::Run,
    limits::{run_permit::RunPermit, start_error::StartError},
    log::Follower,
    options::OnDisconnect,
    persist::stored_run::StoredRun,
    restate::RestatedRun,
};
use agui_agent::{
    Principal,
    host::{AgentEntry, Forwarded},
};
use agui_protocol::RunAgentInput;

/// A request to start a run.
pub struct RunRequest {
    /// The right to start a run, from [`Runs::reserve`](crate::runs::Runs::reserve).
    pub permit: RunPermit,
    /// The agent to run.
    pub agent: AgentEntry,
    /// The client's input. An empty message id counts as a missing one.
    pub input: RunAgentInput,
    /// The principal of the request; `None` on a server without authentication.
    pub principal: Option<Principal>,
    /// The headers of the request that agents may see.
    pub forwarded: Forwarded,
    /// The client's choice for when it leaves; `None` leaves it to the agent.
    pub on_disconnect: Option<OnDisconnect>,
    /// The endpoint's default, if neither the client nor the agent has a choice; `None` uses the server's.
    pub default_on_disconnect: Option<OnDisconnect>,
    /// True if the client wants another answer to the same messages.
    pub regenerates: bool,
    /// True for a reply to an interrupt, even one that resolves nothing. If no interrupt is open
    /// any more, the agent is not called.
    pub is_reply: bool,
}

/// A run that was started.
pub enum StartedRun {
    /// A run that its response polls and that is not stored: it runs beside its thread, was
    /// cancelled before its turn, or has only replies that were given before.
    Unstored(Box<Run>),
    /// A request that has come before: the stored end of its run.
    Restated(RestatedRun),
    /// Another server has the same request in a response. Resolves when that has ended, and fails if this one can be sent again.
    Awaited(BoxFuture<'static, Result<StartedRun, StartError>>),
    /// A run that its response polls, and whose end is stored.
    Stored(Box<StoredRun>),
    /// A run that a task polls; the response follows its log.
    Detached {
        /// Follows the log from its first event, also before a queued run begins.
        follower: Follower,
    },
}

impl RunRequest {
    /// Creates a request without a principal and headers, whose client has no wishes.
    pub fn new(permit: RunPermit, agent: AgentEntry, input: RunAgentInput) -> Self {
        let forwarded = Forwarded::new([]);
        Self {
            permit,
            agent,
            input,
            principal: None,
            forwarded,
            on_disconnect: None,
            default_on_disconnect: None,
            regenerates: false,
            is_reply: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{
        future::poll_fn,
        sync::{
            Arc,
            atomic::{AtomicUsize, Ordering},
        },
    };

    use super::*;
    use crate::{
        drive::progress::{Drive as _, Progress},
        runs::Runs,
    };
    use agui_agent::{RunContext, emit::TextMessage, events};
    use agui_protocol::{Event, Message, RunId};

    /// Two replies to one interrupt can come at the same time; the second one decides nothing.
    #[tokio::test]
    async fn a_reply_without_an_open_interrupt_does_not_call_the_agent() {
        let calls = Arc::new(AtomicUsize::new(0));
        let counter = calls.clone();
        let agent = move |_: RunAgentInput, _: RunContext| {
            counter.fetch_add(1, Ordering::Relaxed);
            let message = TextMessage::with_id("m");
            events([message.start(), message.delta("Hello!"), message.end()])
        };
        let runs = Runs::builder().agent("a", Arc::new(agent)).build();
        let list = vec![Message::user("u", "Hi")];
        for (messages, is_reply) in [(list.clone(), false), (list, true), (vec![], true)] {
            let input = RunAgentInput::new("t", RunId::random(), messages);
            let request =
                RunRequest::new(runs.reserve(None).unwrap(), runs.agent(None).unwrap(), input);
            let mut sink: Vec<Event> = Vec::new();
            match runs.start(RunRequest { is_reply, ..request }).await.unwrap() {
                StartedRun::Stored(mut run) if !is_reply => {
                    while poll_fn(|cx| run.poll_progress(cx, &mut sink)).await != Progress::Ended {}
                }
                StartedRun::Unstored(mut run) if is_reply => {
                    while poll_fn(|cx| run.poll_progress(cx, &mut sink)).await != Progress::Ended {}
                }
                _ => panic!("only a run that calls the agent is stored"),
            }
            assert!(matches!(sink.last(), Some(Event::RunFinished(_))), "{sink:?}");
        }
        assert_eq!(calls.load(Ordering::Relaxed), 1);
    }
}
