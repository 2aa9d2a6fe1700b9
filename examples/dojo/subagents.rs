//! `/subagents`: the agent has two others work for it at the same time, and sums up what they found.
//!
//! Each is announced, and everything it produces carries its invocation's id, so that a page can tell them apart
//! although their words arrive interleaved. If the request says "fail", the second one does: the run goes on.
//!
//! Clients older than `@ag-ui/client` 0.0.59 do not know subagents' events, and fail at them.

use agui_server::{
    agent::{
        Agent, EventStream, RunContext,
        emit::{TextMessage, ToolCallEvents},
        event_stream,
    },
    protocol::{
        Event, RunAgentInput, SubagentRunId,
        event::{SubagentError, SubagentFinished, SubagentStarted},
    },
};
use serde_json::json;

use crate::parts::Pace;

pub(crate) fn agent(pace: Pace) -> impl Agent {
    move |input: RunAgentInput, _: RunContext| {
        let fails = input.last_user_text().is_some_and(|text| text.to_lowercase().contains("fail"));
        delegate(fails, pace)
    }
}

/// A subagent at work: its invocation, the call that it answers, and what it says.
struct Worker {
    id: SubagentRunId,
    call: ToolCallEvents,
    message: TextMessage,
    words: [&'static str; 3],
    found: &'static str,
}

impl Worker {
    fn new(tool: &str, supervisor: &TextMessage, words: [&'static str; 3], found: &'static str) -> Self {
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
        vec![self.own(self.message.end()), failed.into(), self.call.result("Error: the hotels did not answer.")]
    }
}

fn delegate(fails: bool, pace: Pace) -> EventStream {
    event_stream(async_stream::try_stream! {
        let supervisor = TextMessage::new();
        yield supervisor.start();
        yield supervisor.delta("I ask two others at once.");
        yield supervisor.end();

        let flights = ["I look ", "for flights", ": there is one at nine."];
        let hotels = ["I look ", "for hotels", ": there is one by the lake."];
        let flights = Worker::new("ask_flights", &supervisor, flights, "a flight at nine");
        let hotels = Worker::new("ask_hotels", &supervisor, hotels, "a hotel by the lake");
        for worker in [&flights, &hotels] {
            for event in worker.call.whole(&json!({ "to": "Zürich" })) {
                yield event;
            }
        }
        yield flights.start("flights", "Finds flights.", &supervisor);
        yield hotels.start("hotels", "Finds hotels.", &supervisor);
        for worker in [&flights, &hotels] {
            yield worker.own(worker.message.start());
        }
        for word in 0..flights.words.len() {
            for worker in [&flights, &hotels] {
                yield worker.own(worker.message.delta(worker.words[word]));
                pace.pause(300).await;
            }
        }
        for event in [flights.finish(), if fails { hotels.fail() } else { hotels.finish() }].concat() {
            yield event;
        }

        let found = if fails { "but no hotel".to_owned() } else { format!("and {}", hotels.found) };
        for event in TextMessage::whole(format!("There is {}, {found}.", flights.found)) {
            yield event;
        }
    })
}
