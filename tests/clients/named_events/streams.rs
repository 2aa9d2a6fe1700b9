//! The guide's clients can read every stream of every agent, and lose no text, arguments or reasoning.

use std::collections::{HashMap, HashSet};

use agui_protocol::encode::Encoder;
use agui_server::{internal::NamedEventEncoder, protocol::Event};
use proptest::prelude::*;
use serde_json::Value;

use super::{
    Frame,
    client::ToolCallState,
    frames, said,
    support::streams::{Script, play, script},
};

fn encoded(script: &Script, events: &[Event]) -> String {
    let mut encoder =
        Encoder::Dialect(Box::new(NamedEventEncoder::new(script.input.thread_id.clone(), "agent")));
    let mut out = Vec::new();
    events.iter().for_each(|event| encoder.event(event, &mut out));
    encoder.heartbeat(&mut out);
    String::from_utf8(out).unwrap()
}

/// The guide's `AGUIEventHandler`, except that it keeps the reasoning of an earlier session with the same id. Deltas for
/// unknown reasoning sessions panic.
#[derive(Default)]
struct AguiEventHandler {
    calls: ToolCallState,
    reasoning: HashMap<String, String>,
}

impl AguiEventHandler {
    fn handle(&mut self, (name, data): &Frame) {
        let text = |member: &str| data[member].as_str().unwrap_or_else(|| panic!("{name}: {data}"));
        match name.as_str() {
            "tool_call_start" => {
                self.calls.start_tool_call(text("toolCallId"), text("toolCallName"))
            }
            "tool_call_args" => self.calls.append_args(text("toolCallId"), text("delta")),
            "tool_call_end" => drop(self.calls.complete_tool_call(text("toolCallId"))),
            "tool_result" => self.calls.set_result(text("toolCallId"), text("content")),
            "reasoning_start" => {
                self.reasoning.entry(text("messageId").to_owned()).or_default();
            }
            "reasoning_message_content" => {
                self.reasoning.get_mut(text("messageId")).unwrap().push_str(text("delta"));
            }
            "reasoning_message_start" | "reasoning_message_end" | "reasoning_end" => {
                assert!(self.reasoning.contains_key(text("messageId")), "{data}");
            }
            "message" => assert!(text("thread_id").len() + text("agent").len() > 0),
            "status" | "error" => assert!(!text("type").is_empty() && data["message"].is_string()),
            "interrupt" => assert_eq!(data["finish_reason"], "interrupt"),
            other => panic!("the guide has no event {other}"),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..Default::default() })]

    #[test]
    fn the_guides_clients_can_read_every_stream(script in script()) {
        let events = play(&script);
        let frames = frames(&encoded(&script, &events));
        let mut handler = AguiEventHandler::default();
        frames.iter().for_each(|frame| handler.handle(frame));
        let (mut text, mut args, mut reasoning) = (String::new(), 0, 0);
        let mut silent = HashSet::new();
        for event in &events {
            match event {
                Event::TextMessageStart(e) => drop(silent.insert(&e.message_id)),
                Event::TextMessageContent(e) if !e.delta.is_empty() => {
                    // An empty line comes before the first text of a further message.
                    let is_further = silent.remove(&e.message_id) && !text.is_empty();
                    text.push_str(if is_further { "\n\n" } else { "" });
                    text.push_str(&e.delta);
                }
                Event::ToolCallArgs(e) => args += e.delta.len(),
                Event::ReasoningMessageContent(e) => reasoning += e.delta.len(),
                _ => {}
            }
        }
        prop_assert_eq!(said(&frames), text);
        prop_assert_eq!(frames.iter().filter(|(name, _)| name == "tool_call_args")
            .map(|(_, data)| data["delta"].as_str().map_or(0, str::len)).sum::<usize>(), args);
        prop_assert_eq!(handler.reasoning.values().map(String::len).sum::<usize>(), reasoning);
        prop_assert!(frames.iter().all(|(_, data)| matches!(data, Value::Object(_))));
    }
}
