use serde_json::json;

use super::*;
use crate::{
    Artefact, BlockStart, ModelEvent,
    ModelEvent::{Citation, Delta, End, Start, Stop, Usage},
};
use agui_protocol::TokenUsage;

fn decode(events: &[Value]) -> Result<(Vec<ModelEvent>, bool), DecodeFault> {
    let (mut decoder, mut output) = (ResponsesDecoder::new("m"), AnswerEvents::default());
    for event in events {
        decoder.event(event["type"].as_str(), &event.to_string(), &mut output)?;
    }
    let whole = decoder.finish(&mut output);
    Ok((Vec::from(std::mem::take(&mut output.events)), whole))
}

/// The events of a complete answer.
fn answer(mut events: Vec<Value>) -> Vec<ModelEvent> {
    events.insert(
        0,
        json!({"type": "response.created", "response": {"status": "in_progress", "output": []}}),
    );
    events.push(completed());
    let (events, whole) = decode(&events).unwrap();
    assert!(whole);
    events
}

fn completed() -> Value {
    json!({"type": "response.completed", "response": {"status": "completed", "output": []}})
}

fn added(index: u64, item: Value) -> Value {
    json!({"type": "response.output_item.added", "output_index": index, "item": item})
}

fn done(index: u64, item: Value) -> Value {
    json!({"type": "response.output_item.done", "output_index": index, "item": item})
}

fn delta(kind: &str, index: u64, delta: &str) -> Value {
    json!({"type": format!("response.{kind}.delta"), "output_index": index, "content_index": 0, "summary_index": 0,
        "delta": delta})
}

fn message(index: u64, words: &str) -> [Value; 3] {
    let content = json!([{"type": "output_text", "text": words, "annotations": []}]);
    [
        added(index, json!({"type": "message", "id": "msg", "role": "assistant", "content": []})),
        delta("output_text", index, words),
        done(
            index,
            json!({"type": "message", "id": "msg", "role": "assistant", "content": content}),
        ),
    ]
}

fn reasoning(index: u64, summary: &[&str], encrypted: Option<&str>) -> Vec<Value> {
    let parts: Vec<_> =
        summary.iter().map(|text| json!({"type": "summary_text", "text": text})).collect();
    let mut events = vec![added(index, json!({"type": "reasoning", "id": "rs_1", "summary": []}))];
    for (part, text) in summary.iter().enumerate() {
        events.push(json!({"type": "response.reasoning_summary_part.added", "output_index": index,
            "summary_index": part, "part": {"type": "summary_text", "text": ""}}));
        events.push(json!({"type": "response.reasoning_summary_text.delta", "output_index": index,
            "summary_index": part, "delta": text}));
    }
    let item = json!({"type": "reasoning", "id": "rs_1", "summary": parts, "encrypted_content": encrypted});
    events.push(done(index, item));
    events
}

fn block(
    index: usize,
    block: BlockStart,
    deltas: &[&str],
    artefact: Option<&str>,
) -> Vec<ModelEvent> {
    let mut events = vec![Start { index, block }];
    events.extend(deltas.iter().map(|text| Delta { index, text: (*text).to_owned() }));
    let artefact = artefact.map(|value| Artefact::new("openai.encrypted_content", value));
    events.push(End { index, artefact });
    events
}

fn text_block(index: usize, deltas: &[&str]) -> Vec<ModelEvent> {
    block(index, BlockStart::Text, deltas, None)
}

const SHOWN: BlockStart = BlockStart::Reasoning { redacted: false };
const ARTEFACT: &str = r#"{"id":"rs_1","encrypted_content":"gAAA"}"#;

#[test]
fn text_becomes_a_block_and_unknown_events_are_ignored() {
    let mut events = vec![
        json!({"type": "response.in_progress"}),
        json!({"type": "keepalive", "sequence_number": 3}),
        json!({"type": "response.something.new", "output_index": 9, "delta": "x"}),
    ];
    events.extend(message(0, "hello"));
    events.insert(5, delta("output_text", 0, " there"));
    let mut expected = text_block(0, &["hello", " there"]);
    expected.push(Stop(StopReason::Done));
    assert_eq!(answer(events), expected);
}

#[test]
fn reasoning_shows_its_summaries_and_its_item_is_the_artefact() {
    let mut events = reasoning(0, &["First.", "Second."], Some("gAAA"));
    events.extend(message(1, "hi"));
    let mut expected = block(0, SHOWN, &["First.", "\n\n", "Second."], Some(ARTEFACT));
    expected.extend(text_block(1, &["hi"]));
    expected.push(Stop(StopReason::Done));
    assert_eq!(answer(events), expected);
}

#[test]
fn reasoning_without_a_summary_has_its_artefact_alone_and_without_both_is_nothing() {
    let mut events = reasoning(0, &[], Some("gAAA"));
    events.extend(message(1, "hi"));
    let mut expected = block(0, SHOWN, &[], Some(ARTEFACT));
    expected.extend(text_block(1, &["hi"]));
    expected.push(Stop(StopReason::Done));
    assert_eq!(answer(events), expected);

    let mut events = reasoning(0, &[], None);
    events.extend(message(1, "hi"));
    let mut expected = text_block(0, &["hi"]);
    expected.push(Stop(StopReason::Done));
    assert_eq!(answer(events), expected);
}

#[test]
fn reasoning_of_open_models_is_shown() {
    let mut events = vec![added(0, json!({"type": "reasoning", "id": "rs"}))];
    events.extend([delta("reasoning_text", 0, "I th"), delta("reasoning_text", 0, "ink")]);
    events.push(done(
        0,
        json!({"type": "reasoning", "id": "rs", "content": [{"type": "reasoning_text", "text": "I think"}]}),
    ));
    let mut expected = block(0, SHOWN, &["I th", "ink"], None);
    expected.push(Stop(StopReason::Done));
    assert_eq!(answer(events), expected);
}

#[test]
fn parallel_calls_may_interleave() {
    let call = |id: &str, name: &str, arguments: &str| json!({"type": "function_call", "id": "fc", "call_id": id, "name": name, "arguments": arguments});
    let events = vec![
        added(0, call("a", "f", "")),
        added(1, call("b", "g", "")),
        delta("function_call_arguments", 1, "{}"),
        delta("function_call_arguments", 0, "{\"x\""),
        delta("function_call_arguments", 0, ":1}"),
        done(1, call("b", "g", "{}")),
        json!({"type": "response.function_call_arguments.done", "output_index": 0, "arguments": "{\"x\":1}"}),
        done(0, call("a", "f", "{\"x\":1}")),
    ];
    let start = |index, id: &str, name: &str| {
        let block = BlockStart::Call { id: id.into(), name: name.to_owned() };
        Start { index, block }
    };
    let piece = |index, text: &str| Delta { index, text: text.to_owned() };
    let expected = [
        start(0, "a", "f"),
        start(1, "b", "g"),
        piece(1, "{}"),
        piece(0, "{\"x\""),
        piece(0, ":1}"),
        End { index: 1, artefact: None },
        End { index: 0, artefact: None },
        Stop(StopReason::Calls),
    ];
    assert_eq!(answer(events), expected);
}

#[test]
fn what_was_not_streamed_comes_with_the_complete_item() {
    // Some servers send no deltas, and some announce no items.
    let text = json!({"type": "message", "content": [{"type": "output_text", "text": "hi"}]});
    let thought = json!({"type": "reasoning", "id": "rs", "summary": [{"type": "summary_text", "text": "a"},
        {"type": "summary_text", "text": "b"}]});
    let call = |arguments: &str| json!({"type": "function_call", "call_id": "c", "name": "f", "arguments": arguments});
    let events = answer(vec![
        done(0, thought),
        added(1, json!({"type": "message"})),
        delta("output_text", 9, "hi"),
        done(1, text),
        done(2, call("{\"x\":2}")),
        added(3, call("")),
        done(3, call("")),
    ]);
    let mut expected = block(0, SHOWN, &["a", "\n\n", "b"], None);
    expected.extend(text_block(1, &["hi"]));
    let start = || BlockStart::Call { id: "c".into(), name: "f".to_owned() };
    expected.extend(block(2, start(), &["{\"x\":2}"], None));
    expected.extend(block(3, start(), &["{}"], None));
    expected.push(Stop(StopReason::Calls));
    assert_eq!(events, expected);
}

#[test]
fn the_providers_own_tools_are_hidden_with_the_reasoning_before_them() {
    let search = json!({"type": "web_search_call", "id": "ws", "status": "completed", "action": {"type": "search"}});
    let mut events = reasoning(0, &["I search."], Some("gone"));
    events.push(added(1, search.clone()));
    events.push(
        json!({"type": "response.web_search_call.searching", "output_index": 1, "item_id": "ws"}),
    );
    events.push(done(1, search));
    events.push(added(2, json!({"type": "code_interpreter_call", "id": "ci"})));
    events.push(delta("code_interpreter_call_code", 2, "print(1)"));
    events.push(done(2, json!({"type": "code_interpreter_call", "id": "ci", "code": "print(1)"})));
    events.extend(reasoning(3, &[], Some("gAAA")));
    events.extend(message(4, "found"));
    let mut expected = block(0, SHOWN, &["I search."], None);
    expected.extend(block(1, SHOWN, &[], Some(ARTEFACT)));
    expected.extend(text_block(2, &["found"]));
    expected.push(Stop(StopReason::Done));
    assert_eq!(answer(events), expected);
}

#[test]
fn sources_are_citations_and_are_sent_once() {
    let source = |url: &str| json!({"type": "url_citation", "url": url, "title": "t", "start_index": 0, "end_index": 1});
    let [start, words, _] = message(0, "hi");
    let annotation = json!({"type": "response.output_text.annotation.added", "output_index": 0, "content_index": 0,
        "annotation_index": 0, "annotation": source("a")});
    let content =
        json!([{"type": "output_text", "text": "hi", "annotations": [source("a"), source("b")]}]);
    let events = answer(vec![
        start,
        words,
        annotation,
        done(0, json!({"type": "message", "content": content})),
    ]);
    let expected = [
        Start { index: 0, block: BlockStart::Text },
        Delta { index: 0, text: "hi".to_owned() },
        Citation { index: 0, citation: source("a") },
        Citation { index: 0, citation: source("b") },
        End { index: 0, artefact: None },
        Stop(StopReason::Done),
    ];
    assert_eq!(events, expected);
}

#[test]
fn the_reason_of_the_end_is_read() {
    let stop = |last: Value| {
        let mut events = vec![added(0, json!({"type": "message"})), delta("output_text", 0, "cut")];
        events.push(last);
        match decode(&events).unwrap() {
            (events, true) => {
                assert!(
                    matches!(&events[events.len() - 2], End { index: 0, artefact: None }),
                    "{events:?}"
                );
                events.last().cloned()
            }
            (_, false) => None,
        }
    };
    let incomplete = |reason: &str| json!({"type": "response.incomplete", "response": {"status": "incomplete", "incomplete_details": {"reason": reason}}});
    assert_eq!(stop(incomplete("max_output_tokens")), Some(Stop(StopReason::Length)));
    assert_eq!(stop(incomplete("content_filter")), Some(Stop(StopReason::Filtered)));
    assert_eq!(stop(json!({"type": "response.incomplete"})), Some(Stop(StopReason::Length)));
    let odd = json!({"type": "response.completed", "response": {"status": "incomplete"}});
    assert_eq!(stop(odd), Some(Stop(StopReason::Length)));
    assert_eq!(stop(completed()), Some(Stop(StopReason::Done)));
    assert_eq!(stop(json!({"type": "response.in_progress"})), None);
}

#[test]
fn cut_off_arguments_stay_cut_off() {
    let call = json!({"type": "function_call", "call_id": "c", "name": "f", "arguments": ""});
    let incomplete = json!({"type": "response.incomplete", "response": {"incomplete_details": {"reason": "max_output_tokens"}}});
    let (events, whole) =
        decode(&[added(0, call), delta("function_call_arguments", 0, "{\"x\":"), incomplete])
            .unwrap();
    assert!(whole);
    assert_eq!(
        events[1..],
        [
            Delta { index: 0, text: "{\"x\":".to_owned() },
            End { index: 0, artefact: None },
            Stop(StopReason::Length)
        ]
    );
}

#[test]
fn a_refusal_is_text_and_the_reason_of_the_end() {
    let refusal = json!({"type": "message", "content": [{"type": "refusal", "refusal": "No."}]});
    let streamed = answer(vec![
        added(0, json!({"type": "message"})),
        delta("refusal", 0, "No."),
        done(0, refusal.clone()),
    ]);
    let mut expected = text_block(0, &["No."]);
    expected.push(Stop(StopReason::Refused));
    assert_eq!(streamed, expected);
    assert_eq!(answer(vec![done(0, refusal)]), expected);
}

#[test]
fn failures_are_told_apart() {
    let failed = |event: Value| decode(&[event]).unwrap_err();
    let is = |kind, message: &str| DecodeFault::Failed { kind, message: message.to_owned() };
    let response = |code: &str| json!({"type": "response.failed", "response": {"status": "failed", "error": {"code": code, "message": "no"}}});
    assert_eq!(failed(response("server_error")), is(FailureKind::Unavailable, "no"));
    assert_eq!(failed(response("rate_limit_exceeded")), is(FailureKind::RateLimited, "no"));
    assert_eq!(failed(response("invalid_prompt")), is(FailureKind::Other, "no"));
    let error = json!({"type": "error", "code": "server_error", "message": "no", "param": null});
    assert_eq!(failed(error), is(FailureKind::Unavailable, "no"));
    let nested = json!({"type": "error", "error": {"type": "invalid_request_error", "code": "insufficient_quota", "message": "no"}});
    assert_eq!(failed(nested), is(FailureKind::QuotaUsedUp, "no"));
    // The whole response is not the message: it repeats the instructions.
    let without_error = json!({"type": "response.failed", "response": {"status": "failed", "error": null,
        "instructions": "a secret"}});
    assert_eq!(failed(without_error), is(FailureKind::Other, "it gave no reason"));
    assert_eq!(failed(json!({"type": "error", "error": "no"})), is(FailureKind::Other, "no"));
    let DecodeFault::Failed { message, .. } = failed(json!({"type": "error", "code": "x"})) else {
        panic!()
    };
    assert!(message.contains(r#""code":"x""#), "{message}");
    assert!(matches!(failed(json!({"type": "response.cancelled"})), DecodeFault::Failed { .. }));
}

#[test]
fn usage_comes_with_the_end() {
    let usage = json!({"input_tokens": 9, "input_tokens_details": {"cached_tokens": 5, "cache_write_tokens": 2},
        "output_tokens": 4, "output_tokens_details": {"reasoning_tokens": 3}, "total_tokens": 13});
    let end =
        json!({"type": "response.completed", "response": {"status": "completed", "usage": usage}});
    let expected = TokenUsage {
        provider: Some("openai".to_owned()),
        model: Some("m".to_owned()),
        input_tokens: Some(9),
        output_tokens: Some(4),
        total_tokens: Some(13),
        reasoning_tokens: Some(3),
        cached_input_tokens: Some(5),
        cache_write_input_tokens: Some(2),
    };
    assert_eq!(decode(&[end]).unwrap().0, [Usage(expected), Stop(StopReason::Done)]);
}

#[test]
fn odd_events_are_refused_or_ignored_but_never_panic() {
    let mut output = AnswerEvents::default();
    let mut raw = |data: &str| ResponsesDecoder::new("m").event(None, data, &mut output);
    for malformed in ["{", "7", "[]", "\u{0}"] {
        assert!(matches!(raw(malformed), Err(DecodeFault::Malformed(_))), "{malformed}");
    }
    for ignored in ["", "{}", "{\"type\":7}", "{\"type\":\"\"}"] {
        assert_eq!(raw(ignored), Ok(DecodeStep::More), "{ignored}");
    }
    assert_eq!(raw("[DONE]"), Ok(DecodeStep::Complete), "an empty answer");
    for kind in [
        "output_item.added",
        "output_item.done",
        "output_text.delta",
        "function_call_arguments.delta",
    ] {
        let event = json!({"type": format!("response.{kind}"), "item": 7, "delta": []});
        assert_eq!(decode(&[event]).unwrap(), (Vec::new(), false), "{kind}: no index");
        let event =
            json!({"type": format!("response.{kind}"), "output_index": 0, "item": [], "delta": {}});
        assert_eq!(decode(&[event]).unwrap(), (Vec::new(), false), "{kind}");
    }
    let nameless = added(0, json!({"type": "function_call", "call_id": "c"}));
    assert!(matches!(decode(&[nameless]), Err(DecodeFault::Malformed(_))));
}

#[test]
fn an_endless_answer_is_an_error() {
    let endless = |event: &dyn Fn(u64) -> Value| {
        let (mut decoder, mut output) = (ResponsesDecoder::new("m"), AnswerEvents::default());
        (0..5000).any(|n| decoder.event(None, &event(n).to_string(), &mut output).is_err())
    };
    assert!(endless(&|n| added(n, json!({"type": "message"}))));
    assert!(endless(&|n| done(n, json!({"type": "function_call", "name": "f"}))));
    // Many small items of reasoning are limited, too: each item reads all delayed ends.
    assert!(endless(&|n| done(
        n,
        json!({"type": "reasoning", "id": "rs", "encrypted_content": "x"})
    )));
    let encrypted = "x".repeat(10_000);
    assert!(endless(&|n| done(
        n,
        json!({"type": "reasoning", "id": "rs", "encrypted_content": encrypted})
    )));
    let part = |n| json!({"type": "response.output_text.delta", "output_index": 0, "content_index": n, "delta": "a"});
    assert!(endless(&|n| if n == 0 { added(0, json!({"type": "message"})) } else { part(n) }));
}

#[test]
fn the_picture_of_a_call_is_a_medium() {
    let call = |format: Value, result: Value| json!({"type": "image_generation_call", "id": "ig", "output_format": format, "result": result});
    let events = answer(vec![
        added(0, call(Value::Null, Value::Null)),
        done(0, call(json!("webp"), json!("AAAA"))),
        done(1, call(Value::Null, json!("BBBB"))),
        done(2, call(Value::Null, Value::Null)),
    ]);
    let media = |media_type: &str, base64: &str| ModelEvent::Media {
        media_type: media_type.to_owned(),
        base64: base64.to_owned(),
    };
    assert_eq!(
        events,
        [media("image/webp", "AAAA"), media("image/png", "BBBB"), Stop(StopReason::Done)]
    );
}

/// The bytes of llama.cpp's server, without the members that are not read. It sends no `output_index`:
/// <https://github.com/ggml-org/llama.cpp/blob/master/tools/server/server-task.cpp>.
const LLAMA_CPP: &str = r#"
{"type":"response.created","response":{"id":"resp_1","object":"response","status":"in_progress"}}
{"type":"response.in_progress","response":{"id":"resp_1","object":"response","status":"in_progress"}}
{"type":"response.output_item.added","item":{"id":"rs_1","summary":[],"type":"reasoning","content":[],"encrypted_content":"","status":"in_progress"}}
{"type":"response.reasoning_text.delta","delta":"Hm","item_id":"rs_1"}
{"type":"response.output_item.done","item":{"type":"reasoning","id":"rs_1","summary":[],"content":[{"text":"Hm","type":"reasoning_text"}],"encrypted_content":""}}
{"type":"response.output_item.added","item":{"content":[],"id":"msg_1","role":"assistant","status":"in_progress","type":"message"}}
{"type":"response.content_part.added","item_id":"msg_1","part":{"type":"output_text","text":""}}
{"type":"response.output_text.delta","item_id":"msg_1","delta":"Hi"}
{"type":"response.output_text.delta","item_id":"msg_1","delta":"!"}
{"type":"response.output_text.done","item_id":"msg_1","text":"Hi!"}
{"type":"response.content_part.done","item_id":"msg_1","part":{"type":"output_text","annotations":[],"logprobs":[],"text":"Hi!"}}
{"type":"response.output_item.done","item":{"type":"message","status":"completed","id":"msg_1","content":[{"type":"output_text","annotations":[],"logprobs":[],"text":"Hi!"}],"role":"assistant"}}
{"type":"response.output_item.added","item":{"arguments":"","call_id":"fc_1","name":"f","type":"function_call","status":"in_progress"}}
{"type":"response.function_call_arguments.delta","delta":"{\"a\":","item_id":"fc_1"}
{"type":"response.output_item.added","item":{"arguments":"","call_id":"fc_2","name":"g","type":"function_call","status":"in_progress"}}
{"type":"response.function_call_arguments.delta","delta":"{}","item_id":"fc_2"}
{"type":"response.output_item.done","item":{"type":"function_call","status":"completed","arguments":"{}","call_id":"fc_2","name":"g"}}
{"type":"response.function_call_arguments.delta","delta":"1}","item_id":"fc_1"}
{"type":"response.output_item.done","item":{"type":"function_call","status":"completed","arguments":"{\"a\":1}","call_id":"fc_1","name":"f"}}
{"type":"response.completed","response":{"id":"resp_1","object":"response","status":"completed","output":[{"type":"message","content":[{"type":"output_text","text":"Hi!"}]}],"usage":{"input_tokens":3,"output_tokens":4,"total_tokens":7}}}
"#;

#[test]
fn the_items_of_a_stream_without_indices_are_told_apart() {
    let events: Vec<Value> =
        LLAMA_CPP.trim().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let (events, is_whole) = decode(&events).unwrap();
    let mut texts = std::collections::BTreeMap::<usize, String>::new();
    for event in &events {
        match event {
            Start { index, .. } => drop(texts.insert(*index, String::new())),
            Delta { index, text } => texts.get_mut(index).unwrap().push_str(text),
            _ => {}
        }
    }
    assert_eq!(texts.into_values().collect::<Vec<_>>(), ["Hm", "Hi!", r#"{"a":1}"#, "{}"]);
    assert!(is_whole && events.contains(&Stop(StopReason::Calls)), "{events:?}");
}

#[test]
fn texts_come_with_deltas_alone_or_with_the_end_alone() {
    let bare =
        |kind: &str, delta: &str| json!({"type": format!("response.{kind}.delta"), "delta": delta});
    let mut expected = block(0, SHOWN, &["Hm"], None);
    expected.extend([
        Start { index: 1, block: BlockStart::Text },
        Delta { index: 1, text: "Hi".to_owned() },
        Delta { index: 1, text: "!".to_owned() },
    ]);
    let streamed = answer(vec![
        bare("reasoning_text", "Hm"),
        bare("output_text", "Hi"),
        bare("output_text", "!"),
    ]);
    let deltas = |events: &[ModelEvent]| -> String {
        let text = |event: &ModelEvent| match event {
            Delta { text, .. } => text.clone(),
            _ => String::new(),
        };
        events.iter().map(text).collect()
    };
    assert_eq!(deltas(&streamed), deltas(&expected));

    let content = json!([{"type": "output_text", "text": "Hi!"}]);
    let whole = |members: Value| {
        let mut response = json!({"status": "completed"});
        response.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
        decode(&[json!({"type": "response.completed", "response": response})]).unwrap().0
    };
    let mut expected = text_block(0, &["Hi!"]);
    expected.push(Stop(StopReason::Done));
    assert_eq!(whole(json!({"output": [{"type": "message", "content": content}]})), expected);
    assert_eq!(whole(json!({"output": [], "output_text": "Hi!"})), expected);
    // An item that the stream had is not repeated.
    let mut streamed = message(0, "Hi!").to_vec();
    streamed.push(json!({"type": "response.completed", "response": {"status": "completed", "output": [{"type": "message", "content": content}]}}));
    assert_eq!(decode(&streamed).unwrap().0, expected);
}
