//! `/human_in_the_loop`: the agent proposes steps, a person picks some or none, and the agent goes on.
//!
//! The proposal is a call of the page's tool `generate_task_steps`. Its arguments come step by step, so that the
//! page can draw them while they come; its result is the person's decision.

use agui_server::{
    agent::{
        Agent, EventStream, RunContext,
        emit::{TextMessage, ToolCallEvents},
        event_stream, events,
    },
    protocol::RunAgentInput,
};
use serde_json::{Value, json};

use crate::parts::{Decision, Pace, last_result};

const STEPS: usize = 10;

pub(crate) fn agent(pace: Pace) -> impl Agent {
    move |input: RunAgentInput, _: RunContext| match last_result(&input) {
        Some(result) => events(TextMessage::whole(reply(&Decision::of(result)))),
        None => propose(pace),
    }
}

fn propose(pace: Pace) -> EventStream {
    event_stream(async_stream::try_stream! {
        let call = ToolCallEvents::new("generate_task_steps");
        yield call.start();
        yield call.delta(r#"{"steps":["#);
        for number in 1..=STEPS {
            let step = json!({ "description": format!("Step {number}"), "status": "enabled" });
            let comma = if number < STEPS { "," } else { "" };
            yield call.delta(format!("{step}{comma}"));
            pace.pause(200).await;
        }
        yield call.delta("]}");
        yield call.end();
    })
}

fn reply(decision: &Decision) -> String {
    let steps = decision.answer.get("steps").and_then(Value::as_array).map(Vec::len);
    match (decision.accepted, steps) {
        (false, _) => "All right, I leave it at that.".to_owned(),
        (true, Some(1)) => "Ok! I get to work on the one step you picked.".to_owned(),
        (true, Some(steps)) => format!("Ok! I get to work on the {steps} steps you picked."),
        (true, None) => "Ok! I get to work on it.".to_owned(),
    }
}
