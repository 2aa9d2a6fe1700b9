//! Plays a script for the tests here, and for those of the demo script in the root's `tests`, which
//! has this file as a module.

use std::collections::HashSet;

use futures::StreamExt as _;
use serde_json::{Value, json};

use super::Script;
use agui_agent::{Agent as _, RunContext};
use agui_protocol::{Event, Interrupt, Message, RunAgentInput, event::RunOutcome};
use agui_run::{Guard, Transcript};

/// Returns the script's events as JSON, with ids numbered in the order of their appearance: `msg1`, `call1`…
pub(crate) async fn play(script: &Script, messages: Value, tools: &[&str]) -> Vec<Value> {
    let tools: Vec<Value> =
        tools.iter().map(|name| json!({ "name": name, "description": "" })).collect();
    let input = json!({ "threadId": "t", "runId": "r", "messages": messages, "tools": tools });
    let input: RunAgentInput = serde_json::from_value(input).unwrap();
    let events: Vec<_> = script.run(input, RunContext::new("t", "r", "demo")).collect().await;
    let mut ids = Vec::new();
    let plain = events.into_iter().map(|event| match event {
        Ok(event) => {
            let mut event = serde_json::to_value(event).unwrap();
            for (member, prefix) in
                [("messageId", "msg"), ("parentMessageId", "msg"), ("toolCallId", "call")]
            {
                if let Some(id) = event.get(member).and_then(Value::as_str).map(str::to_owned) {
                    if !ids.contains(&(prefix, id.clone())) {
                        ids.push((prefix, id.clone()));
                    }
                    let of_kind = ids.iter().filter(|(kind, _)| *kind == prefix);
                    let number = of_kind.take_while(|(_, known)| *known != id).count() + 1;
                    event[member] = format!("{prefix}{number}").into();
                }
            }
            event
        }
        Err(error) => json!({ "error": error.code(), "message": error.message() }),
    });
    plain.collect()
}

pub(crate) fn user(text: &str) -> Value {
    json!({ "id": "u", "role": "user", "content": text })
}

/// A conversation. Its messages are those that a client builds from the events.
pub(crate) struct Talk {
    script: Script,
    pub(crate) messages: Vec<Message>,
    pub(crate) interrupts: Vec<Interrupt>,
}

impl Talk {
    pub(crate) fn with(script: &str) -> Self {
        Self {
            script: Script::parse(script).unwrap(),
            messages: Vec::new(),
            interrupts: Vec::new(),
        }
    }

    pub(crate) async fn say(&mut self, text: &str) -> Vec<Value> {
        self.messages.push(Message::user(format!("user{}", self.messages.len()), text));
        self.run(json!([])).await
    }

    /// Replies the interrupts in order; `null` cancels an interrupt.
    pub(crate) async fn reply(&mut self, payloads: &[Value]) -> Vec<Value> {
        assert_eq!(payloads.len(), self.interrupts.len());
        let entries =
            self.interrupts.iter().zip(payloads).map(|(interrupt, payload)| match payload {
                Value::Null => json!({ "interruptId": interrupt.id, "status": "cancelled" }),
                _ => {
                    json!({ "interruptId": interrupt.id, "status": "resolved", "payload": payload })
                }
            });
        self.run(entries.collect()).await
    }

    /// Returns the events of a run, which must be legal.
    pub(crate) async fn run(&mut self, resume: Value) -> Vec<Value> {
        let mut input = RunAgentInput::new("t", "r", self.messages.clone());
        input.resume = serde_json::from_value(resume).unwrap();
        let (mut guard, mut transcript) = (Guard::new(&input), Transcript::from_input(&input));
        let events: Vec<_> =
            self.script.run(input, RunContext::new("t", "r", "script")).collect().await;
        let mut plain = Vec::new();
        for (index, event) in events.iter().enumerate() {
            let event = event.as_ref().unwrap();
            if let Event::RunFinished(finished) = event {
                assert_eq!(index + 1, events.len());
                let Some(RunOutcome::Interrupt { interrupts }) = &finished.outcome else {
                    panic!("{finished:?}")
                };
                let ids: HashSet<_> = interrupts.iter().map(|interrupt| &interrupt.id).collect();
                assert!(!ids.is_empty() && ids.len() == interrupts.len(), "{interrupts:?}");
                self.interrupts = interrupts.clone();
            } else {
                guard.admit(event.clone(), &mut Vec::new()).unwrap();
                transcript.apply(event);
            }
            plain.push(serde_json::to_value(event).unwrap());
        }
        self.messages = transcript.messages().into_vec();
        plain
    }

    pub(crate) fn calls(&self) -> Vec<String> {
        let assistants = self.messages.iter().filter_map(|message| match message {
            Message::Assistant(assistant) => Some(assistant.tool_calls()),
            _ => None,
        });
        assistants.flatten().map(|call| call.id.to_string()).collect()
    }
}

pub(crate) fn results_and_text(events: &[Value]) -> (Vec<(&str, &str)>, String) {
    let is_result = |event: &&Value| event["type"] == "TOOL_CALL_RESULT";
    let results = events.iter().filter(is_result);
    let results = results
        .map(|event| (event["toolCallId"].as_str().unwrap(), event["content"].as_str().unwrap()));
    let others = events.iter().filter(|event| !is_result(event));
    assert!(
        others.clone().all(|event| event["type"].as_str().unwrap().starts_with("TEXT_MESSAGE_")),
        "{events:?}"
    );
    (results.collect(), others.filter_map(|event| event["delta"].as_str()).collect())
}
