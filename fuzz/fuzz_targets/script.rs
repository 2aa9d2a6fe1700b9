//! The script compiler: a script that compiles plays a legal stream for every input; errors name a place in the text.
#![no_main]

use std::sync::Arc;

use agui_agents::script::Script;
use agui_protocol::{Event, Message, ResumeEntry, ResumeStatus, RunAgentInput};
use agui_run::Run;
use agui_server_fuzz::{amplified, bounded, support::checker::check};
use futures::StreamExt as _;
use libfuzzer_sys::fuzz_target;
use serde_json::json;

/// A script may count to any number.
const MAX_EVENTS: usize = 2000;
/// Regular expressions of a few bytes compile to a program of up to 10 MB.
const REGEX_BYTES: usize = 1 << 20;

fuzz_target!(|data: &[u8]| {
    let data = amplified(data);
    let Ok(text) = std::str::from_utf8(&data) else { return };
    match bounded(REGEX_BYTES + text.len(), || Script::parse(text)) {
        Ok(script) => {
            let script = Arc::new(script);
            for input in inputs() {
                play(&script, input);
            }
        }
        Err(error) => {
            if let Some(span) = error.span.clone() {
                assert!(text.get(span).is_some(), "{error}: a place outside of the text");
            }
        }
    }
});

fn inputs() -> [RunAgentInput; 4] {
    let user = |text: &str| Message::user("m1", text);
    let question = RunAgentInput::new("t", "r1", vec![user("weather in Paris")]);
    let call = json!({ "id": "m2", "role": "assistant", "toolCalls": [
        { "id": "c", "type": "function", "function": { "name": "search", "arguments": "{\"q\":[1,null]}" } }
    ]});
    let result = json!({ "id": "m3", "role": "tool", "toolCallId": "c", "content": "[1, \"two\"]", "error": "no" });
    let read = |message| serde_json::from_value::<Message>(message).expect("a message");
    let answered = RunAgentInput::new("t", "r2", vec![user("search"), read(call.clone()), read(result)]);
    let mut resumed = RunAgentInput::new("t", "r3", vec![user("mail Ann"), read(call)]);
    resumed.resume = vec![
        ResumeEntry {
            interrupt_id: "search:c".into(),
            status: ResumeStatus::Resolved,
            payload: Some(json!({ "approved": true, "editedArgs": { "q": 1 }, "size": "L" })),
            metadata: None,
        },
        ResumeEntry { interrupt_id: "i".into(), status: ResumeStatus::Cancelled, payload: None, metadata: None },
    ];
    [RunAgentInput::new("t", "r0", vec![]), question, answered, resumed]
}

fn play(script: &Arc<Script>, input: RunAgentInput) {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().expect("a runtime");
    let run = Run::alone(script.clone(), input.clone());
    let events: Vec<Event> = runtime.block_on(run.into_events().take(MAX_EVENTS).collect());
    if events.len() == MAX_EVENTS {
        return;
    }
    check(&input, &events).unwrap_or_else(|fault| panic!("{fault}\n{events:#?}"));
    if let Some(Event::RunError(error)) = events.last() {
        let code = error.code.as_deref();
        assert!(!matches!(code, Some("protocol_violation" | "agent_panic")), "{error:?}");
    }
}
