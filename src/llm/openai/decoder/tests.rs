use serde_json::json;

use super::*;
use crate::llm::ModelEvent::{self, Delta, End, Start, Stop, Usage};

fn decode(events: &[String]) -> Result<(Vec<ModelEvent>, bool), DecodeError> {
    let (mut decoder, mut output) = (ChatDecoder::new("m"), AnswerEvents::default());
    for event in events {
        decoder.event(None, event, &mut output)?;
    }
    let whole = decoder.finish(&mut output);
    assert_eq!(decoder.finish(&mut output), whole, "finishing again changes nothing");
    Ok((output.take(), whole))
}

/// Consecutive deltas of a block are joined.
fn deltas(deltas: &[Value]) -> Vec<ModelEvent> {
    let chunk = |delta: &Value| json!({"choices": [{"index": 0, "delta": delta, "finish_reason": null}]}).to_string();
    let events: Vec<_> = deltas.iter().map(chunk).chain(["[DONE]".to_owned()]).collect();
    let (events, whole) = decode(&events).unwrap();
    assert!(whole);
    let mut together: Vec<ModelEvent> = Vec::new();
    for event in events {
        match (together.last_mut(), event) {
            (Some(Delta { index, text }), Delta { index: next, text: more }) if *index == next => text.push_str(&more),
            (_, event) => together.push(event),
        }
    }
    together
}

fn calls(pieces: &[Value]) -> Vec<(String, String, String)> {
    let deltas = deltas(&pieces.iter().map(|piece| json!({"tool_calls": piece})).collect::<Vec<_>>());
    let mut calls = Vec::new();
    for event in &deltas {
        match event {
            Start { index, block: BlockStart::Call { id, name } } => {
                assert_eq!(*index, calls.len());
                calls.push((id.to_string(), name.clone(), String::new()));
            }
            Delta { index, text } => calls[*index].2.push_str(text),
            End { index, artefact: None } => assert!(*index < calls.len()),
            Stop(reason) => assert_eq!(*reason, StopReason::Calls),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(deltas.iter().filter(|event| matches!(event, End { .. })).count(), calls.len());
    calls
}

fn call(id: &str, name: &str, arguments: &str) -> (String, String, String) {
    (id.to_owned(), name.to_owned(), arguments.to_owned())
}

fn text_block(index: usize, text: &str) -> [ModelEvent; 3] {
    let start = Start { index, block: BlockStart::Text };
    [start, Delta { index, text: text.to_owned() }, End { index, artefact: None }]
}

fn reasoning_block(index: usize, text: &str) -> [ModelEvent; 3] {
    let start = Start { index, block: BlockStart::Reasoning { redacted: false } };
    [start, Delta { index, text: text.to_owned() }, End { index, artefact: None }]
}

#[test]
fn text_and_reasoning_become_blocks_in_order() {
    let events = deltas(&[
        json!({"role": "assistant", "content": "", "refusal": null, "tool_calls": null, "reasoning_content": null}),
        json!({"reasoning_content": "th", "reasoning": "th", "content": null}),
        json!({"reasoning": "ink"}),
        json!({"content": "he"}),
        json!({"content": [{"type": "text", "text": "l"}, {"type": "image"}, {"type": "text", "text": "lo"}]}),
        json!({"reasoning_content": "more"}),
        json!({"content": "end"}),
        json!({}),
        json!(null),
    ]);
    let mut expected = Vec::from(reasoning_block(0, "think"));
    expected.extend(text_block(1, "hello"));
    expected.extend(reasoning_block(2, "more"));
    expected.extend(text_block(3, "end"));
    expected.push(Stop(StopReason::Done));
    assert_eq!(events, expected);
}

#[test]
fn calls_in_openais_form_may_interleave() {
    let made = calls(&[
        json!([{"index": 0, "id": "a", "type": "function", "function": {"name": "f", "arguments": ""}}]),
        json!([{"index": 1, "id": "b", "type": "function", "function": {"name": "g", "arguments": ""}}]),
        json!([{"index": 0, "function": {"arguments": "{\"x\""}}, {"index": 1, "function": {"arguments": "{"}}]),
        json!([{"index": 1, "function": {"arguments": "}"}}, {"index": 0, "function": {"arguments": ":1}"}}]),
    ]);
    assert_eq!(made, [call("a", "f", "{\"x\":1}"), call("b", "g", "{}")]);
}

#[test]
fn calls_are_told_apart_in_the_forms_of_other_servers() {
    // The name and the id in every piece.
    let made = calls(&[
        json!([{"index": 0, "id": "a", "function": {"name": "f", "arguments": "{\"x\":\"}"}}]),
        json!([{"index": 0, "id": "a", "function": {"name": "f", "arguments": "\\\"{"}}]),
        json!([{"index": 0, "id": "a", "function": {"name": "f", "arguments": "\"}"}}]),
        json!([{"index": 0, "id": "a", "function": {"name": "f", "arguments": ""}}]),
    ]);
    assert_eq!(made, [call("a", "f", "{\"x\":\"}\\\"{\"}")]);
    // A new id in every piece.
    let made = calls(&[
        json!([{"index": 0, "id": "a", "function": {"name": "f", "arguments": "{\"x\":"}}]),
        json!([{"index": 0, "id": "b", "function": {"name": "f", "arguments": "1}"}}]),
    ]);
    assert_eq!(made, [call("a", "f", "{\"x\":1}")]);
    // All calls have the index 0, or no index.
    for index in [json!(0), json!(null)] {
        let made = calls(&[
            json!([{"index": index, "id": "a", "function": {"name": "f", "arguments": "{}"}}]),
            json!([{"index": index, "id": "b", "function": {"name": "f", "arguments": "{}"}},
                   {"index": index, "id": "c", "function": {"name": "g", "arguments": ""}}]),
            json!([{"index": index, "id": "d", "function": {"name": "g", "arguments": ""}}]),
        ]);
        assert_eq!(
            made,
            [call("a", "f", "{}"), call("b", "f", "{}"), call("c", "g", "{}"), call("d", "g", "{}")],
            "{index}"
        );
    }
    // Arguments as an object, all forms of missing arguments, and a list with an empty piece at its end.
    let made = calls(&[
        json!([{"id": "a", "function": {"name": "f", "arguments": {"x": [1]}}}]),
        json!([{"id": "b", "function": {"name": "f", "arguments": null}}, {"id": "c", "function": {"name": "f"}}]),
        json!([{"function": {"name": null, "arguments": ""}}, {"index": 7}]),
    ]);
    assert_eq!(made, [call("a", "f", "{\"x\":[1]}"), call("b", "f", "{}"), call("c", "f", "{}")]);
    // No index; the pieces have the call's id, or nothing.
    let made = calls(&[
        json!([{"id": "a", "function": {"name": "f", "arguments": "{"}}]),
        json!([{"id": "b", "function": {"name": "g", "arguments": "{"}}]),
        json!([{"id": "a", "function": {"arguments": "\"x\":1}"}}]),
        json!([{"function": {"arguments": "}"}}]),
    ]);
    assert_eq!(made, [call("a", "f", "{\"x\":1}"), call("b", "g", "{}")]);
    // The name after the arguments.
    let made = calls(&[
        json!([{"index": 0, "function": {"arguments": "{"}}]),
        json!([{"index": 0, "id": "a", "function": {"name": "f", "arguments": "}"}}]),
    ]);
    assert_eq!(made, [call("a", "f", "{}")]);
}

#[test]
fn a_call_without_a_unique_id_gets_one() {
    let made = calls(&[
        json!([{"function": {"name": "f", "arguments": "{}"}}, {"id": "", "function": {"name": "f", "arguments": "{}"}}]),
        json!([{"index": 5, "id": "x", "function": {"name": "g", "arguments": "{}"}}]),
        json!([{"index": 6, "id": "x", "function": {"name": "g", "arguments": "{}"}}]),
    ]);
    assert_eq!(made.len(), 4);
    assert!(made[0].0.starts_with("call_") && made[1].0.starts_with("call_"));
    assert_eq!(made[2].0, "x");
    assert!(made[3].0.starts_with("call_"), "a repeated id is replaced");
    assert_ne!(made[0].0, made[1].0);
}

#[test]
fn extra_content_of_a_call_is_the_artefact_at_its_end() {
    let extra = json!({"google": {"thought_signature": "b64=="}});
    let events = deltas(&[
        json!({"content": "I call"}),
        json!({"tool_calls": [{"index": 0, "id": "a", "function": {"name": "f", "arguments": "{}"}, "extra_content": extra}]}),
        json!({"content": "on"}),
    ]);
    let mut expected = Vec::from(text_block(0, "I call"));
    expected.push(Start { index: 1, block: BlockStart::Call { id: "a".into(), name: "f".to_owned() } });
    expected.push(Delta { index: 1, text: "{}".to_owned() });
    expected.extend(text_block(2, "on"));
    expected.push(End { index: 1, artefact: Some(extra.to_string()) });
    expected.push(Stop(StopReason::Calls));
    assert_eq!(events, expected);
}

#[test]
fn an_answer_is_complete_with_a_reason_or_a_mark_only() {
    let said = json!({"choices": [{"delta": {"content": "a"}}]}).to_string();
    let reason = |reason: &str| json!({"choices": [{"delta": {}, "finish_reason": reason}]}).to_string();
    let stop = |events: &[String]| match decode(events).unwrap() {
        (events, true) => match events.last() {
            Some(Stop(reason)) => Some(reason.clone()),
            other => panic!("{other:?}"),
        },
        (events, false) => {
            assert!(!events.iter().any(|event| matches!(event, End { .. } | Stop(_))), "{events:?}");
            None
        }
    };
    assert_eq!(stop(std::slice::from_ref(&said)), None);
    assert_eq!(stop(&[said.clone(), reason("")]), None);
    assert_eq!(stop(&[said.clone(), "[DONE]".to_owned()]), Some(StopReason::Done));
    assert_eq!(stop(&[said.clone(), " [DONE] ".to_owned()]), Some(StopReason::Done));
    for (text, expected) in [
        ("stop", StopReason::Done),
        ("tool_calls", StopReason::Done),
        ("something new", StopReason::Done),
        ("length", StopReason::Length),
        ("content_filter", StopReason::Refused),
    ] {
        assert_eq!(stop(&[said.clone(), reason(text)]), Some(expected), "{text}");
    }
    let refusal = json!({"choices": [{"delta": {"refusal": "no"}}]}).to_string();
    assert_eq!(stop(&[refusal, reason("stop")]), Some(StopReason::Refused));
    let called = json!({"choices": [{"delta": {"tool_calls": [{"index": 0, "function": {"name": "f"}}]}}]}).to_string();
    for text in ["stop", "tool_calls", "function_call"] {
        assert_eq!(stop(&[called.clone(), reason(text)]), Some(StopReason::Calls), "{text}");
    }
    assert_eq!(stop(&[called, reason("length")]), Some(StopReason::Length));
    let nameless = json!({"choices": [{"delta": {"tool_calls": [{"index": 0, "id": "a"}]}}]}).to_string();
    assert_eq!(stop(&[nameless, "[DONE]".to_owned()]), None);
}

#[test]
fn usage_may_come_with_any_chunk_and_is_reported_once() {
    let usage = json!({"prompt_tokens": 9, "completion_tokens": 4, "total_tokens": 13,
        "prompt_tokens_details": {"cached_tokens": 5}, "completion_tokens_details": {"reasoning_tokens": 3}});
    let events = [
        json!({"choices": [], "usage": null}).to_string(),
        json!({"choices": [{"delta": {}, "finish_reason": "stop"}], "usage": usage}).to_string(),
        json!({"choices": [], "usage": usage}).to_string(),
        json!({"usage": usage}).to_string(),
    ];
    let expected = TokenUsage {
        provider: Some("openai".to_owned()),
        model: Some("m".to_owned()),
        input_tokens: Some(9),
        output_tokens: Some(4),
        total_tokens: Some(13),
        reasoning_tokens: Some(3),
        cached_input_tokens: Some(5),
        cache_write_input_tokens: None,
    };
    assert_eq!(decode(&events).unwrap().0, [Usage(expected), Stop(StopReason::Done)]);
}

#[test]
fn only_the_first_choice_is_read() {
    let event = json!({"choices": [{"index": 1, "delta": {"content": "b"}}, {"index": 0, "delta": {"content": "a"}}]});
    let (events, _) = decode(&[event.to_string(), "[DONE]".to_owned()]).unwrap();
    assert_eq!(events[1], Delta { index: 0, text: "a".to_owned() });
}

#[test]
fn errors_are_recognised_in_all_forms() {
    let failed = |event: Value| decode(&[event.to_string()]).unwrap_err();
    let is = |kind, message: &str| DecodeError::Failed { kind, message: message.to_owned() };
    assert_eq!(failed(json!({"error": {"message": "no", "code": 400}})), is(FailureKind::Other, "no"));
    assert_eq!(failed(json!({"error": {"message": "no", "code": 502}})), is(FailureKind::Unavailable, "no"));
    assert_eq!(failed(json!({"error": {"message": "no", "code": "429"}})), is(FailureKind::RateLimited, "no"));
    assert_eq!(
        failed(json!({"error": {"message": "no", "type": "server_error", "code": null}})),
        is(FailureKind::Unavailable, "no")
    );
    let quota = json!({"error": {"message": "no", "type": "rate_limit_error", "code": "insufficient_quota"}});
    assert_eq!(failed(quota), is(FailureKind::Other, "no"));
    assert_eq!(failed(json!({"error": "no"})), is(FailureKind::Other, "no"));
    for malformed in ["{", "7", "[]", "\u{0}", "{\"choices\":[}"] {
        assert!(matches!(decode(&[malformed.to_owned()]), Err(DecodeError::Malformed(_))), "{malformed}");
    }
    // Values of unknown form neither panic nor complete an answer.
    for odd in [
        "{}",
        "{\"error\":null}",
        "{\"choices\":7}",
        "{\"choices\":[7,{\"delta\":[]},{\"delta\":{\"tool_calls\":[7,{\"function\":7}]}}]}",
    ] {
        assert_eq!(decode(&[odd.to_owned()]).unwrap(), (Vec::new(), false), "{odd}");
    }
}

#[test]
fn an_endless_answer_is_an_error() {
    let (mut decoder, mut output) = (ChatDecoder::new("m"), AnswerEvents::default());
    let mut failed = |piece: &dyn Fn(usize) -> Value| {
        (0..5000).find_map(|n| {
            let event = json!({"choices": [{"delta": {"tool_calls": [piece(n)]}}]}).to_string();
            decoder.event(None, &event, &mut output).err()
        })
    };
    assert!(failed(&|n| json!({"index": n, "id": n.to_string(), "function": {"name": "f"}})).is_some());
    let (mut decoder, mut output) = (ChatDecoder::new("m"), AnswerEvents::default());
    let event =
        json!({"choices": [{"delta": {"tool_calls": [{"index": 0, "function": {"arguments": "x".repeat(10_000)}}]}}]});
    assert!((0..2000).any(|_| decoder.event(None, &event.to_string(), &mut output).is_err()));
    let (mut decoder, mut output) = (ChatDecoder::new("m"), AnswerEvents::default());
    let event = json!({"choices": [{"delta": {"content": "a", "reasoning": "b"}}]}).to_string();
    assert!((0..2000).any(|_| decoder.event(None, &event, &mut output).is_err()));
}
