use serde_json::json;

use super::*;
use crate::{
    llm::ModelEvent::{self, Delta, End, Start, Stop, Usage},
    protocol::TokenUsage,
};

fn decode(events: &[Value]) -> Result<(Vec<ModelEvent>, bool), DecodeError> {
    let (mut decoder, mut output) = (MessageDecoder::new("m"), AnswerEvents::default());
    for event in events {
        decoder.event(None, &event.to_string(), &mut output)?;
    }
    let whole = decoder.finish(&mut output);
    assert_eq!(decoder.finish(&mut output), whole, "finishing again changes nothing");
    Ok((output.take(), whole))
}

fn start(index: u64, block: Value) -> Value {
    json!({"type": "content_block_start", "index": index, "content_block": block})
}

fn delta(index: u64, delta: Value) -> Value {
    json!({"type": "content_block_delta", "index": index, "delta": delta})
}

fn stop(index: u64) -> Value {
    json!({"type": "content_block_stop", "index": index})
}

fn reason(reason: &str) -> Value {
    json!({"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": null}})
}

fn message_stop() -> Value {
    json!({"type": "message_stop"})
}

fn said(index: usize, text: &str) -> ModelEvent {
    Delta { index, text: text.to_owned() }
}

fn end(index: usize, artefact: Option<&str>) -> ModelEvent {
    End { index, artefact: artefact.map(str::to_owned) }
}

#[test]
fn an_answer_of_every_kind_of_block() {
    let (events, whole) = decode(&[
        json!({"type": "message_start", "message": {"id": "msg_1", "usage": null}}),
        start(0, json!({"type": "thinking", "thinking": "", "signature": ""})),
        json!({"type": "ping"}),
        delta(0, json!({"type": "thinking_delta", "thinking": "hm"})),
        delta(0, json!({"type": "signature_delta", "signature": "si"})),
        delta(0, json!({"type": "signature_delta", "signature": "g=="})),
        stop(0),
        start(1, json!({"type": "redacted_thinking", "data": "blob"})),
        stop(1),
        start(2, json!({"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}})),
        delta(2, json!({"type": "input_json_delta", "partial_json": "{}"})),
        stop(2),
        start(3, json!({"type": "text", "text": ""})),
        delta(3, json!({"type": "text_delta", "text": "well"})),
        delta(3, json!({"type": "citations_delta", "citation": {}})),
        delta(3, json!({"type": "text_delta", "text": ""})),
        stop(3),
        start(4, json!({"type": "tool_use", "id": "a", "name": "f", "input": {}})),
        delta(4, json!({"type": "input_json_delta", "partial_json": ""})),
        delta(4, json!({"type": "input_json_delta", "partial_json": "{\"x\""})),
        delta(4, json!({"type": "input_json_delta", "partial_json": ":1}"})),
        stop(4),
        start(5, json!({"type": "tool_use", "id": "b", "name": "g", "input": {}})),
        delta(5, json!({"type": "input_json_delta", "partial_json": ""})),
        stop(5),
        start(6, json!({"type": "tool_use", "id": "c", "name": "h", "input": {"y": 2}})),
        stop(6),
        json!({"type": "something_new"}),
        reason("tool_use"),
        message_stop(),
    ])
    .unwrap();
    assert!(whole);
    let call = |id: &str, name: &str| BlockStart::Call { id: id.into(), name: name.to_owned() };
    let expected = [
        Start { index: 0, block: BlockStart::Reasoning { redacted: false } },
        said(0, "hm"),
        end(0, Some("sig==")),
        Start { index: 1, block: BlockStart::Reasoning { redacted: true } },
        end(1, Some("blob")),
        Start { index: 2, block: BlockStart::Text },
        said(2, "well"),
        end(2, None),
        Start { index: 3, block: call("a", "f") },
        said(3, "{\"x\""),
        said(3, ":1}"),
        end(3, None),
        Start { index: 4, block: call("b", "g") },
        said(4, "{}"),
        end(4, None),
        Start { index: 5, block: call("c", "h") },
        said(5, "{\"y\":2}"),
        end(5, None),
        Stop(StopReason::Calls),
    ];
    assert_eq!(events, expected);
}

#[test]
fn blocks_may_interleave_and_are_closed_with_the_answer() {
    let (events, _) = decode(&[
        start(0, json!({"type": "text", "text": "a"})),
        start(1, json!({"type": "text", "text": "b"})),
        delta(0, json!({"type": "text_delta", "text": "c"})),
        message_stop(),
    ])
    .unwrap();
    let text = |index| Start { index, block: BlockStart::Text };
    let expected = [
        text(0),
        said(0, "a"),
        text(1),
        said(1, "b"),
        said(0, "c"),
        end(0, None),
        end(1, None),
        Stop(StopReason::Done),
    ];
    assert_eq!(events, expected);
}

#[test]
fn an_answer_is_complete_with_a_reason_or_a_stop_only() {
    let text = start(0, json!({"type": "text", "text": "a"}));
    let (events, whole) = decode(&[text.clone(), stop(0)]).unwrap();
    assert!(!whole && !events.iter().any(|event| matches!(event, Stop(_))));
    let (events, whole) = decode(std::slice::from_ref(&text)).unwrap();
    assert!(!whole && !events.iter().any(|event| matches!(event, End { .. })));
    for (said, expected) in [
        ("end_turn", StopReason::Done),
        ("stop_sequence", StopReason::Done),
        ("pause_turn", StopReason::Done),
        ("tool_use", StopReason::Calls),
        ("max_tokens", StopReason::Length),
        ("model_context_window_exceeded", StopReason::Length),
        ("refusal", StopReason::Refused),
    ] {
        let (events, whole) = decode(&[text.clone(), stop(0), reason(said)]).unwrap();
        assert!(whole);
        assert_eq!(events.last(), Some(&Stop(expected)), "{said}");
    }
}

#[test]
fn usage_is_a_total_and_missing_counts_are_absent() {
    let started = |usage: Value| json!({"type": "message_start", "message": {"usage": usage}});
    let ended = |usage: Value| json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": usage});
    let counts = |events: &[Value]| -> Vec<TokenUsage> {
        let events = decode(events).unwrap().0.into_iter();
        let usages = events.filter_map(|event| match event {
            Usage(usage) => Some(usage),
            _ => None,
        });
        usages.collect()
    };
    let base =
        TokenUsage { provider: Some("anthropic".to_owned()), model: Some("m".to_owned()), ..TokenUsage::default() };
    let read = counts(&[
        started(
            json!({"input_tokens": 10, "cache_creation_input_tokens": 20, "cache_read_input_tokens": 300, "output_tokens": 1}),
        ),
        ended(json!({"output_tokens": 40})),
        ended(json!({"output_tokens": 40, "input_tokens": null})),
    ]);
    let first = TokenUsage {
        input_tokens: Some(330),
        output_tokens: Some(1),
        total_tokens: Some(331),
        cached_input_tokens: Some(300),
        cache_write_input_tokens: Some(20),
        ..base.clone()
    };
    let last = TokenUsage { output_tokens: Some(40), total_tokens: Some(370), ..first.clone() };
    assert_eq!(read, [first, last]);
    let read = counts(&[started(json!({"input_tokens": 0})), ended(json!({}))]);
    assert_eq!(read, [TokenUsage { input_tokens: Some(0), ..base.clone() }]);
    assert_eq!(counts(&[ended(json!({"output_tokens": 4}))]), [TokenUsage { output_tokens: Some(4), ..base }]);
}

#[test]
fn errors_are_recognised_in_all_forms() {
    let failed =
        |kind: &str| decode(&[json!({"type": "error", "error": {"type": kind, "message": "no"}})]).unwrap_err();
    let is = |kind| DecodeError::Failed { kind, message: "no".to_owned() };
    assert_eq!(failed("overloaded_error"), is(FailureKind::Unavailable));
    assert_eq!(failed("api_error"), is(FailureKind::Unavailable));
    assert_eq!(failed("rate_limit_error"), is(FailureKind::RateLimited));
    assert_eq!(failed("invalid_request_error"), is(FailureKind::Other));
    let malformed = [
        json!(7),
        json!({"type": "content_block_start", "content_block": {"type": "text"}}),
        delta(0, json!({"type": "text_delta", "text": "a"})),
        start(0, json!({"type": "tool_use", "id": "a"})),
    ];
    for event in malformed {
        assert!(matches!(decode(std::slice::from_ref(&event)), Err(DecodeError::Malformed(_))), "{event}");
    }
    let mut decoder = MessageDecoder::new("m");
    assert!(matches!(decoder.event(None, "{", &mut AnswerEvents::default()), Err(DecodeError::Malformed(_))));
    // The event's name replaces a missing type.
    assert_eq!(decoder.event(Some("message_stop"), "{}", &mut AnswerEvents::default()), Ok(DecodeStep::Complete));
}

#[test]
fn an_endless_answer_is_an_error() {
    let (mut decoder, mut output) = (MessageDecoder::new("m"), AnswerEvents::default());
    let event = |n: u64| start(n, json!({"type": "text", "text": ""})).to_string();
    assert!((0..2000).any(|n| decoder.event(None, &event(n), &mut output).is_err()));
    let (mut decoder, mut output) = (MessageDecoder::new("m"), AnswerEvents::default());
    decoder.event(None, &start(0, json!({"type": "thinking"})).to_string(), &mut output).unwrap();
    let more = delta(0, json!({"type": "signature_delta", "signature": "x".repeat(10_000)})).to_string();
    assert!((0..2000).any(|_| decoder.event(None, &more, &mut output).is_err()));
    let (mut decoder, mut output) = (MessageDecoder::new("m"), AnswerEvents::default());
    let unknown = |n: u64| start(n, json!({"type": "unknown"})).to_string();
    assert!((0..5000).any(|n| decoder.event(None, &unknown(n), &mut output).is_err()));
}
