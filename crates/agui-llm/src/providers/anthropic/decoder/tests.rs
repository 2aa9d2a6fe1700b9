use serde_json::json;

use super::*;
use crate::{
    ModelEvent,
    ModelEvent::{Citation, Delta, End, Start, Stop, Usage},
    refusal::FailureKind,
};
use agui_protocol::TokenUsage;

fn decode(events: &[Value]) -> Result<(Vec<ModelEvent>, bool), DecodeFault> {
    let (mut decoder, mut output) = (MessageDecoder::new("m"), AnswerEvents::default());
    for event in events {
        decoder.event(None, &event.to_string(), &mut output)?;
    }
    let whole = decoder.finish(&mut output);
    Ok((Vec::from(std::mem::take(&mut output.events)), whole))
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
    let kind = match artefact {
        Some("sig" | "sig==" | "s") => SIGNATURE,
        Some(json) if json.starts_with('{') => SERVER_BLOCK,
        _ => REDACTED_THINKING,
    };
    End { index, artefact: artefact.map(|value| Artefact::new(kind, value)) }
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
        delta(2, json!({"type": "input_json_delta", "partial_json": "{\"q\""})),
        delta(2, json!({"type": "input_json_delta", "partial_json": ":1}"})),
        stop(2),
        start(3, json!({"type": "text", "text": ""})),
        delta(3, json!({"type": "text_delta", "text": "well"})),
        delta(3, json!({"type": "citations_delta", "citation": {"url": "u"}})),
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
        Start { index: 2, block: BlockStart::Reasoning { redacted: true } },
        end(2, Some(r#"{"type":"server_tool_use","id":"s","name":"web_search","input":{"q":1}}"#)),
        Start { index: 3, block: BlockStart::Text },
        said(3, "well"),
        Citation { index: 3, citation: json!({"url": "u"}) },
        end(3, None),
        Start { index: 4, block: call("a", "f") },
        said(4, "{\"x\""),
        said(4, ":1}"),
        end(4, None),
        Start { index: 5, block: call("b", "g") },
        said(5, "{}"),
        end(5, None),
        Start { index: 6, block: call("c", "h") },
        said(6, "{\"y\":2}"),
        end(6, None),
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
fn text_continues_in_the_next_block_of_text() {
    let (events, whole) = decode(&[
        start(0, json!({"type": "text", "text": ""})),
        delta(0, json!({"type": "text_delta", "text": "It says "})),
        stop(0),
        start(1, json!({"type": "text", "text": "that", "citations": [{"n": 1}]})),
        delta(1, json!({"type": "citations_delta", "citation": {"n": 2}})),
        stop(1),
        start(2, json!({"type": "something_new", "text": "x"})),
        delta(2, json!({"type": "something_delta"})),
        stop(2),
        start(3, json!({"type": "text", "text": "."})),
        stop(3),
        start(4, json!({"type": "thinking", "thinking": "hm"})),
        stop(4),
        start(5, json!({"type": "text", "text": "So"})),
        stop(5),
        reason("end_turn"),
        message_stop(),
    ])
    .unwrap();
    assert!(whole);
    let cited = |n: u64| Citation { index: 0, citation: json!({"n": n}) };
    let expected = [
        Start { index: 0, block: BlockStart::Text },
        said(0, "It says "),
        said(0, "that"),
        cited(1),
        cited(2),
        said(0, "."),
        end(0, None),
        Start { index: 1, block: BlockStart::Reasoning { redacted: false } },
        said(1, "hm"),
        end(1, None),
        Start { index: 2, block: BlockStart::Text },
        said(2, "So"),
        end(2, None),
        Stop(StopReason::Done),
    ];
    assert_eq!(events, expected);
}

#[test]
fn the_content_of_a_paused_answer_is_kept_as_it_came() {
    let found = json!({"type": "web_search_tool_result", "tool_use_id": "s", "content": [{"encrypted_content": "e"}]});
    let stream = [
        start(0, json!({"type": "thinking", "thinking": "", "signature": ""})),
        delta(0, json!({"type": "thinking_delta", "thinking": "hm"})),
        delta(0, json!({"type": "signature_delta", "signature": "sig"})),
        stop(0),
        start(1, json!({"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}})),
        delta(1, json!({"type": "input_json_delta", "partial_json": "{\"query\""})),
        delta(1, json!({"type": "input_json_delta", "partial_json": ":\"a\"}"})),
        stop(1),
        start(2, found.clone()),
        stop(2),
        start(3, json!({"type": "new", "member": [1]})),
        stop(3),
        start(4, json!({"type": "server_tool_use", "id": "t", "name": "web_search", "input": {}})),
        stop(4),
        start(5, json!({"type": "text", "text": ""})),
        delta(5, json!({"type": "text_delta", "text": "So"})),
        delta(5, json!({"type": "citations_delta", "citation": {"url": "u"}})),
        delta(5, json!({"type": "text_delta", "text": " it is"})),
        delta(5, json!({"type": "citations_delta", "citation": {"url": "v"}})),
    ];
    let decode = |end: &str| {
        let paused = PausedContent::default();
        let (mut decoder, mut output) =
            (MessageDecoder::new("m").recording(paused.clone()), AnswerEvents::default());
        for event in stream.iter().chain(&[reason(end)]) {
            decoder.event(None, &event.to_string(), &mut output).unwrap();
        }
        assert!(decoder.finish(&mut output));
        paused.get().cloned()
    };
    let expected = vec![
        json!({"type": "thinking", "thinking": "hm", "signature": "sig"}),
        json!({"type": "server_tool_use", "id": "s", "name": "web_search", "input": {"query": "a"}}),
        found,
        json!({"type": "new", "member": [1]}),
        json!({"type": "server_tool_use", "id": "t", "name": "web_search", "input": {}}),
        json!({"type": "text", "text": "So it is", "citations": [{"url": "u"}, {"url": "v"}]}),
    ];
    assert_eq!(decode("pause_turn"), Some(expected));
    assert_eq!(decode("end_turn"), None);
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
    let base = TokenUsage {
        provider: Some("anthropic".to_owned()),
        model: Some("m".to_owned()),
        ..TokenUsage::default()
    };
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
    assert_eq!(
        counts(&[ended(json!({"output_tokens": 4}))]),
        [TokenUsage { output_tokens: Some(4), ..base }]
    );
}

#[test]
fn errors_are_recognised_in_all_forms() {
    let failed = |kind: &str| {
        decode(&[json!({"type": "error", "error": {"type": kind, "message": "no"}})]).unwrap_err()
    };
    let is = |kind| DecodeFault::Failed { kind, message: "no".to_owned() };
    assert_eq!(failed("overloaded_error"), is(FailureKind::Unavailable));
    assert_eq!(failed("api_error"), is(FailureKind::Unavailable));
    assert_eq!(failed("rate_limit_error"), is(FailureKind::RateLimited));
    assert_eq!(failed("invalid_request_error"), is(FailureKind::Other));
    for (error, message) in [(json!("no"), "no"), (json!({"type": "x"}), r#"{"type":"x"}"#)] {
        let failed = decode(&[json!({"type": "error", "error": error})]).unwrap_err();
        assert_eq!(
            failed,
            DecodeFault::Failed { kind: FailureKind::Other, message: message.to_owned() }
        );
    }
    let malformed = [
        json!(7),
        json!({"type": "content_block_start", "content_block": {"type": "text"}}),
        delta(0, json!({"type": "text_delta", "text": "a"})),
        start(0, json!({"type": "tool_use", "id": "a"})),
    ];
    for event in malformed {
        assert!(
            matches!(decode(std::slice::from_ref(&event)), Err(DecodeFault::Malformed(_))),
            "{event}"
        );
    }
    let mut decoder = MessageDecoder::new("m");
    assert!(matches!(
        decoder.event(None, "{", &mut AnswerEvents::default()),
        Err(DecodeFault::Malformed(_))
    ));
    // The event's name replaces a missing type.
    assert_eq!(
        decoder.event(Some("message_stop"), "{}", &mut AnswerEvents::default()),
        Ok(DecodeStep::Complete)
    );
}

#[test]
fn an_endless_answer_is_an_error() {
    let (mut decoder, mut output) = (MessageDecoder::new("m"), AnswerEvents::default());
    let event = |n: u64| start(n, json!({"type": "text", "text": ""})).to_string();
    assert!((0..2000).any(|n| decoder.event(None, &event(n), &mut output).is_err()));
    let (mut decoder, mut output) = (MessageDecoder::new("m"), AnswerEvents::default());
    decoder.event(None, &start(0, json!({"type": "thinking"})).to_string(), &mut output).unwrap();
    let more =
        delta(0, json!({"type": "signature_delta", "signature": "x".repeat(10_000)})).to_string();
    assert!((0..2000).any(|_| decoder.event(None, &more, &mut output).is_err()));
    let (mut decoder, mut output) = (MessageDecoder::new("m"), AnswerEvents::default());
    let unknown = |n: u64| start(n, json!({"type": "unknown"})).to_string();
    assert!((0..5000).any(|n| decoder.event(None, &unknown(n), &mut output).is_err()));
}

#[test]
fn the_recorded_blocks_of_an_answer_are_kept_within_a_limit() {
    let fails = |event: &dyn Fn(u64) -> Value| {
        let mut decoder = MessageDecoder::new("m").recording(PausedContent::default());
        let mut output = AnswerEvents::default();
        let event = |n| event(n).to_string();
        (0..1000).any(|n| {
            output.events.clear();
            decoder.event(None, &event(n), &mut output).is_err()
        })
    };
    let unknown = json!({"type": "unknown", "data": "x".repeat(100_000)});
    // The index is used again, so the number of open blocks stays the same.
    assert!(fails(&|_| start(0, unknown.clone())));
    let many = |n: u64| {
        if n.is_multiple_of(2) { start(n, json!({"type": "unknown"})) } else { stop(n - 1) }
    };
    let (mut decoder, mut output) =
        (MessageDecoder::new("m").recording(PausedContent::default()), AnswerEvents::default());
    assert!((0..400_000).any(|n| decoder.event(None, &many(n).to_string(), &mut output).is_err()));
}

#[test]
fn a_block_of_a_server_tool_is_counted_once() {
    let found =
        json!({"type": "web_fetch_tool_result", "tool_use_id": "s", "data": "x".repeat(5 << 20)});
    for is_recorded in [false, true] {
        let mut decoder = MessageDecoder::new("m");
        if is_recorded {
            decoder = decoder.recording(PausedContent::default());
        }
        let mut output = AnswerEvents::default();
        for event in [start(0, found.clone()), stop(0)] {
            decoder.event(None, &event.to_string(), &mut output).unwrap();
        }
        let [_, End { artefact: Some(artefact), .. }] =
            &Vec::from(std::mem::take(&mut output.events))[..]
        else {
            panic!()
        };
        assert_eq!(*artefact, Artefact::new(SERVER_BLOCK, found.to_string()));
        assert!(decoder.event(None, &start(1, found.clone()).to_string(), &mut output).is_err());
    }
}

#[test]
fn a_block_ends_when_its_index_is_used_again() {
    let server_call =
        json!({"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}});
    for second in [server_call, json!({"type": "unknown"}), json!({"type": "text", "text": ""})] {
        let thinking = start(0, json!({"type": "thinking", "thinking": "hm", "signature": "sig"}));
        let (events, _) = decode(&[thinking, start(0, second.clone()), message_stop()]).unwrap();
        assert_eq!(events[2], end(0, Some("sig")), "{second}: {events:?}");
    }
}
