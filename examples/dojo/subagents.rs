//! `/subagents`: the agent gives tasks to two subagents at the same time, and sums up their results.
//!
//! Each subagent is announced, and all its events carry the id of its invocation, so that a page can tell the subagents
//! apart although their messages interleave. If the request says "fail", the second subagent fails; the run continues.
//!
//! Clients older than `@ag-ui/client` 0.0.59 do not know the events of subagents, and fail.

use agui_server::{
    agent::emit::{TextMessage, ToolCallEvents},
    prelude::*,
    protocol::{
        Event, SubagentRunId,
        event::{SubagentError, SubagentFinished, SubagentStarted},
    },
};
use serde_json::json;

use crate::parts::Pace;

pub(crate) async fn run(input: RunAgentInput, out: Emitter, pace: Pace) -> Result<(), AgentError> {
    let fails = input.last_user_text().is_some_and(|text| text.to_lowercase().contains("fail"));
    let supervisor = TextMessage::new();
    out.events([
        supervisor.start(),
        supervisor.delta("I ask two others at once."),
        supervisor.end(),
    ])
    .await?;

    let flights = ["I look ", "for flights", ": there is one at nine."];
    let hotels = ["I look ", "for hotels", ": there is one by the lake."];
    let flights = Worker::new("ask_flights", &supervisor, flights, "a flight at nine");
    let hotels = Worker::new("ask_hotels", &supervisor, hotels, "a hotel by the lake");
    for worker in [&flights, &hotels] {
        out.events(worker.call.whole(&json!({ "to": "Zürich" }))).await?;
    }
    out.event(flights.start("flights", "Finds flights.", &supervisor)).await?;
    out.event(hotels.start("hotels", "Finds hotels.", &supervisor)).await?;
    for worker in [&flights, &hotels] {
        out.event(worker.own(worker.message.start())).await?;
    }
    for word in 0..flights.words.len() {
        for worker in [&flights, &hotels] {
            out.event(worker.own(worker.message.delta(worker.words[word]))).await?;
            pace.pause(300).await;
        }
    }
    out.events(flights.finish()).await?;
    out.events(if fails { hotels.fail() } else { hotels.finish() }).await?;

    let found = if fails { "but no hotel".to_owned() } else { format!("and {}", hotels.found) };
    out.text(format!("There is {}, {found}.", flights.found)).await
}

/// A subagent: its invocation, the call that gave it the task, its message, and its result.
struct Worker {
    id: SubagentRunId,
    call: ToolCallEvents,
    message: TextMessage,
    words: [&'static str; 3],
    found: &'static str,
}

impl Worker {
    fn new(
        tool: &str,
        supervisor: &TextMessage,
        words: [&'static str; 3],
        found: &'static str,
    ) -> Self {
        let (id, call) = (SubagentRunId::random(), ToolCallEvents::new(tool).within(supervisor));
        Self { id, call, message: TextMessage::new(), words, found }
    }

    fn start(&self, name: &str, description: &str, supervisor: &TextMessage) -> Event {
        let mut started = SubagentStarted::new(self.id.clone(), name);
        started.description = Some(description.to_owned());
        started.parent_tool_call_id = Some(self.call.id().clone());
        started.parent_message_id = Some(supervisor.id().clone());
        started.into()
    }

    fn own(&self, event: Event) -> Event {
        event.attributed_to(Some(self.id.clone()))
    }

    fn finish(&self) -> Vec<Event> {
        let mut finished = SubagentFinished::new(self.id.clone());
        finished.result = Some(json!({ "found": self.found }));
        vec![self.own(self.message.end()), finished.into(), self.call.result(self.found)]
    }

    fn fail(&self) -> Vec<Event> {
        let mut failed = SubagentError::new(self.id.clone(), "The hotels did not answer.");
        failed.code = Some("no_answer".to_owned());
        vec![
            self.own(self.message.end()),
            failed.into(),
            self.call.result("Error: the hotels did not answer."),
        ]
    }
}
