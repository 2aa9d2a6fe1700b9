//! `/agentic_generative_ui`: the agent works through ten steps, and the page draws them from the shared state.

use agui_server::{prelude::*, protocol::PatchOperation};
use serde_json::{Value, json};

use crate::parts::Pace;

const STEPS: usize = 10;

pub(crate) async fn run(_: RunAgentInput, out: Emitter, pace: Pace) -> Result<(), AgentError> {
    out.set_state(steps("pending")).await?;
    pace.pause(1000).await;
    for index in 0..STEPS {
        out.patch_state([PatchOperation::replace(format!("/steps/{index}/status"), "completed")])
            .await?;
        pace.pause(1000).await;
    }
    // The final snapshot corrects the state of a page that has missed a delta.
    out.set_state(steps("completed")).await
}

fn steps(status: &str) -> Value {
    let step = |number| json!({ "description": format!("Step {number}"), "status": status });
    json!({ "steps": (1..=STEPS).map(step).collect::<Vec<_>>() })
}
