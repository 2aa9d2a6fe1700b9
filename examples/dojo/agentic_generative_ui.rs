//! `/agentic_generative_ui`: the agent works through ten steps, and the page draws them from the shared state.

use agui_server::{
    agent::{Agent, RunContext, emit::state, event_stream},
    protocol::{PatchOperation, RunAgentInput},
};
use serde_json::{Value, json};

use crate::parts::Pace;

const STEPS: usize = 10;

pub(crate) fn agent(pace: Pace) -> impl Agent {
    move |_: RunAgentInput, _: RunContext| {
        event_stream(async_stream::try_stream! {
            yield state::snapshot(steps("pending"));
            pace.pause(1000).await;
            for index in 0..STEPS {
                yield state::delta([PatchOperation::replace(format!("/steps/{index}/status"), "completed")]);
                pace.pause(1000).await;
            }
            // A front end that missed a delta is right again in the end.
            yield state::snapshot(steps("completed"));
        })
    }
}

fn steps(status: &str) -> Value {
    let step = |number| json!({ "description": format!("Step {number}"), "status": status });
    json!({ "steps": (1..=STEPS).map(step).collect::<Vec<_>>() })
}
