//! [`agent_fn`] and [`IntoAgent`]: an async function as an agent.

use std::{
    error::Error as StdError,
    fmt,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use futures::{FutureExt as _, future::BoxFuture, stream::Stream};

use super::{Agent, AgentError, Emitter, EventStream, RunContext, event_stream};
use agui_protocol::{Event, RunAgentInput};

/// Makes an agent of an async function, for closures and for values that must be an [`Agent`].
/// `Server::agent` takes an async function as it is. The run succeeds on `Ok`, and fails as
/// [`AgentError`] describes.
///
/// The function
///
/// 1. takes the run's input and an [`Emitter`],
/// 2. sends its events through the emitter, and awaits each one,
/// 3. returns `Result<(), AgentError>` in a future that is `Send`,
/// 4. can be called again during earlier runs, so it shares state by `Arc`.
///
/// The future has no task of its own: it waits while the client does not read, and is dropped when the client leaves,
/// the run is cancelled or its time is over.
///
/// ```
/// use agui_agent::{Agent, AgentError, Emitter, agent_fn};
/// use agui_protocol::RunAgentInput;
///
/// async fn hello(input: RunAgentInput, out: Emitter) -> Result<(), AgentError> {
///     let said = input.last_user_text().unwrap_or_default();
///     out.text(format!("You said: {said}")).await
/// }
///
/// let hello: std::sync::Arc<dyn Agent> = std::sync::Arc::new(agent_fn(hello));
/// ```
///
/// # Shared state
///
/// A closure clones what its runs share:
///
/// ```
/// use std::sync::{Arc, atomic::{AtomicU64, Ordering}};
/// use agui_agent::{Agent, AgentError, Emitter, agent_fn};
/// use agui_protocol::RunAgentInput;
///
/// let runs = Arc::new(AtomicU64::new(0));
/// let counter = agent_fn(move |_: RunAgentInput, out: Emitter| {
///     let runs = runs.clone();
///     async move { out.text(format!("This is run {}.", runs.fetch_add(1, Ordering::Relaxed) + 1)).await }
/// });
/// ```
pub fn agent_fn<F, R>(run: F) -> AgentFn
where
    F: Fn(RunAgentInput, Emitter) -> R + Send + Sync + 'static,
    R: Future<Output = Result<(), AgentError>> + Send + 'static,
{
    AgentFn { run: Arc::new(move |input, out| run(input, out).boxed()), can_continue: false }
}

type AgentFunction =
    dyn Fn(RunAgentInput, Emitter) -> BoxFuture<'static, Result<(), AgentError>> + Send + Sync;

/// An agent made of an async function. Its type does not name the function, so that the compiler reports a wrong function
/// once.
#[derive(Clone)]
pub struct AgentFn {
    run: Arc<AgentFunction>,
    can_continue: bool,
}

impl AgentFn {
    /// Calls the function again, from its start, when the server of a detached run was stopped or
    /// lost. The function can mark its progress, and continue there. Events after its last mark are
    /// retracted.
    ///
    /// ```
    /// use agui_agent::{AgentError, Emitter, agent_fn};
    /// use agui_protocol::RunAgentInput;
    ///
    /// async fn write_book(_: RunAgentInput, out: Emitter) -> Result<(), AgentError> {
    ///     let written = out.context().continuation().map_or(0, |earlier| earlier.marks.len());
    ///     for chapter in written + 1..=3 {
    ///         out.text(format!("Chapter {chapter}")).await?;
    ///         out.context().mark(chapter);
    ///     }
    ///     Ok(())
    /// }
    ///
    /// let author = agent_fn(write_book).can_continue();
    /// ```
    #[must_use]
    pub fn can_continue(mut self) -> Self {
        self.can_continue = true;
        self
    }
}

impl Agent for AgentFn {
    fn run(&self, input: RunAgentInput, cx: RunContext) -> EventStream {
        let out = Emitter::new(cx);
        event_stream(Emitted { run: Some((self.run)(input, out.clone())), out, failure: None })
    }

    fn can_continue(&self) -> bool {
        self.can_continue
    }
}

/// A value that can be an agent: an [`Agent`], or an async function as [`agent_fn`] describes it,
/// with an error of any type.
///
/// `K` distinguishes the two; the compiler infers it.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an agent",
    label = "not an agent",
    note = "an agent is an `async fn(RunAgentInput, Emitter) -> AgentResult` whose future is `Send`, or implements `Agent`",
    note = "wrap a function in `agent_fn` to see which part is wrong, and a closure whose arguments have no types"
)]
pub trait IntoAgent<K> {
    /// Returns the agent.
    fn into_agent(self) -> Arc<dyn Agent>;
}

impl<A: Agent> IntoAgent<()> for A {
    fn into_agent(self) -> Arc<dyn Agent> {
        Arc::new(self)
    }
}

impl<F, R, E> IntoAgent<(R, E)> for F
where
    F: Fn(RunAgentInput, Emitter) -> R + Send + Sync + 'static,
    R: Future<Output = Result<(), E>> + Send + 'static,
    E: Into<Box<dyn StdError + Send + Sync>>,
{
    fn into_agent(self) -> Arc<dyn Agent> {
        Arc::new(agent_fn(move |input, out| {
            let run = self(input, out);
            async { run.await.map_err(|error| AgentError::from(error.into())) }
        }))
    }
}

impl fmt::Debug for AgentFn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AgentFn")
    }
}

struct Emitted {
    /// `None` once the future has returned.
    run: Option<BoxFuture<'static, Result<(), AgentError>>>,
    out: Emitter,
    /// The error that the future returned. It is sent after the remaining events.
    failure: Option<AgentError>,
}

impl Stream for Emitted {
    type Item = Result<Event, AgentError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            if let Some(event) = self.out.0.queue.take(cx) {
                return Poll::Ready(Some(Ok(event)));
            }
            let Some(run) = &mut self.run else {
                self.out.0.queue.close();
                return Poll::Ready(self.failure.take().map(Err));
            };
            match run.poll_unpin(cx) {
                Poll::Ready(result) => {
                    // Dropping the future closes what it left open.
                    self.run = None;
                    self.failure = result.err();
                }
                Poll::Pending if self.out.0.queue.wake_at_next(cx) => return Poll::Pending,
                Poll::Pending => {}
            }
        }
    }
}

impl Drop for Emitted {
    fn drop(&mut self) {
        self.out.0.queue.close();
    }
}

#[cfg(test)]
mod tests {
    use std::{sync::Arc, time::Duration};

    use futures::StreamExt as _;

    use super::*;
    use agui_protocol::EventType;

    fn start<R>(agent: impl Fn(RunAgentInput, Emitter) -> R + Send + Sync + 'static) -> EventStream
    where
        R: Future<Output = Result<(), AgentError>> + Send + 'static,
    {
        run(&agent_fn(agent))
    }

    fn run(agent: &impl Agent) -> EventStream {
        agent.run(RunAgentInput::new("t", "r", vec![]), RunContext::new("t", "r", "agent"))
    }

    async fn outcome(stream: EventStream) -> (Vec<&'static str>, Option<String>) {
        let (mut types, mut code) = (Vec::new(), None);
        for item in stream.collect::<Vec<_>>().await {
            match item {
                Ok(event) => types.push(EventType::as_str(event.event_type())),
                Err(error) => code = Some(error.code().to_owned()),
            }
        }
        (types, code)
    }

    #[tokio::test]
    async fn an_emit_completes_when_its_events_were_taken() {
        let sent = Arc::new(std::sync::atomic::AtomicUsize::new(0));
        let count = sent.clone();
        let mut stream = start(move |_, out| {
            let count = count.clone();
            async move {
                for _ in 0..3 {
                    out.custom("n", 1).await?;
                    count.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
                }
                Ok(())
            }
        });
        for taken in 0..3 {
            assert!(stream.next().await.is_some());
            assert_eq!(sent.load(std::sync::atomic::Ordering::SeqCst), taken);
        }
        assert!(stream.next().await.is_none());
    }

    #[tokio::test]
    async fn what_the_agent_leaves_open_is_closed_when_dropped_also_before_a_failure() {
        let (types, code) = outcome(start(|_, out| async move {
            let mut message = out.text_message().await?;
            message.push("a").await?;
            message.push("").await?;
            let step =
                out.step("s", async { Err::<(), _>(std::io::Error::other("secret").into()) }).await;
            assert_eq!(step.unwrap_err().code(), "agent_error");
            Err(AgentError::new("sold_out", "Nothing left"))
        }))
        .await;
        let text = ["TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT"];
        assert_eq!(
            types,
            [&text[..], &["STEP_STARTED", "STEP_FINISHED", "TEXT_MESSAGE_END"]].concat()
        );
        assert_eq!(code.as_deref(), Some("sold_out"));
    }

    #[tokio::test]
    async fn a_function_with_errors_of_its_own_is_an_agent() {
        async fn count(out: &Emitter) -> Result<u32, Box<dyn StdError>> {
            out.text("counting").await?;
            Ok("twelve".parse()?)
        }
        async fn clerk(_: RunAgentInput, out: Emitter) -> crate::AgentResult {
            out.patch_state(serde_json::json!([{ "op": "add", "path": "/stock", "value": 2 }]))
                .await?;
            out.call("read_stock", ()).await?.result(serde_json::json!({ "stock": 2 })).await?;
            if "12".parse::<u32>()? == 12 {
                Err(AgentError::new("sold_out", "Nothing left"))?;
            }
            Ok(())
        }
        let (types, code) = outcome(run(&clerk.into_agent())).await;
        assert_eq!(
            (types[0], types[4], code.as_deref()),
            ("STATE_DELTA", "TOOL_CALL_RESULT", Some("sold_out"))
        );
        let counting = |_: RunAgentInput, out: Emitter| async move {
            count(&out).await.map(drop).map_err(|error| error.to_string())
        };
        assert_eq!(outcome(run(&counting.into_agent())).await.1.as_deref(), Some("agent_error"));
    }

    #[tokio::test]
    async fn clones_send_from_joined_futures_and_from_tasks() {
        let (types, code) = outcome(start(|_, out| async move {
            let other = out.clone();
            let task = tokio::spawn(async move {
                tokio::task::yield_now().await;
                other.text("from a task").await
            });
            let (left, right) = tokio::join!(out.text("left"), out.text("right"));
            left.and(right)?;
            task.await.map_err(AgentError::internal)??;
            Ok(())
        }))
        .await;
        assert_eq!(
            types,
            ["TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_END"].repeat(3)
        );
        assert_eq!(code, None);
    }

    #[tokio::test]
    async fn an_agent_that_does_not_await_its_calls_is_refused_before_it_fills_the_memory() {
        let (types, code) = outcome(start(|_, out| async move {
            let endless =
                std::iter::repeat_with(|| agui_protocol::event::StepStarted::new("s").into());
            assert_eq!(out.events(endless).await.unwrap_err().code(), "too_many_events");
            let calls: Vec<_> = (0..70_000).map(|_| out.custom("n", 1)).collect();
            futures::future::try_join_all(calls).await.map(drop)
        }))
        .await;
        assert_eq!((types.len() <= 65_536, code.as_deref()), (true, Some("too_many_events")));
    }

    #[tokio::test]
    async fn dropping_the_stream_drops_the_future_and_fails_what_tasks_send() {
        let (sender, receiver) = tokio::sync::oneshot::channel();
        let sender = Arc::new(std::sync::Mutex::new(Some(sender)));
        let mut stream = start(move |_, out| {
            let sender = sender.lock().unwrap().take();
            async move {
                let other = out.clone();
                tokio::spawn(async move {
                    let failed = loop {
                        if let Err(error) = other.custom("n", 1).await {
                            break error.code().to_owned();
                        }
                    };
                    sender.map(|sender| sender.send(failed))
                });
                std::future::pending().await
            }
        });
        assert!(stream.next().await.is_some());
        drop(stream);
        let failed =
            tokio::time::timeout(Duration::from_secs(10), receiver).await.unwrap().unwrap();
        assert_eq!(failed, "run_ended");
    }
}
