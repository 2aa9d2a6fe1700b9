//! Whatever an agent says, the guide's clients can read it, and put together what was said.

use std::collections::HashMap;

use agui_server::{
    encode::{Encoder, Guide},
    protocol::{Event, guide::ToolCallState},
};
use proptest::prelude::*;
use serde_json::Value;

use crate::{
    Frame, frames, said,
    support::streams::{Script, nonsense, play},
};

fn encoded(script: &Script, events: &[Event]) -> String {
    let mut encoder = Encoder::Guide(Box::new(Guide::new(script.input.thread_id.clone(), "agent")));
    let mut out = Vec::new();
    events.iter().for_each(|event| encoder.event(event, &mut out));
    encoder.heartbeat(&mut out);
    String::from_utf8(out).unwrap()
}

/// What the guide's event handler makes of a stream. A piece for something that it does not know is lost to it.
#[derive(Default)]
struct Handler {
    calls: ToolCallState,
    thoughts: HashMap<String, String>,
}

impl Handler {
    fn handle(&mut self, (name, data): &Frame) {
        let text = |member: &str| data[member].as_str().unwrap_or_else(|| panic!("{name}: {data}"));
        match name.as_str() {
            "tool_call_start" => self.calls.start_tool_call(text("toolCallId"), text("toolCallName")),
            "tool_call_args" => self.calls.append_args(text("toolCallId"), text("delta")),
            "tool_call_end" => drop(self.calls.complete_tool_call(text("toolCallId"))),
            "tool_result" => self.calls.set_result(text("toolCallId"), text("content")),
            // Unlike the guide's, this one does not forget what a session said that had the same id.
            "reasoning_start" => drop(self.thoughts.entry(text("messageId").to_owned()).or_default()),
            "reasoning_message_content" => {
                self.thoughts.get_mut(text("messageId")).unwrap().push_str(text("delta"));
            }
            "reasoning_message_start" | "reasoning_message_end" | "reasoning_end" => {
                assert!(self.thoughts.contains_key(text("messageId")), "{data}");
            }
            "message" => assert!(text("thread_id").len() + text("agent").len() > 0),
            "status" | "error" => assert!(!text("type").is_empty() && data["message"].is_string()),
            "interrupt" => assert_eq!(data["finish_reason"], "interrupt"),
            other => panic!("{other} is no event of the guide's"),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..Default::default() })]

    #[test]
    fn the_guides_clients_can_read_everything(script in nonsense()) {
        let events = play(&script);
        let frames = frames(&encoded(&script, &events));
        let mut handler = Handler::default();
        frames.iter().for_each(|frame| handler.handle(frame));
        let (mut text, mut args, mut thoughts) = (String::new(), 0, 0);
        for event in &events {
            match event {
                Event::TextMessageContent(e) => text.push_str(&e.delta),
                Event::ToolCallArgs(e) => args += e.delta.len(),
                Event::ReasoningMessageContent(e) => thoughts += e.delta.len(),
                _ => {}
            }
        }
        prop_assert_eq!(said(&frames), text);
        prop_assert_eq!(frames.iter().filter(|(name, _)| name == "tool_call_args")
            .map(|(_, data)| data["delta"].as_str().map_or(0, str::len)).sum::<usize>(), args);
        prop_assert_eq!(handler.thoughts.values().map(String::len).sum::<usize>(), thoughts);
        prop_assert!(frames.iter().all(|(_, data)| matches!(data, Value::Object(_))));
    }
}
