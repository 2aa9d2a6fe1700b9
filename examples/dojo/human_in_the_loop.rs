//! `/human_in_the_loop`: the agent proposes steps, a person picks some or none, and the agent continues.
//!
//! The proposal is a call of the page's tool `generate_task_steps`. Its arguments are streamed step by step, so that
//! the page can draw them as they arrive. The result of the call is the person's decision.

use agui_server::{agent::emit::ToolCallEvents, prelude::*};
use serde_json::{Value, json};

use crate::parts::{Decision, Pace, last_result};

const STEPS: usize = 10;

pub(crate) async fn run(input: RunAgentInput, out: Emitter, pace: Pace) -> Result<(), AgentError> {
    if let Some(result) = last_result(&input) {
        return out.text(reply(&Decision::of(result))).await;
    }
    let call = ToolCallEvents::new("generate_task_steps");
    out.event(call.start()).await?;
    out.event(call.delta(r#"{"steps":["#)).await?;
    for number in 1..=STEPS {
        let step = json!({ "description": format!("Step {number}"), "status": "enabled" });
        let comma = if number < STEPS { "," } else { "" };
        out.event(call.delta(format!("{step}{comma}"))).await?;
        pace.pause(200).await;
    }
    out.event(call.delta("]}")).await?;
    out.event(call.end()).await
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
