//! [`Run::alone`]: a run without a server, built as a server builds it.

use std::sync::Arc;

use agui_agent::{Agent, RunContext, surfaces};
use agui_protocol::RunAgentInput;

use super::{
    clock::RunLimits,
    driver::{Run, RunSource},
};

impl Run {
    /// Creates a run without a server and without limits, for tests of an agent.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use agui_agent::{Agent, RunContext, emit::TextMessage, events};
    /// use agui_protocol::{Message, RunAgentInput};
    /// use agui_run::Run;
    /// use futures::StreamExt as _;
    ///
    /// let greet = |_: RunAgentInput, _: RunContext| events(TextMessage::whole("Hello!"));
    /// let input = RunAgentInput::new("thread", "run", vec![Message::user("m1", "Hello")]);
    /// let events: Vec<_> = tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(Run::alone(Arc::new(greet), input).into_events().collect());
    /// assert_eq!(events.len(), 5);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn alone(agent: Arc<dyn Agent>, input: RunAgentInput) -> Self {
        let cx = RunContext::new(input.thread_id.clone(), input.run_id.clone(), "agent");
        Self::new(
            RunSource::Agent(agent),
            input,
            cx,
            RunLimits::default(),
            Some(surfaces::begin),
            Arc::default(),
            None,
        )
    }
}

#[cfg(test)]
mod tests {
    use futures::StreamExt as _;
    use serde_json::json;

    use super::*;
    use agui_agent::{A2ui, A2uiAgent, Emitter, agent_fn};
    use agui_protocol::Event;

    #[tokio::test]
    async fn a_run_without_a_server_shows_the_surfaces_of_its_agent() {
        let agent = agent_fn(|_: RunAgentInput, out: Emitter| async move {
            let components = json!([{ "id": "root", "component": "Text", "text": "Hi" }]);
            out.surface("s", components, json!({})).await.map(drop)
        });
        let agent = Arc::new(A2uiAgent::new(agent, A2ui::enabled(true)));
        let events: Vec<_> =
            Run::alone(agent, RunAgentInput::new("t", "r", vec![])).into_events().collect().await;
        assert!(
            events.iter().any(|event| matches!(event, Event::ActivitySnapshot(_))),
            "{events:?}"
        );
    }
}
