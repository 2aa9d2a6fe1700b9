//! `/predictive_state_updates`: the page shows a document while the agent writes it, and a person accepts it or not.
//!
//! `PredictState` tells the page that the argument `document` of the tool `write_document_local` will become the
//! state's `document`, so the page can draw it early. Then the page is asked to confirm (`confirm_changes`). Only a
//! confirmed document becomes state.

use agui_server::{agent::emit::ToolCallEvents, prelude::*};
use serde_json::{Value, json};

use crate::parts::{Decision, Pace, calls, last_result};

const WRITE: &str = "write_document_local";
const NAMES: [&str; 5] = ["Rex", "Bella", "Momo", "Lupo", "Daisy"];

pub(crate) async fn run(input: RunAgentInput, out: Emitter, pace: Pace) -> Result<(), AgentError> {
    if let Some(result) = last_result(&input) {
        return conclude(&input, &Decision::of(result), &out).await;
    }
    let predicted =
        json!([{ "state_key": "document", "tool": WRITE, "tool_argument": "document" }]);
    out.custom("PredictState", predicted).await?;
    let call = ToolCallEvents::new(WRITE);
    out.event(call.start()).await?;
    out.event(call.delta(r#"{"document":""#)).await?;
    for word in story(&input).split_inclusive(' ') {
        out.event(call.delta(inside_json_string(word))).await?;
        pace.pause(200).await;
    }
    out.event(call.delta(r#""}"#)).await?;
    out.event(call.end()).await?;
    out.call("confirm_changes", json!({})).await?;
    Ok(())
}

async fn conclude(
    input: &RunAgentInput,
    decision: &Decision,
    out: &Emitter,
) -> Result<(), AgentError> {
    if !decision.accepted {
        return out.text("Ok! The document stays as it was.").await;
    }
    if let (Some(document), Value::Object(mut kept)) = (written(input), input.state_or_empty()) {
        kept.insert("document".to_owned(), document);
        out.set_state(kept).await?;
    }
    out.text("Ok! The document is changed.").await
}

/// Returns the document of the newest `write_document_local` call.
fn written(input: &RunAgentInput) -> Option<Value> {
    let arguments = &calls(input, WRITE).next()?.function.arguments;
    serde_json::from_str::<Value>(arguments).ok()?.get("document").cloned()
}

/// Returns a story about the name after "named" in the request, or else about the next dog, so that each story differs
/// from the one before.
fn story(input: &RunAgentInput) -> String {
    let wish = input.last_user_text().unwrap_or_default();
    let named = wish
        .split_once(" named ")
        .map(|(_, rest)| rest.split(['.', ',', '!']).next().unwrap_or_default().trim());
    let turn = calls(input, WRITE).count() % NAMES.len();
    let (kind, name) = match named {
        Some(name) if !name.is_empty() => ("someone", name),
        _ => ("a dog", NAMES[turn]),
    };
    format!(
        "There once was {kind} called {name}. Every morning {name} went out to see what was new, and came home content."
    )
}

fn inside_json_string(text: &str) -> String {
    let quoted = Value::from(text).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}
