//! `/predictive_state_updates`: a document appears while the agent writes it, and a person keeps it or not.
//!
//! `PredictState` tells the page that the argument `document` of the tool `write_document_local` is going to be the
//! state's `document`, so it can draw it before it is. Then the page is asked to confirm (`confirm_changes`); only
//! what was confirmed becomes state.

use agui_server::{
    agent::{
        Agent, EventStream, RunContext,
        emit::{TextMessage, ToolCallEvents, state},
        event_stream, events,
    },
    protocol::{Event, RunAgentInput, event::Custom},
};
use serde_json::{Value, json};

use crate::parts::{Decision, Pace, calls, last_result};

const WRITE: &str = "write_document_local";
const NAMES: [&str; 5] = ["Rex", "Bella", "Momo", "Lupo", "Daisy"];

pub(crate) fn agent(pace: Pace) -> impl Agent {
    move |input: RunAgentInput, _: RunContext| match last_result(&input) {
        Some(result) => events(conclude(&input, &Decision::of(result))),
        None => write(story(&input), pace),
    }
}

fn write(story: String, pace: Pace) -> EventStream {
    event_stream(async_stream::try_stream! {
        let predicted = json!([{ "state_key": "document", "tool": WRITE, "tool_argument": "document" }]);
        yield Custom::new("PredictState", predicted).into();
        let call = ToolCallEvents::new(WRITE);
        yield call.start();
        yield call.delta(r#"{"document":""#);
        for word in story.split_inclusive(' ') {
            yield call.delta(inside_json_string(word));
            pace.pause(200).await;
        }
        yield call.delta(r#""}"#);
        yield call.end();
        for event in ToolCallEvents::new("confirm_changes").whole(&json!({})) {
            yield event;
        }
    })
}

fn conclude(input: &RunAgentInput, decision: &Decision) -> Vec<Event> {
    if !decision.accepted {
        return TextMessage::whole("Ok! The document stays as it was.");
    }
    let mut events = Vec::new();
    if let (Some(document), Value::Object(mut kept)) = (written(input), input.state_or_empty()) {
        kept.insert("document".to_owned(), document);
        events.push(state::snapshot(kept));
    }
    events.extend(TextMessage::whole("Ok! The document is changed."));
    events
}

/// The document that was proposed last.
fn written(input: &RunAgentInput) -> Option<Value> {
    let arguments = &calls(input, WRITE).next()?.function.arguments;
    serde_json::from_str::<Value>(arguments).ok()?.get("document").cloned()
}

/// A story about whoever is "named …" in the request, and otherwise about the next dog, so that there is a change to
/// be seen every time.
fn story(input: &RunAgentInput) -> String {
    let wish = input.last_user_text().unwrap_or_default();
    let named =
        wish.split_once(" named ").map(|(_, rest)| rest.split(['.', ',', '!']).next().unwrap_or_default().trim());
    let turn = calls(input, WRITE).count() % NAMES.len();
    let (kind, name) = match named {
        Some(name) if !name.is_empty() => ("somebody", name),
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
