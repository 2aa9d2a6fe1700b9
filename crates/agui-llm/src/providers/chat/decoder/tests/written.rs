//! Calls that are written as text.

use super::*;

#[test]
fn a_call_that_is_written_as_text_ends_the_answer_with_calls() {
    let chunk = |delta: Value, reason: Value| {
        json!({"choices": [{"delta": delta, "finish_reason": reason}]}).to_string()
    };
    let text = [
        "<think>hm</think>",
        "I look. <tool",
        "_call>{\"name\":\"look_up\",",
        "\"arguments\":{\"a\":1}}</tool_call>",
    ];
    let events: Vec<_> =
        text.iter().map(|text| chunk(json!({"content": text}), Value::Null)).collect();
    let events = [events, vec![chunk(json!({}), json!("stop"))]].concat();
    let tools: Arc<[ToolSpec]> = Arc::new([ToolSpec::new("look_up", "", json!({}))]);
    let (found, whole) = decode_with(decoder_with("vllm", tools.clone()), &events).unwrap();
    assert!(whole);
    let written = WrittenCalls {
        text: "<tool_call>{\"name\":\"look_up\",\"arguments\":{\"a\":1}}</tool_call>".to_owned(),
        calls: vec![WrittenCall::new("look_up", "{\"a\":1}")],
    };
    assert!(found.contains(&written) && found.contains(&Stop(StopReason::Calls)), "{found:?}");
    for (server, tools) in [("openai", tools), ("vllm", Arc::default())] {
        let (found, _) = decode_with(decoder_with(server, tools), &events).unwrap();
        assert!(!found.iter().any(|event| matches!(event, WrittenCalls { .. })), "{found:?}");
        assert!(found.contains(&Stop(StopReason::Done)), "{found:?}");
    }
}
